"""How many inputs and outputs nodes may have: the table is ONNX's own, and definitions take what it allows."""

from inspect import signature

import pytest

import asmdnn as dnn
from asmdnn.network.graph import Node
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.operators.signatures import TABLE, check_signature, signatures
from asmdnn.network.operators.table import operators

OPEN = 3  # inputs that are tried beyond the least where any number is allowed


def test_the_table_is_that_of_the_schemas() -> None:
    pytest.importorskip("onnx", reason="the networks extra: pip install onnx")
    from tools.onnx_signatures import table

    assert table() == TABLE.strip("\n"), "python -m tools.onnx_signatures prints the table of this version of onnx"


def test_definitions_take_what_signatures_allow() -> None:
    """So that a node which was checked never fails by the number of its inputs."""
    for op, operator in operators().items():
        for version in signatures()[op]:
            most = min(version.inputs.most, version.inputs.least + OPEN)
            for count in range(version.inputs.least, int(most) + 1):
                for function in (operator.evaluate, operator.infer):
                    if function is not None:
                        signature(function).bind(None, *[None] * count)


def node(op: str, inputs: list[str], outputs: list[str], opset: int, **attributes: object) -> Node:
    return Node(op, tuple(inputs), tuple(outputs), attributes, "n", "", opset)


@pytest.mark.parametrize(
    "fits",
    [
        node("Clip", ["x"], ["y"], 6, max=1.0),
        node("Clip", ["x", "", "most"], ["y"], 11),
        node("Concat", ["x"] * 50, ["y"], 13),
        node("Unsqueeze", ["x"], ["y"], 13, axes=(0,)),  # as it was written before
        node("Resize", ["x", "", "scales"], ["y"], 11),  # before inputs could be left out
        node("LSTM", ["x", "w", "r", "", "lengths"], ["", "", "c"], 14),
        node("Loop", ["", ""], ["", "y"], 11),
        node("Gelu", ["x"], ["y"], 13),  # before there was one
        node(MAP, ["x"] * 5, ["y"], 22),
    ],
    ids=str,
)
def test_what_fits(fits: Node) -> None:
    check_signature(fits)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (node("Clip", ["x", "least"], ["y"], 10), "Clip 'n' has 2 inputs, and Clip takes 1 in operator set 10"),
        (node("Clip", ["x"] * 4, ["y"], 11), "has 4 inputs, and Clip takes 1 to 3 in operator set 11"),
        (node("Clip", ["", "x"], ["y"], 11), "has no name for its input 0, which Clip cannot do without"),
        (node("Concat", [], ["y"], 13), "has 0 inputs, and Concat takes 1 or more"),
        (node("Concat", ["x", ""], ["y"], 13), "has no name for its input 1"),
        (node("Unsqueeze", ["x"], ["y"], 13), "has 1 input, and Unsqueeze takes 2"),
        (node("Slice", ["x"], ["y"], 13, starts=(0,)), "has 1 input, and Slice takes 3 to 5"),
        (node("TopK", ["x", "k"], ["values"], 13), "has 1 output, and TopK makes 2"),
        (node("TopK", ["x", "k"], ["", "indices"], 13), "has no name for its output 0"),
        (node("MaxPool", ["x"], ["y", "places"], 7), "has 2 outputs, and MaxPool makes 1 in operator set 7"),
        (node("Loop", [""], ["y"], 11), "has 1 input, and Loop takes 2 or more"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_what_does_not(wrong: Node, said: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=said):
        check_signature(wrong)
