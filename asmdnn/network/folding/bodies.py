"""Nodes with bodies, in whose place the nodes of a body come: branches of an If, rounds of a Loop and of a Scan.

Constants decide which branch, and how many rounds, where they can.  A round's nodes read the results of the one before;
what rounds hand out is stacked one after another.  Where data decide, both branches are computed, and all rounds that
there may be: results are chosen from, so these must have the same dims, and no indices that could be wrong in a branch
that is not chosen.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Protocol

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.network.folding.scans import elements_differ, frame_of_scan
from asmdnn.network.graph import NOTHING, Array, Body, Node, names_in
from asmdnn.network.operators.definition import Value
from asmdnn.network.splitting import DecidedByData

OPSET = 13  # whose Unsqueeze and Concat stack what rounds hand out
MOST_ROUNDS = 256  # of a loop that data end
BY_INDICES = {
    "Gather", "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND", "TensorScatter", "RoiAlign",
    "MaxUnpool", "OneHotRows", "ScatterRows",
}  # fmt: skip

GATHERS = {"Gather", "GatherElements", "GatherND"}  # by constants, whose range is looked at before anything runs


class BodyFolding(Protocol):
    """What takes in the nodes of bodies."""

    values: dict[str, Value]

    def node(self, node: Node) -> None: ...
    def inlined(self, body: Body, inputs: Mapping[str, str]) -> list[str]: ...
    def constant(self, name: str, data: Array) -> str: ...
    def known(self, name: str) -> str: ...


def chosen(folding: BodyFolding, node: Node) -> dict[str, str]:
    """The results of the branch that a constant condition chooses."""
    condition = folding.values[node.inputs[0]].data
    if condition is None:
        return of_both(folding, node)
    body = node.get("then_branch" if number_of(node, node.inputs[0], condition) else "else_branch")
    if not isinstance(body, Body) or len(body.outputs) != len(node.outputs):
        raise InvalidArguments(f"{node} has no branch with {counted(len(node.outputs), 'result')}")
    return dict(zip(node.outputs, folding.inlined(body, {}), strict=True))


def of_both(folding: BodyFolding, node: Node) -> dict[str, str]:
    """The results of both branches, chosen from by data."""
    (condition,), found = node.inputs, []
    for name in ("then_branch", "else_branch"):
        body = node.get(name)
        if not isinstance(body, Body) or len(body.outputs) != len(node.outputs):
            raise InvalidArguments(f"{node} has no branch with {counted(len(node.outputs), 'result')}")
        check_is_harmless(folding, node, body)
        try:
            found.append(folding.inlined(body, {}))
        except InvalidArguments as error:  # of a branch that nobody may choose
            raise DecidedByData(
                f"{node} chooses by the data of {shown(condition)}, and {error}: pass what decides it in constants=, "
                "or load the model with fallback='numpy'",
                value=condition,
            ) from None
    return {
        result: selected(folding, node, condition, both, result)
        for result, both in zip(node.outputs, zip(*found, strict=True), strict=True)
        if result != NOTHING
    }


def check_is_harmless(folding: BodyFolding, node: Node, body: Body) -> None:
    """Raise Unimplemented for what may be an error in a branch, or a round, that is not wanted."""
    inside = [*nodes_inside(body)]
    made = {name for _, inner in inside for name in inner.outputs}
    own = {name for one, _ in inside for name in one.constants}
    own |= {name for _, inner in inside if inner.op == "Constant" for name in inner.outputs}

    def is_constant(name: str) -> bool:
        around = folding.values.get(folding.known(name)) if name not in made else None
        return name in own or (around is not None and around.data is not None)

    for _, inner in inside:
        is_look_up = inner.op in GATHERS and len(inner.inputs) == 2 and is_constant(inner.inputs[1])
        if (inner.op in BY_INDICES and not is_look_up) or (inner.op in BODIES and inner.op != "If"):
            raise DecidedByData(
                f"{node} chooses by the data of {shown(node.inputs[0])}, and {inner} may be wrong in what is not "
                "chosen: pass what decides it in constants=, or load the model with fallback='numpy'",
                value=node.inputs[0] if node.op == "If" else NOTHING,
            )


def nodes_inside(body: Body) -> Iterator[tuple[Body, Node]]:
    """Of a body and of branches in it."""
    for inner in body.nodes:
        yield body, inner
        branches = inner.attributes.values() if inner.op == "If" else ()
        for branch in branches:
            if isinstance(branch, Body):
                yield from nodes_inside(branch)


def selected(folding: BodyFolding, node: Node, condition: str, both: tuple[str, ...], name: str) -> str:
    """The first of two values where a condition holds, which has one element.  Raises Unimplemented."""
    if not folding.values.keys() >= {*both}:
        raise DecidedByData(f"{node} makes lists, as data choose: fallback='numpy' takes them", value=condition)
    (a, b), known = (folding.values[x] for x in both), folding.values[condition]
    if a.shape != b.shape or a.dtype != b.dtype:
        words = " and ".join(f"{x.dtype.name}{list(x.shape)}" for x in (a, b))
        raise DecidedByData(
            f"{node} makes {words} of {shown(name)}, as data choose: fallback='numpy' takes unequal dims",
            value=condition,
        )
    if prod(known.shape) != 1:
        raise InvalidArguments(f"{node} is decided by {shown(condition)}, which must be one number")
    if both[0] == both[1]:
        return both[0]
    number = len(folding.values)
    single, wide, result = (f"{node.outputs[0]}/{what} {number}" for what in ("condition", "choice", "chosen"))
    ones = folding.constant(f"{single} dims", np.array([1] * len(a.shape), np.int64))
    dims = folding.constant(f"{wide} dims", np.array(a.shape, np.int64))
    for op, inputs, output in (
        ("Reshape", (condition, ones), single), ("Expand", (single, dims), wide), ("Where", (wide, *both), result),
    ):  # fmt: skip
        folding.node(Node(op, tuple(map(folding.known, inputs)), (output,), {}, name=node.name, domain="", opset=OPSET))
    return folding.known(result)


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
    if is_data(folding, condition):
        return by_data(folding, node, condition, carried, range(min(most, sys.maxsize)))
    goes_on, rounds, found = bool(known(folding, node, condition, 1)), 0, list[list[str]]()
    while goes_on and rounds < most:
        number = folding.constant(f"round {rounds} of {node.outputs[0]}", np.array(rounds, np.int64))
        yes = folding.constant(f"condition of {number}", np.array(True))
        again, *results = folding.inlined(body, dict(zip(body.inputs, (number, yes, *carried), strict=True)))
        carried = results[: len(carried)]
        found.append(results[len(carried) :])
        if is_data(folding, again) and rounds + 1 < most:
            return by_data(folding, node, again, carried, range(rounds + 1, most))
        goes_on, rounds = rounds + 1 == most or bool(known(folding, node, again, 1)), rounds + 1
    if handed_out and not found:
        raise Unimplemented(f"{node} has no rounds, so that nobody knows the dims of what it hands out")
    stacks = [stacked(folding, node, [one[i] for one in found], i) for i in range(handed_out)]
    return {name: made for name, made in zip(node.outputs, (*carried, *stacks), strict=True) if name != NOTHING}


def is_data(folding: BodyFolding, name: str) -> bool:
    return name != NOTHING and folding.values[name].data is None


def by_data(folding: BodyFolding, node: Node, goes_on: str, carried: list[str], rounds: range) -> dict[str, str]:
    """All rounds that there may be, of which those after the last one change nothing."""
    body = node.get("body")
    if len(node.outputs) != len(carried):
        raise DecidedByData(
            f"{node} has as many rounds as the data of {shown(goes_on)} says: only loops that constants count "
            "hand out rows, others with fallback='numpy'"
        )
    if rounds.stop - rounds.start > MOST_ROUNDS:
        raise DecidedByData(
            f"{node} ends when its data say so: give it at most {MOST_ROUNDS} rounds, a constant M, or load the model "
            "with fallback='numpy'"
        )
    check_is_harmless(folding, node, body)
    for i in rounds:
        number = folding.constant(f"round {i} of {node.outputs[0]}", np.array(i, np.int64))
        again, *results = folding.inlined(body, dict(zip(body.inputs, (number, goes_on, *carried), strict=True)))
        pairs = list(zip(results, carried, strict=True))
        carried = [selected(folding, node, goes_on, pair, node.outputs[0]) for pair in pairs]
        goes_on = both_hold(folding, node, goes_on, again)
    return {name: made for name, made in zip(node.outputs, carried, strict=True) if name != NOTHING}


def both_hold(folding: BodyFolding, node: Node, first: str, second: str) -> str:
    result = f"{node.outputs[0]}/goes on {len(folding.values)}"
    folding.node(Node("And", (first, second), (result,), {}, name=node.name, domain="", opset=OPSET))
    return folding.known(result)


def known(folding: BodyFolding, node: Node, name: str, default: int) -> int:
    """A number that rounds are counted by."""
    if name == NOTHING:
        return default
    data = folding.values[name].data
    if data is None:
        raise DecidedByData(
            f"{node} has as many rounds as the data of {shown(name)} says: only loops that constants count are "
            "unrolled, others with fallback='numpy'",
            value=name,
        )
    return number_of(node, name, data)


def number_of(node: Node, name: str, data: Array) -> int:
    """The number, or the truth, that a value is.  Raises InvalidArguments."""
    if data.size != 1 or not np.isfinite(data).all():
        raise InvalidArguments(f"{node} is decided by {shown(name)}, which must be one number, not {shown(data)}")
    return int(data.ravel()[0])


def stacked(folding: BodyFolding, node: Node, values: list[str], number: int, axis: int = 0) -> str:
    """What all rounds hand out, along an axis of its own."""
    prefix = f"rounds of {node.outputs[0]} {number}"
    axes = folding.constant(f"{prefix} axes", np.array([axis], np.int64))
    rows = [f"{prefix}/{i}" for i in range(len(values))]
    for value, row in zip(values, rows, strict=True):
        folding.node(Node("Unsqueeze", (value, axes), (row,), attributes={}, name=node.name, domain="", opset=OPSET))
    folding.node(
        Node("Concat", tuple(rows), (prefix,), attributes={"axis": axis}, name=node.name, domain="", opset=OPSET)
    )
    return prefix


def scanned(folding: BodyFolding, node: Node) -> dict[str, str]:
    """A round for each element along an axis of what is scanned."""
    frame, body = frame_of_scan(node), node.get("body")
    axes = [axis % len(folding.values[x].shape) for axis, x in zip(frame.input_axes, frame.parts, strict=True)]
    rounds = {folding.values[x].shape[axis] for axis, x in zip(axes, frame.parts, strict=True)}
    if len(rounds) != 1 or not max(rounds):
        raise InvalidArguments(elements_differ(node, rounds))
    (steps,), carried, found = rounds, list(frame.carried), list[list[str]]()
    for i in range(steps):
        now = [element(folding, node, x, axis, steps - 1 - i if turned else i)
               for x, axis, turned in zip(frame.parts, axes, frame.input_back, strict=True)]  # fmt: skip
        results = folding.inlined(body, dict(zip(body.inputs, (*carried, *now), strict=True)))
        carried = results[: len(carried)]
        found.append(results[len(carried) :])
    ends = enumerate(zip(frame.output_axes, frame.output_back, strict=True))
    stacks = [
        stacked(folding, node, [one[i] for one in found][:: -1 if back else 1], i, end) for i, (end, back) in ends
    ]
    return {name: one for name, one in zip(node.outputs, (*carried, *stacks), strict=True) if name != NOTHING}


def element(folding: BodyFolding, node: Node, x: str, axis: int, place: int) -> str:
    """One of those along an axis."""
    result = f"{x}/{place} of axis {axis} for {node.outputs[0]}"
    index = folding.constant(f"{result}, its place", np.array(place, np.int64))
    folding.node(Node("Gather", (x, index), (result,), {"axis": axis}, name=node.name, domain="", opset=OPSET))
    return folding.known(result)


BODIES: dict[str, Callable[[BodyFolding, Node], dict[str, str]]] = {"If": chosen, "Loop": unrolled, "Scan": scanned}


def scope_of(whole: Body) -> str:
    """How names of bodies' own values begin, and no name of the model."""
    words = "branch "
    while any(name.startswith(words) for name in names_in(whole)):
        words += "of "
    return words


def scoped(body: Body, prefix: str) -> dict[str, str]:
    """Names of a branch's own values that no others have."""
    own = (*body.constants, *(name for node in body.nodes for name in node.outputs))
    return {name: prefix + name for name in own if name != NOTHING}
