"""Loops and branches that data decide: each body is a network of its own, planned once, called as often as data say.

https://onnx.ai/onnx/operators/onnx__Loop.html: a loop ends when its count is reached or its condition does not hold.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.network.folding.bodies import number_of
from asmdnn.network.folding.scans import elements_differ, frame_of_scan
from asmdnn.network.graph import NOTHING, Array, Body, Model, Node, TensorType, reads_of
from asmdnn.network.network import Network
from asmdnn.records import replace

MOST_ROUNDS: Final = 1_000_000  # of a loop that data end
Known = Mapping[str, Array]
MOST_KINDS: Final = 8  # of arrays that a body is called on, whose networks are kept
Kinds = tuple[tuple[str, Any, int], ...]
MakeNetwork = Callable[[Model], Network]


class BodyCalls:
    """Calls of a body on arrays, and on values of the graph around it, of which those that are fixed are constants in
    its network."""

    def __init__(self, model: Model, body: Body, make: MakeNetwork) -> None:
        self.model, self.body, self.make = model, body, make
        self.captured = sorted(reads_of(body))
        self._networks: dict[Kinds, Network] = {}

    def __call__(self, inputs: Known, around: Known, fixed: Known) -> list[Array]:
        """The body's results, in its order."""
        given = {**inputs, **{name: around[name] for name in self.captured}}
        net = self.network(given, fixed)
        found = net.run({name: np.asarray(given[name]) for name in net.inputs})
        return [found[name] for name in self.body.outputs]

    def network(self, given: Known, fixed: Known) -> Network:
        """For arrays of these types and numbers of dims, which the first round may change."""
        kinds = tuple((name, x.dtype, x.ndim) for name, x in given.items() if name not in fixed)
        if kinds not in self._networks:
            if len(self._networks) == MOST_KINDS:
                self._networks.clear()
            types = {name: TensorType(dtype, (None,) * ndim) for name, dtype, ndim in kinds}
            constants = {**self.body.constants, **{name: x for name, x in fixed.items() if name in given}}
            body = replace(self.body, inputs=types, constants=constants)
            self._networks[kinds] = self.make(replace(self.model, body=body))
        return self._networks[kinds]


class BranchCalls:
    """An If, of which only the branch that data choose is computed."""

    def __init__(self, model: Model, node: Node, make: MakeNetwork) -> None:
        self.node = node
        bodies = [node.get(name) for name in ("else_branch", "then_branch")]
        if any(not isinstance(body, Body) or len(body.outputs) != len(node.outputs) for body in bodies):
            raise InvalidArguments(f"{node} has no two branches with {counted(len(node.outputs), 'result')}")
        self.branches = [BodyCalls(model, body, make) for body in bodies]

    def __call__(self, around: Known, fixed: Known) -> Sequence[Array]:
        (name,) = self.node.inputs
        return self.branches[bool(number_of(self.node, name, around[name]))]({}, around, fixed)


class LoopCalls:
    """A Loop, a round of which is a call."""

    def __init__(self, model: Model, node: Node, make: MakeNetwork) -> None:
        body, carried = node.get("body"), node.inputs[2:]
        fits = isinstance(body, Body) and len(body.inputs) == 2 + len(carried)
        if not fits or len(body.outputs) != 1 + len(node.outputs) or len(node.outputs) < len(carried):
            raise InvalidArguments(f"{node} has no body with {len(carried)} values that go on and what it hands out")
        self.node, self.body, self.carried = node, body, carried
        self.calls = BodyCalls(model, body, make)

    def __call__(self, around: Known, fixed: Known) -> Sequence[Array]:
        """Raises InvalidArguments for a loop that does not end."""
        limit, condition = (*self.node.inputs, NOTHING, NOTHING)[:2]
        most = None if limit == NOTHING else number_of(self.node, limit, around[limit])
        goes_on = condition == NOTHING or bool(number_of(self.node, condition, around[condition]))
        counter, going, *names = self.body.inputs
        now = {name: around[given] for name, given in zip(names, self.carried, strict=True)}
        constants = {**fixed, **{name: now[name] for name in self.unchanged(names) & self.fixed_first(names, fixed)}}
        rounds = list[list[Array]]()
        while goes_on and (most is None or len(rounds) < most):
            if len(rounds) == MOST_ROUNDS:
                raise InvalidArguments(f"{self.node} goes on after {MOST_ROUNDS} rounds: its condition must end it")
            inputs = {counter: np.array(len(rounds), np.int64), going: np.array(True), **now}
            again, *made = self.calls(inputs, around, constants)
            now = dict(zip(names, made[: len(names)], strict=True))
            rounds.append(made[len(names) :])
            goes_on = bool(number_of(self.node, self.body.outputs[0], again))
        return [*now.values(), *self.handed_out(rounds)]

    def unchanged(self, names: Sequence[str]) -> set[str]:
        """What every round passes on as it is, such as weights."""
        return {name for name, made in zip(names, self.body.outputs[1:], strict=False) if name == made}

    def fixed_first(self, names: Sequence[str], fixed: Known) -> set[str]:
        return {name for name, given in zip(names, self.carried, strict=True) if given in fixed}

    def handed_out(self, rounds: Sequence[Sequence[Array]]) -> list[Array]:
        """Rows of all rounds, one after another."""
        count = len(self.node.outputs) - len(self.carried)
        if count and not rounds:
            raise InvalidArguments(f"{self.node} has no rounds, so that nobody knows the dims of what it hands out")
        try:
            return [np.stack([one[i] for one in rounds]) for i in range(count)]
        except ValueError:
            raise InvalidArguments(
                f"{self.node} hands out {shown(self.node.outputs[-1])} of other dims each round"
            ) from None


class ScanCalls:
    """A Scan with too many elements to be unrolled: a call for each of them."""

    def __init__(self, model: Model, node: Node, make: MakeNetwork) -> None:
        self.node, self.frame = node, frame_of_scan(node)
        self.calls = BodyCalls(model, node.get("body"), make)

    def __call__(self, around: Known, fixed: Known) -> Sequence[Array]:
        """Raises InvalidArguments for parts of different lengths, and results of other dims each time."""
        frame, arrays = self.frame, [around[name] for name in self.frame.parts]
        try:
            parts = [np.moveaxis(x, axis, 0) for x, axis in zip(arrays, frame.input_axes, strict=True)]
        except ValueError:
            raise InvalidArguments(f"{self.node} scans axis {frame.input_axes}, which its operands have not") from None
        (steps, *others) = {len(x) for x in parts}
        if others or not steps:
            raise InvalidArguments(elements_differ(self.node, {steps, *others}))
        carried, rounds = [around[name] for name in frame.carried], list[list[Array]]()
        names = (*self.calls.body.inputs,)
        for i in range(steps):
            now = [x[steps - 1 - i if back else i] for x, back in zip(parts, frame.input_back, strict=True)]
            made = self.calls(dict(zip(names, (*carried, *now), strict=True)), around, fixed)
            carried = made[: len(carried)]
            rounds.append(made[len(carried) :])
        try:
            return [*carried, *map(self.stacked, zip(*rounds, strict=True), frame.output_axes, frame.output_back)]
        except ValueError:
            raise InvalidArguments(f"{self.node} hands out parts of other dims each time") from None

    @staticmethod
    def stacked(rows: Sequence[Array], axis: int, back: int) -> Array:
        return np.stack(rows[:: -1 if back else 1], axis)


CALLS: Final[Mapping[str, Callable[..., Callable[..., Sequence[Array]]]]] = {
    "If": BranchCalls, "Loop": LoopCalls, "Scan": ScanCalls,
}  # fmt: skip
