"""The commonest mistakes in a graph: each is refused by one sentence that names the node and what is wrong with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine


def f32(*dims: int) -> Any:
    return np.ones(dims, np.float32)


MISTAKES: list[tuple[Callable[[dnn.Graph, Any], Any], str]] = [
    (lambda g, x: g.apply("softmax", x), "'softmax' is no operator that is known: did you mean Softmax?"),
    (lambda g, x: g.apply(x, "Relu"), "op must be the name of an operator, such as 'Conv', not <Symbol 'x'>"),
    (lambda g, x: g.apply("Softmax", x, axis=9), "Softmax 'Softmax 0' cannot be computed .*: axis 9 is none of 4"),
    (lambda g, x: g.apply("RMSNormalization", x, f32(8), axis=9), "axis 9 is none of 4"),
    *(
        (lambda g, x, s=s: g.apply("Resize", x, None, np.float32([1, 1, s, 1])), f"scales have {s}, .* numbers above 0")
        for s in (np.nan, np.inf, -1.0, 0.0)
    ),
    (lambda g, x: g.apply("Conv", x), "Conv 'Conv 0' has 1 input, and Conv takes 2 to 3 in operator set 22$"),
    (lambda g, x: g.apply("Conv", x, None), "Conv 'Conv 0' has no name for its input 1, which Conv cannot do without"),
    (lambda g, x: g.apply("Relu", x, results=2)[0], "has 2 outputs, and Relu makes 1 in .*: say results=1$"),
    (lambda g, x: g.apply("TopK", x, np.array([1])), "has 1 output, and TopK makes 2 in .*: say results=2$"),
    (lambda g, x: g.apply("Dropout", x, results=3)[0], "has 3 outputs, and Dropout makes 1 to 2 .*: say results=2$"),
    (lambda g, x: g.apply("QLinearConv", x, results=2)[0], "has 2 outputs, and QLinearConv makes .*: say results=1$"),
    (lambda g, x: dnn.Graph(5), "name must be a name, such as 'classifier', not 5"),
    (lambda g, x: dnn.Graph(""), "name must be a name, such as 'classifier', not ''"),
    (lambda g, x: g.input("y", "23"), "input 'y' needs dims and a numpy type, not '23'"),
    (lambda g, x: g.input("y", b"23"), "input 'y' needs dims and a numpy type, not b'23'"),
    (lambda g, x: g.state("y", "23"), "input 'y' needs dims and a numpy type, not '23'"),
    (lambda g, x: g.parameter("y", "23"), "input 'y' needs dims and a numpy type, not '23'"),
    (lambda g, x: g.apply("Constant", x, value_int=1), "has 1 input, and Constant takes none in"),
    (lambda g, x: g.apply("Greater", x, x, x), "has 3 inputs, and Greater takes 2 in"),
    (lambda g, x: g.apply("Relu", x, x), "has 2 inputs, and Relu takes 1 in"),
    (lambda g, x: g.apply("Div", x), "has 1 input, and Div takes 2 in"),
    (lambda g, x: g.apply("LSTM", x), "has 1 input, and LSTM takes 3 to 8 in"),
    (lambda g, x: g.apply("BatchNormalization", x, f32(4)), "has 2 inputs, and BatchNormalization takes 5 in"),
    (lambda g, x: g.apply("Dropout", x, f32(1), f32(1), f32(1), f32(1)), "'Dropout 0'"),
    (lambda g, x: g.apply("MaxPool", g.apply("Flatten", x), kernel_shape=(2,)), "a pooling has dims after"),
    (lambda g, x: g.apply("ConvTranspose", g.apply("Flatten", x), f32(256, 4)), "a convolution has dims after"),
    (lambda g, x: g.apply("MatMul", x, f32(3, 3)), r"dims \(1, 4, 8, 8\) and \(3, 3\) do not go together"),
    (lambda g, x: x + None, "an operand must be a Symbol, an array or a number, not None"),
    (lambda g, x: x + "text", "an operand must be a Symbol, an array or a number, not 'text'"),
    (lambda g, x: g.apply("Relu", dnn.Graph().input("x", (1, 4))), "<Symbol 'x'> is of another graph"),
    (
        lambda g, x: g.apply("Conv", x, f32(4, 4, 3, 3), kernal_shape=(3, 3)),
        "Conv 'Conv 0' has the attribute 'kernal_shape', which Conv has not: did you mean kernel_shape",
    ),
    (lambda g, x: g.apply("Relu", x, alpha=0.1), "Relu 'Relu 0' has the attribute 'alpha', .* it has none$"),
    (lambda g, x: g.apply("LeakyRelu", x, alpha="x"), "LeakyRelu 'LeakyRelu 0' has alpha='x', .* must be a number$"),
    (lambda g, x: g.apply("Softmax", x, axis=1.5), "has axis=1.5, which must be an integer$"),
    (lambda g, x: g.apply("Transpose", x, perm="0132"), "has perm='0132', which must be integers$"),
    (lambda g, x: g.apply("Gelu", x, approximate="tan"), "which must be one of none, tanh: did you mean tanh"),
    (lambda g, x: g.apply("LRN", x), "LRN 'LRN 0' lacks the attribute size, which must be an integer"),
    (lambda g, x: g.apply("Clip", x, min=0.0), "has the attribute min, which is an input since 11"),
    (lambda g, x: g.input("x", (1, 2)), "a name that no other input has, not 'x'"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_mistake_is_one_sentence(mistake: Callable[[dnn.Graph, Any], Any], message: str) -> None:
    graph = dnn.Graph()
    x = graph.input("x", (1, 4, 8, 8))
    with pytest.raises(dnn.AsmdnnError, match=message) as caught:
        graph.compile(y=mistake(graph, x), engine=engine())
    assert "\n" not in str(caught.value)


def test_a_text_is_no_shape() -> None:
    graph = dnn.Graph()
    y = graph.apply("Relu", graph.input("x", (None, "n")))
    for text in ("23", b"23"):
        with pytest.raises(dnn.InvalidArguments, match=r"shapes.*'x'.* not b?'23'"):
            graph.compile({"x": text}, y=y, engine=engine())


def test_a_graph_says_what_it_is() -> None:
    graph = dnn.Graph("small")
    assert repr(graph) == "<Graph 'small': inputs none; 0 nodes>"
    x, table = graph.input("x", ("n", None, 4)), graph.input("table", (3,), np.int64)
    graph.update(graph.state("kept", (4,)), graph.input("new", (1,)), at=2)
    graph.apply("Add", graph.apply("Relu", x), x)
    graph.apply("Identity", table)
    inputs, nodes = "x float32 nx?x4, table int64 3, new float32 1", len(graph.nodes)
    assert repr(graph) == f"<Graph 'small': inputs {inputs}; {nodes} nodes>"
