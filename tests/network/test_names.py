"""Values may be called what a plan calls its own buffers: kernels read what was passed, and write nothing else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.calls.running import ARENA, WEIGHTS
from asmdnn.network.joining.arena import OWN_SCRATCH
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
OWN = (
    WEIGHTS, ARENA, OWN_SCRATCH, "constant 0", "constant 1", "input x", "result y", "result Relu 1", "MatMul 0",
    "Relu 1", "scratch x of step 0", "value x", "input weights",
)  # fmt: skip
FIRST = np.arange(60, dtype=np.float32).reshape(3, 20) / 60
SECOND = np.linspace(-1, 1, 20 * 7, dtype=np.float32).reshape(20, 7)


def built(name: str, inner: str = "") -> tuple[dnn.Graph, Any]:
    g = dnn.Graph()
    x = g.input(name, (2, 3))
    return g, g.apply("Softmax", g.apply("Relu", x @ FIRST, name=inner) @ SECOND)


def expected(x: Any) -> Any:
    powers = np.exp(np.maximum(x.astype(np.float64) @ FIRST, 0) @ SECOND)
    return powers / powers.sum(1, keepdims=True)


def arrays() -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal((2, 3)).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("name", OWN)
def test_inputs_of_any_name(name: str, tmp_path: Path) -> None:
    g, y = built(name)
    net = g.compile(y=y, engine=engine(1))
    assert net.is_native
    net.check()
    net.save(tmp_path / "net.pack")
    again, out = dnn.load_network(tmp_path / "net.pack", threads=1), np.zeros((2, 7), np.float32)
    for x in arrays():
        kept = x.copy()
        call = net.bind(**{name: x, "y": out})
        call()
        for found in (net.run({name: x})["y"], again.run({name: x})["y"], out):
            np.testing.assert_allclose(found, expected(kept), rtol=1e-5)
        np.testing.assert_array_equal(x, kept)
    net.verify({name: arrays()[0]})


@pytest.mark.parametrize("name", OWN)
def test_outputs_and_inner_values_of_any_name(name: str) -> None:
    """Of a model from a file, which calls its inner values as it likes."""
    onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w"], [name]),
        helper.make_node("Relu", [name], ["h"]),
        helper.make_node("MatMul", ["h", "v"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["y"]),
    ]
    ends = [[helper.make_tensor_value_info(end, f32, dims)] for end, dims in (("x", (2, 3)), ("y", (2, 7)))]
    weights = [onnx.numpy_helper.from_array(FIRST, "w"), onnx.numpy_helper.from_array(SECOND, "v")]
    model = helper.make_model(helper.make_graph(nodes, "g", *ends, weights))
    net = dnn.load_onnx(model.SerializeToString(), engine=engine(1))
    net.check()
    for x in arrays():
        np.testing.assert_allclose(net.run({"x": x})["y"], expected(x), rtol=1e-5)


@pytest.mark.parametrize("name", OWN)
def test_parameters_of_any_name(name: str) -> None:
    """A step of descent on mean squares: w - rate x'(x w - t) 2 / n."""
    g = dnn.Graph("named", seed=0)
    x, t = g.input("x", (4, 3)), g.input("t", (4, 2))
    w = g.parameter(name, (3, 2), np.ones((3, 2), np.float32))
    difference = x @ w - t
    loss = g.apply("ReduceMean", difference * difference, keepdims=0)
    step = g.train(loss, dnn.optim.SGD(0.5), engine=engine(1))
    step.check()
    random = np.random.default_rng(1)
    xs, ts = (random.standard_normal(dims).astype(np.float32) for dims in ((4, 3), (4, 2)))
    weights = np.ones((3, 2))
    for _ in range(3):
        step(x=xs, t=ts)
        weights -= 0.5 * xs.T.astype(np.float64) @ (xs @ weights - ts) * 2 / 8
        np.testing.assert_allclose(step.parameters[name], weights, rtol=1e-5, atol=1e-6)


def test_an_input_is_called_like_no_inner_value() -> None:
    g, _ = built("x")
    for name in ("constant 0", "MatMul 0"):
        with pytest.raises(dnn.InvalidArguments, match="is an inner value of the graph, call the input something else"):
            g.input(name, (2, 3))
