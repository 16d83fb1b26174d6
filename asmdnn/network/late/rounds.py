"""Branches and rounds of a walk: bodies whose nodes are walked as those around them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.network.body_calls import MOST_ROUNDS
from asmdnn.network.folding.bodies import number_of
from asmdnn.network.folding.bounds import FoldingBounds
from asmdnn.network.graph import NOTHING, Body, Node
from asmdnn.network.late.lists import inputs_of, tensor

Values = dict[str, Any]  # arrays, and lists as tuples of arrays
Step = Callable[[Values, FoldingBounds], None]
MakeSteps = Callable[[Sequence[Node], Values], list[Step]]  # of nodes, and of constants to which it adds
BRANCHES: Final = "else_branch", "then_branch"


class BodyWalk:
    """The steps of a body."""

    def __init__(self, body: Body, make: MakeSteps) -> None:
        self.constants: Values = dict(body.constants)
        self.steps, self.outputs = make(body.nodes, self.constants), body.outputs

    def run(self, values: Values, bounds: FoldingBounds) -> list[Any]:
        """Its results; values: what it may read, to which its own are added."""
        values |= self.constants
        for step in self.steps:
            step(values, bounds)
        return [values[name] for name in self.outputs]


def branches(node: Node, make: MakeSteps) -> Step:
    """An If, of which the branch is walked that its condition chooses."""
    walks = list[BodyWalk]()
    for name in BRANCHES:
        body: Any = node.get(name)
        if len(body.outputs) != len(node.outputs):
            raise InvalidArguments(f"{node} has no branch with {counted(len(node.outputs), 'result')}")
        walks.append(BodyWalk(body, make))

    def choose(values: Values, bounds: FoldingBounds) -> None:
        (condition,) = node.inputs
        walk = walks[bool(number_of(node, condition, tensor(node, condition, values)))]
        values.update(zip(node.outputs, walk.run(dict(values), bounds), strict=True))

    return choose


def rounds(node: Node, make: MakeSteps) -> Step:
    """A Loop, whose values may be lists."""
    body, carried = node.get("body"), node.inputs[2:]
    fits = isinstance(body, Body) and len(body.inputs) == 2 + len(carried)
    if not fits or len(body.outputs) != 1 + len(node.outputs) or len(node.outputs) < len(carried):
        raise InvalidArguments(f"{node} has no body with {len(carried)} values that go on and what it hands out")
    walk, (counter, going, *names) = BodyWalk(body, make), body.inputs

    def turn(values: Values, bounds: FoldingBounds) -> None:
        limit, condition = (*node.inputs, NOTHING, NOTHING)[:2]
        most = None if limit == NOTHING else number_of(node, limit, tensor(node, limit, values))
        goes_on = condition == NOTHING or bool(number_of(node, condition, tensor(node, condition, values)))
        now, handed, count = inputs_of(node, values)[2:], list[list[Any]](), 0
        inside = dict(values)
        while goes_on and (most is None or count < most):
            if count == MOST_ROUNDS:
                raise InvalidArguments(f"{node} goes on after {MOST_ROUNDS} rounds: its condition must end it")
            inside |= {counter: np.array(count, np.int64), going: np.array(True), **dict(zip(names, now, strict=True))}
            again, *made = walk.run(inside, bounds)
            now, count = made[: len(names)], count + 1
            handed.append(made[len(names) :])
            goes_on = bool(number_of(node, body.outputs[0], tensor(node, body.outputs[0], {body.outputs[0]: again})))
        values.update(zip(node.outputs, [*now, *stacked(node, handed)], strict=True))

    def stacked(node: Node, handed: Sequence[Sequence[Any]]) -> list[Any]:
        """Rows of all rounds, one after another."""
        several = len(node.outputs) - len(carried)
        if several and not handed:
            raise InvalidArguments(f"{node} has no rounds, so that nobody knows the dims of what it hands out")
        try:
            return [np.stack([one[i] for one in handed]) for i in range(several)]
        except ValueError:
            last = shown(node.outputs[-1])
            raise InvalidArguments(f"{node} hands out {last} of other dims each round") from None

    return turn


BODIES: Final[Mapping[str, Callable[[Node, MakeSteps], Step]]] = {"If": branches, "Loop": rounds}
