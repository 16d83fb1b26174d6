"""What has no gradient is refused by the operator and the name that the user has written, with what to do about it.

All of it: by each line of the rules that refuses something, and by each operator that can be tried.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network import gradients
from asmdnn.network.gradients.table import rules
from asmdnn.network.operators.own import OPERATORS as OWN_OPERATORS
from asmdnn.network.operators.table import operators
from tests.network.nets import engine

RULES = Path(gradients.__file__).parent
FORWARD = RULES.parent / "training" / "forward.py"
INTERNAL = [key.rpartition(".")[2] for key in OWN_OPERATORS]
PLACES = np.array([[0], [1]])


def of(op: str, dims: Sequence[int], *operands: Any, results: int = 1, **attributes: Any) -> Callable[[Any], Any]:
    """What makes y of x in a graph, and what x is: (y, x)."""

    def make(graph: dnn.Graph, named: Callable[..., Any]) -> tuple[Any, Any]:
        x = named("x", dims)
        found = graph.apply(op, x, *operands, results=results, **attributes)
        return found if results == 1 else found[0], x

    return make  # type: ignore[return-value]


def mapped(graph: Any, named: Any) -> Any:
    x = named("x", (3, 4))
    return graph.map(shifted, x), x


def shifted(v: Any) -> Any:
    return v.builder.op("shl", v, immediate=1) + v


def second(graph: Any, named: Any) -> Any:
    x = named("x", (3, 4))
    y = graph.apply("Softmax", x)
    return graph.gradients(graph.apply("ReduceSum", y * y, keepdims=0), [x])[0], x


def cast(graph: Any, named: Any) -> Any:
    x = named("x", (3, 4))
    return graph.apply("Cast", graph.apply("Relu", graph.apply("Cast", x, to=10)), to=1), x


def cell(graph: Any, named: Any) -> Any:
    x = named("x", (2, 1, 3))
    weights = np.ones((1, 4, 3), np.float32), np.ones((1, 4, 4), np.float32)
    how = {"activations": ["LeakyRelu"], "activation_alpha": [-0.5], "hidden_size": 4}
    return graph.apply("RNN", x, *weights, results=2, **how)[0], x


def statistics(graph: Any, named: Any) -> Any:
    x, y = named("x", (3,)), graph.input("images", (2, 3, 4))
    ones = np.ones(3, np.float32)
    return graph.apply("BatchNormalization", y, ones, ones, x, ones), x


def switched(graph: Any, named: Any) -> Any:
    x, mode = named("x", (3, 4)), graph.input("mode", (), np.bool_)
    return graph.apply("Dropout", x, np.float32(0.5), mode), x


def clipped(graph: Any, named: Any) -> Any:
    x = named("x", (2, 1, 3))
    weights = named("w", (1, 4, 3)), np.ones((1, 4, 4), np.float32)
    return graph.apply("RNN", x, *weights, results=2, clip=3.0, hidden_size=4)[0], x


# By file and function: how it is refused, the operator that the message begins with, and what it says.
REFUSED: dict[str, tuple[Any, str, str]] = {
    "backwards.walk": (statistics, "BatchNormalization", "by its operand 'x': leave 'x' out of wrt"),
    "backwards.gradients_of": (of("BitwiseNot", (3, 4)), "BitwiseNot", "has no gradient: leave 'x' out of wrt"),
    "backwards.check_types": (cast, "Relu", "computes in float16, gradients are f32: cast its operands"),
    "backwards.second": (second, "the gradient of Softmax", "second derivatives end here: leave 'x'"),
    "indexing.scatter_rows": (
        of("ScatterND", (4, 3), PLACES, np.ones((2, 3), np.float32), reduction="max"), "ScatterND",
        "reduction 'max' has none, 'none' and 'add' have one: leave 'x' out of wrt",
    ),
    "maps.mapped": (mapped, "map of shifted", "leave 'x' out of wrt"),
    "products.determinant": (of("Det", (33, 33)), "Det", "of 33x33 it takes all minors"),
    "recurrent.recurrent": (cell, "RNN", "a slope below 0 hides"),
    "resizing.resize": (
        of("Resize", (1, 1, 4, 4), np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32), np.array([1, 1, 2, 2], np.float32),
           coordinate_transformation_mode="tf_crop_and_resize"), "Resize", "tf_crop_and_resize has none: leave 'x'",
    ),
}  # fmt: skip

TRAINING: dict[str, tuple[Any, str, str]] = {
    "training.channel_norm": (
        of("BatchNormalization", (1, 3, 1, 1), *np.ones((4, 3), np.float32), training_mode=1, results=3),
        "BatchNormalization", "normalises channels of one value each",
    ),
    "forward.draws": (switched, "Dropout", "make it True or False"),
    "forward.drawn": (of("Dropout", (3, 4), np.float32(1.5), np.array(True)), "Dropout", "less than 1"),
    "recurrent.trained": (clipped, "RNN", "clip=3.0 has no kernel: freeze what it depends on"),
}  # fmt: skip
NOT_OF_NODES = ("backwards.differentiated", "backwards.check_loss", "words.inlined", "asked.refused")


def sites() -> Iterator[str]:
    """File and function of each line that refuses something."""
    trained = RULES.parent / "decompositions" / "recurrent.py"
    for path in [*sorted(RULES.glob("*.py")), FORWARD, trained]:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                yield from (f"{path.stem}.{function.name}" for x in ast.walk(function) if isinstance(x, ast.Raise))


def test_all_lines_that_refuse_are_here() -> None:
    assert {*sites()} - {*NOT_OF_NODES} == {*REFUSED, *TRAINING} - {"backwards.second"}


def check_message(error: dnn.AsmdnnError, op: str, says: str = "") -> None:
    message = str(error)
    assert message.startswith(f"{op} '"), message
    assert says in message, message
    assert not [name for name in INTERNAL if f"{name} " in message or f".{name}" in message], message
    assert "/" not in message, f"{message}: names of nodes that nobody wrote"


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_of_gradients(name: str) -> None:
    make, op, says = REFUSED[name]
    graph = dnn.Graph("refused")
    y, x = make(graph, graph.input)
    with pytest.raises(dnn.Unimplemented) as caught:
        graph.gradients(graph.apply("ReduceSum", y, keepdims=0), [x])
    check_message(caught.value, op, says)


@pytest.mark.parametrize("name", [*REFUSED, *TRAINING])
def test_refusals_of_training(name: str) -> None:
    """Where nodes are decomposed before: they are called what they were then, and a parameter can be frozen."""
    make, op, says = {**REFUSED, **TRAINING}[name]
    if name == "backwards.second":
        pytest.skip("gradients of gradients are no loss of a step here")
    graph = dnn.Graph("refused")
    y, _ = make(graph, lambda name, dims: graph.parameter(name, dims, "zeros"))
    with pytest.raises(dnn.AsmdnnError) as caught:
        graph.train(graph.apply("ReduceSum", y, keepdims=0), dnn.optim.SGD(0.1), engine=engine())
    check_message(caught.value, op, says.partition(": leave")[0].removesuffix(" out of wrt"))
    if "leave 'x'" in says:
        assert "leave 'x' out of wrt, or freeze it, groups={'x': None}" in str(caught.value)


SOME = ((3, 4), (2, 3, 4), (1, 2, 6, 6), (3, 3))
TRIED = sorted({*operators()} - {*rules()})


@pytest.mark.parametrize("op", TRIED)
def test_operators_without_a_rule(op: str) -> None:
    """Those that take one to three floats of the same dims, and make floats: either there is a gradient, or a refusal
    that names them."""
    for dims in SOME:
        for count in (1, 2, 3):
            graph = dnn.Graph("tried")
            x = graph.input("x", dims)
            try:
                y = graph.apply(op, *[x] * count)
                loss = graph.apply("ReduceSum", y, keepdims=0)
                assert np.dtype(loss.dtype) == np.float32
            except (dnn.AsmdnnError, AssertionError):
                continue
            try:
                graph.gradients(loss, [x])
            except dnn.Unimplemented as error:
                check_message(error, op, "leave 'x' out of wrt")
            except dnn.InvalidArguments as error:
                assert "does not depend" in str(error), error
