"""What symbols say of themselves while a graph is written: their dims and types, where these are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

Make = Callable[[dnn.Graph, Any], Any]
ROWS = np.array([2, 0])
VALUES: dict[str, tuple[Make, tuple[int, ...], type]] = {
    "the input": (lambda g, x: x, (2, 3, 8, 8), np.float32),
    "a constant": (lambda g, x: (x + ROWS, g.value("constant 0"))[1], (2,), np.int64),
    "an image": (lambda g, x: g.apply("Conv", x, random(4, 3, 3, 3), strides=(2, 2)), (2, 4, 3, 3), np.float32),
    "rows": (
        lambda g, x: g.apply("Reshape", x, g.apply("Concat", g.apply("Shape", x, end=1), np.array([-1]), axis=0)),
        (2, 192),
        np.float32,
    ),
    "positions": (lambda g, x: g.apply("TopK", x, np.array([2]), results=2)[1], (2, 3, 8, 2), np.int64),
    "truths": (lambda g, x: g.apply("Less", x, 0.5), (2, 3, 8, 8), np.bool_),
    "a state": (lambda g, x: g.state("s", (5,), np.int32), (5,), np.int32),
    "what a state becomes": (lambda g, x: g.update(s := g.state("s", (5,)), s + 1.0), (5,), np.float32),
    "a loss": (lambda g, x: dnn.losses.mean_squared_error(x, 0.0), (), np.float32),
}


@pytest.mark.parametrize("name", VALUES)
def test_dims_and_types(name: str) -> None:
    make, shape, dtype = VALUES[name]
    g = dnn.Graph()
    value = make(g, g.input("x", (2, 3, 8, 8)))
    assert (value.shape, value.dtype) == (shape, np.dtype(dtype))


def test_more_is_known_as_a_graph_grows() -> None:
    g = dnn.Graph()
    y = g.input("x", (3, 4))
    for columns in (5, 6, 7):
        y = y @ random(y.shape[1], columns)
        assert y.shape == (3, columns)
    net = g.compile(y=y, engine=engine())
    assert net.run({"x": random(3, 4)})["y"].shape == y.shape


def test_inputs_say_their_open_dims_and_others_say_which() -> None:
    g = dnn.Graph()
    x = g.input("x", ("batch", 4))
    assert (x.shape, x.dtype) == (("batch", 4), np.float32)
    with pytest.raises(dnn.InvalidArguments, match=r"^Add 0 has no dims before its graph is compiled, as input x is"):
        (x + 1.0).shape  # noqa: B018
    assert g.apply("Relu", random(2, 3)).shape == (2, 3)  # depends on no input


def test_what_has_no_dims_says_why() -> None:
    g = dnn.Graph()
    x = g.input("x", (2, 3))
    with pytest.raises(dnn.InvalidArguments, match="do not go together"):
        (x @ random(2, 2)).dtype  # noqa: B018
    with pytest.raises(dnn.Unimplemented, match="NonZero 'NonZero 1' has dims that depend on the data of 'x'"):
        g.apply("NonZero", x).shape  # noqa: B018


def test_values_of_files() -> None:
    parser = pytest.importorskip("onnx.parser", reason="the networks extra: pip install onnx onnxruntime")
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[1, 3] y) <int64 at = {1}>
    { parts = SplitToSequence<axis = 0>(x)  part = SequenceAt(parts, at)  y = Relu(part) }"""
    g = dnn.Graph.from_onnx(parser.parse_model(text).SerializeToString())
    assert g.value("part").shape == g.value("y").shape == (1, 3)
    with pytest.raises(dnn.InvalidArguments, match="parts is a list, only tensors have dims"):
        g.value("parts").shape  # noqa: B018
