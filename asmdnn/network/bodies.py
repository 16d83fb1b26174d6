"""Nodes with bodies, in whose place the nodes of a body come: the branch of an If, and the rounds of a Loop.

Each has to be decided by constants: which branch, and how many rounds.  A round's nodes read the results of the one
before; what rounds hand out is stacked behind one another.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.graph import NOTHING, Array, Body, Node
from asmdnn.network.operators.definition import Value

OPSET = 13  # whose Unsqueeze and Concat stack what rounds hand out


class BodyFolding(Protocol):
    """What takes in the nodes of bodies."""

    values: dict[str, Value]

    def node(self, node: Node) -> None: ...
    def inlined(self, body: Body, inputs: Mapping[str, str]) -> list[str]: ...
    def constant(self, name: str, data: Array) -> str: ...


def chosen(folding: BodyFolding, node: Node) -> dict[str, str]:
    """The results of the branch that a constant condition chooses."""
    condition = folding.values[node.inputs[0]].data
    if condition is None:
        raise Unimplemented(
            f"{node} chooses by the data of {shown(node.inputs[0])}: pass what decides it in constants="
        )
    body = node.get("then_branch" if number_of(node, node.inputs[0], condition) else "else_branch")
    if not isinstance(body, Body) or len(body.outputs) != len(node.outputs):
        raise InvalidArguments(f"{node} has no branch with {len(node.outputs)} results")
    return dict(zip(node.outputs, folding.inlined(body, {}), strict=True))


def unrolled(folding: BodyFolding, node: Node) -> dict[str, str]:
    """The results of a loop whose rounds are counted by constants."""
    body, (limit, condition, *carried) = node.get("body"), (*node.inputs, NOTHING, NOTHING)[: max(2, len(node.inputs))]
    handed_out = len(node.outputs) - len(carried)
    fits = isinstance(body, Body) and len(body.inputs) == 2 + len(carried)
    if not fits or handed_out < 0 or len(body.outputs) != 1 + len(node.outputs):
        raise InvalidArguments(
            f"{node} has no body with {len(carried)} values that go on and {handed_out} that it hands out"
        )
    most = known(folding, node, limit, sys.maxsize)
    goes_on, rounds, found = bool(known(folding, node, condition, 1)), 0, list[list[str]]()
    while goes_on and rounds < most:
        number = folding.constant(f"round {rounds} of {node.outputs[0]}", np.array(rounds, np.int64))
        yes = folding.constant(f"condition of {number}", np.array(True))
        again, *results = folding.inlined(body, dict(zip(body.inputs, (number, yes, *carried), strict=True)))
        carried = results[: len(carried)]
        found.append(results[len(carried) :])
        goes_on, rounds = bool(known(folding, node, again, 1)), rounds + 1
    if handed_out and not found:
        raise Unimplemented(f"{node} has no rounds, so that nobody knows the dims of what it hands out")
    stacks = [stacked(folding, node, [one[i] for one in found], i) for i in range(handed_out)]
    return {name: made for name, made in zip(node.outputs, (*carried, *stacks), strict=True) if name != NOTHING}


def known(folding: BodyFolding, node: Node, name: str, default: int) -> int:
    """A number that rounds are counted by."""
    if name == NOTHING:
        return default
    data = folding.values[name].data
    if data is None:
        raise Unimplemented(
            f"{node} has as many rounds as the data of {shown(name)} says: only loops that constants count are unrolled"
        )
    return number_of(node, name, data)


def number_of(node: Node, name: str, data: Array) -> int:
    """The number, or the truth, that a value is.  Raises InvalidArguments."""
    if data.size != 1 or not np.isfinite(data).all():
        raise InvalidArguments(f"{node} is decided by {shown(name)}, which must be one number, not {shown(data)}")
    return int(data.ravel()[0])


def stacked(folding: BodyFolding, node: Node, values: list[str], number: int) -> str:
    """What all rounds hand out, along a first axis of its own."""
    prefix = f"rounds of {node.outputs[0]} {number}"
    axes = folding.constant(f"{prefix} axes", np.array([0], np.int64))
    rows = [f"{prefix}/{i}" for i in range(len(values))]
    for value, row in zip(values, rows, strict=True):
        folding.node(Node("Unsqueeze", (value, axes), (row,), attributes={}, name=node.name, domain="", opset=OPSET))
    folding.node(Node("Concat", tuple(rows), (prefix,), attributes={"axis": 0}, name=node.name, domain="", opset=OPSET))
    return prefix


BODIES: dict[str, Callable[[BodyFolding, Node], dict[str, str]]] = {"If": chosen, "Loop": unrolled}
