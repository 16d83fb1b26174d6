"""Published graphs against onnxruntime: the light models of the onnx package, with random weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")

pytestmark = pytest.mark.isa("avx2")
FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NATIVE = (
    "squeezenet", "shufflenet", "resnet50", "inception_v1", "inception_v2", "densenet121", "vgg19", "bvlc_alexnet",
    "zfnet512",
)  # fmt: skip
QUICK = ("squeezenet",)
RELATIVE = 1e-4  # of the largest output: some hundred layers of f32 in another order


def with_random_weights(path: Path) -> bytes:
    """The model; each of its weights, which are all ones, is random, and of such a size that values stay in bounds."""
    model = onnx.load(path)
    random = np.random.default_rng(0)
    shapes = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in list(model.graph.node):
        if node.op_type == "ConstantOfShape":
            dims = [int(n) for n in shapes[node.input[0]]]
            if len(dims) > 1:
                array = random.standard_normal(dims) * np.sqrt(2 / np.prod(dims[1:]))
            else:
                array = random.uniform(0.5, 1.5, dims)
            tensor = onnx.numpy_helper.from_array(array.astype(np.float32), node.output[0])
            model.graph.initializer.append(tensor)
            model.graph.node.remove(node)
    data: bytes = model.SerializeToString()
    return data


def compared(name: str, fallback: str | None) -> dnn.Network:
    data = with_random_weights(FOLDER / f"light_{name}.onnx")
    net = dnn.load_onnx(data, engine=engine(), fallback=fallback)
    net.check()
    feeds: dict[str, Any] = {
        key: np.random.default_rng(1).standard_normal(dims).astype(dtype) for key, (dims, dtype) in net.inputs.items()
    }
    wanted = onnxruntime.InferenceSession(data).run(list(net.outputs), feeds)
    for found, array in zip(net.run(feeds).values(), wanted, strict=True):
        np.testing.assert_allclose(found, array, rtol=0, atol=RELATIVE * np.abs(array).max())
    return net


@pytest.mark.parametrize("name", [pytest.param(x, marks=() if x in QUICK else pytest.mark.slow) for x in NATIVE])
def test_native_throughout(name: str) -> None:
    assert not compared(name, None).refused


@pytest.mark.slow
def test_of_the_other_level_plans_are_proved() -> None:
    data = with_random_weights(FOLDER / "light_squeezenet.onnx")
    dnn.load_onnx(data, engine=engine(isa="avx512_core")).check()
