"""`quantize`: the file that it writes, against onnxruntime and f32; and the writer, against the reader."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.network.graph import TensorType
from asmdnn.network.onnx.reader import read_model
from asmdnn.network.onnx.writer import model_bytes
from asmdnn.network.quantized.rewriting import symmetric
from tests.network import wire
from tests.network.nets import engine
from tests.support.drawing import RANDOM

FLOATS = TensorType(np.dtype(np.float32), (None,))
METHODS = ("dynamic", "weights")


def weights(*dims: int) -> np.ndarray:
    return (RANDOM.standard_normal(dims) * RANDOM.random(dims[-1]) / dims[0] ** 0.5).astype(np.float32)


def file() -> bytes:
    """A convolution and all kinds of products: one operand of two, weights of two, transposed, scaled, with and without
    bias, by a Constant, and one of data."""
    nodes = [
        wire.node("Conv", ["x", "c"], ["image"], "conv", pads=[1, 1, 1, 1]),
        wire.node("Flatten", ["image"], ["rows"]),
        wire.node("MatMul", ["rows", "a"], ["one"], "one"),
        wire.node("Gemm", ["rows", "b", "bias"], ["other"], "other", transB=1, alpha=0.5, beta=2.0),
        wire.node("Add", ["one", "other"], ["sum"]),
        wire.node("Constant", [], ["d"], value=weights(32, 32)),
        wire.node("MatMul", ["sum", "d"], ["third"], "third"),
        wire.node("MatMul", ["third", "d"], ["fourth"], "fourth"),
        wire.node("MatMul", ["fourth", "y"], ["z"], "of data"),
    ]
    constants = {"c": weights(4, 2, 3, 3), "a": weights(100, 32), "b": weights(32, 100), "bias": weights(1, 32)[0]}
    body = wire.graph(nodes, {"x": ("n", 2, 5, 5), "y": (32, 3)}, ["z", "sum"], constants)
    return wire.model(body)


def feeds(count: int = 6) -> dict[str, np.ndarray]:
    x = RANDOM.standard_normal((count, 2, 5, 5)).astype(np.float32)
    return {"x": x, "y": RANDOM.standard_normal((32, 3)).astype(np.float32)}


NODES = {"dynamic": ("one", "other", "third", "fourth"), "weights": ("conv", "one", "other", "third", "fourth")}
WORST = {"dynamic": 0.1, "weights": 0.05}  # of the largest value: two to four products, each rounded to 8 bits


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("method", METHODS)
def test_a_file_is_quantized_and_near_f32(method: str) -> None:
    given, data = feeds(), file()
    made = dnn.quantize(data, given, method, engine=engine())
    assert made.nodes == NODES[method]
    exact = dnn.load_onnx(data, engine=engine()).run(given)
    found = dnn.load_onnx(made.data, engine=engine()).run(given)
    for name, array in exact.items():
        error = np.abs(found[name] - array).max() / np.abs(array).max()
        assert made.errors[name] == pytest.approx(error, rel=1e-5)
        assert 0 < error < WORST[method]
    assert made.file_bytes == (pytest.approx(len(data), abs=200), len(made.data))
    constants = read_model(made.data).body.constants
    assert {constants[name].dtype.name for name in constants if constants[name].ndim > 1} == (
        {"int8"} if method == "weights" else {"int8", "float32"}  # of the convolution
    )
    assert f"{len(made.nodes)} nodes with weights of 8 bits" in str(made)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("method", METHODS)
def test_onnxruntime_loads_it_and_answers_alike(method: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
    runtime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    given = feeds()
    made = dnn.quantize(file(), given, method, reduce_range=True, engine=engine())
    integers = [array for array in read_model(made.data).body.constants.values() if array.dtype == np.int8]
    assert max(np.abs(array.astype(int)).max(initial=0) for array in integers) == 64
    made.save(tmp_path / "small.onnx")
    onnx.checker.check_model(str(tmp_path / "small.onnx"), full_check=True)
    session = runtime.InferenceSession(str(tmp_path / "small.onnx"), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for count in (6, 1):
        given = feeds(count)
        theirs = dict(zip(names, session.run(names, given), strict=True))
        for name, array in made.network.run(given).items():
            step = np.abs(theirs[name]).max() / 255
            near = np.abs(array - theirs[name]) <= 1e-5 * np.abs(theirs[name]).max()
            assert near.mean() > 0.9, "an operand may be rounded to another integer now and then"
            assert np.abs(array - theirs[name]).max() <= step


@pytest.mark.isa("avx2")
def test_a_network_written_in_python() -> None:
    g = dnn.Graph("written")
    y = g.apply("Softmax", g.apply("Gemm", g.input("x", (4, 64)), weights(64, 10), name="head"), axis=-1)
    net = g.compile(y=y, engine=engine())
    made = dnn.quantize(net, {"x": np.ones((4, 64), np.float32)}, engine=engine())
    assert made.nodes == ("head",)
    assert made.errors["y"] < 0.05
    assert made.network.planned().refused == {}, "natively throughout"


@pytest.mark.isa("avx2")
def test_nodes_that_are_named_stay() -> None:
    made = dnn.quantize(file(), feeds(), keep_f32=["third", "sum", "one"], engine=engine())
    assert made.nodes == ("other", "fourth")


def test_weights_are_symmetric_by_channel() -> None:
    integers, scales = symmetric(np.float32([[1, 0, -3e-40], [-2, 0, 0], [0.5, 0, 0]]), 1)
    assert scales.tolist()[:2] == [np.float32(2 / 127), 1]
    assert integers[:, :2].tolist() == [[64, 0], [-127, 0], [32, 0]]
    assert np.isfinite(integers * scales).all()


def test_what_is_written_is_read_again() -> None:
    """Every kind of attribute, bodies in nodes, dims with names, and types of several elements in a byte."""
    first = read_model(wire.small())
    again = read_model(model_bytes(first, dict.fromkeys(("z", "c2"), FLOATS)))
    assert [str(node) for node in again.body.nodes] == [str(node) for node in first.body.nodes]
    assert again.body.inputs == first.body.inputs
    assert again.body.outputs == first.body.outputs
    for one, other in zip(first.body.nodes, again.body.nodes, strict=True):
        assert (one.inputs, one.outputs) == (other.inputs, other.outputs)
        assert one.attributes.keys() == other.attributes.keys()
    conv, leaky, branch = again.body.nodes
    assert conv.attributes == {"pads": (1, 1, 1, 1), "group": 1, "auto_pad": "NOTSET"}
    assert leaky.attributes == {"alpha": 0.25}
    assert branch.get("else_branch").nodes[0].get("value").tolist() == [1, 2]
    for name, array in first.body.constants.items():
        assert np.array_equal(array, again.body.constants[name])
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="types of 4 bits: pip install ml_dtypes")
    small = np.array([[-8, 7, 3], [0, -1, 5]], ml_dtypes.int4)
    nodes = [wire.node("Identity", ["w"], ["y"])]
    model = read_model(wire.model(wire.graph(nodes, {}, ["y"], {"w": np.zeros((2, 3), np.int8)}), 21))
    packed = replace(model, body=replace(model.body, constants={"w": small}))
    found = read_model(model_bytes(packed, {"y": TensorType(small.dtype, (2, 3))})).body.constants["w"]
    assert found.dtype == small.dtype
    assert found.astype(int).tolist() == small.astype(int).tolist()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"method": "stat"}, "method must be one of dynamic, weights, static, not 'stat'"),
        ({"feeds": ()}, "feeds must be inputs by name, or several of them"),
        ({"max_error": 0.1}, 'max_error and calibration are of method="static"'),
        ({"reduce_range": 1}, "reduce_range must be True or False, not 1"),
        ({"method": "static", "max_error": -1}, "max_error must be a positive share"),
        ({"method": "static", "max_error": 1e-9}, "max_error=1e-09 leaves no product of integers"),
        ({"method": "static", "calibration": "entropy"}, "calibration must be a Calibration"),
        ({"method": None}, "method must be one of"),
        ({"feeds": {}}, "feeds must be arrays for x, y"),
        ({"keep_f32": ["thrid"]}, "keep_f32 has 'thrid', which no node is called.*third"),
        ({"keep_f32": list(NODES["dynamic"])}, "no node can be quantised: MatMul, Gemm with constant weights"),
        ({"source": b"no model"}, "no intact ONNX model"),
    ],
)
def test_bad_words(said: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArguments, match=words):
        dnn.quantize(**{"source": file(), "feeds": feeds(), "engine": engine(), **said})


def test_models_that_no_file_can_have() -> None:
    nodes = [wire.node("MatMul", ["x", "w"], ["y"])]
    old = wire.model(wire.graph(nodes, {"x": (2, 4)}, ["y"], {"w": weights(4, 4)}), 11)
    with pytest.raises(InvalidArguments, match="operator set 11, 13 is the oldest"):
        dnn.quantize(old, {"x": np.ones((2, 4), np.float32)}, engine=engine())
    g = dnn.Graph()
    y = g.map(lambda x: 2 * x, g.input("x", (2, 4)) @ weights(4, 4))
    with pytest.raises(InvalidArguments, match="which no ONNX file can have"):
        dnn.quantize(g.compile(y=y, engine=engine()), {"x": np.ones((2, 4), np.float32)}, engine=engine())


@pytest.mark.isa("avx2")
def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    made = dnn.quantize(file(), feeds(), engine=engine())
    for path in (tmp_path / "nothing" / "x.onnx", tmp_path, 7):
        with pytest.raises(InvalidArguments):
            made.save(path)  # type: ignore[arg-type]
