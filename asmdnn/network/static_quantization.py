"""`quantize` by ranges that inputs have shown: what is measured on the f32 network, and what stays f32 for a limit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.network.accuracy import share
from asmdnn.network.graph import Array, Body, Model
from asmdnn.network.network import Network
from asmdnn.network.of_model import network_of
from asmdnn.network.static_qdq.folded import folded
from asmdnn.network.static_qdq.probing import Probe, ProbedStep, collect, corrections
from asmdnn.network.static_qdq.qdq import MICROSOFT, WITH_AXES, in_qdq
from asmdnn.network.static_qdq.ranges import ByteNumbers, Calibration, Observed
from asmdnn.network.static_qdq.roles import Roles
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, replace

Feeds = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class StaticModel:
    """model: with bytes; nodes: the products that are of integers; steps: the error of each by itself, the root mean
    square of what rounding changes over that of its result; kept: those that a limit left f32."""

    model: Model
    nodes: tuple[str, ...]
    steps: Mapping[str, float]
    kept: tuple[str, ...] = ()


class StaticQuantizer:
    """Measures a model's f32 network, and writes models of bytes."""

    def __init__(
        self,
        model: Model,
        opset: int,
        feeds: Feeds,
        *,
        keep_f32: Sequence[str],
        calibration: Calibration,
        most: int,
        engine: Engine,
    ) -> None:
        """most: the largest magnitude of a weight."""
        self.feeds, self.opset, self.calibration, self.engine = feeds, opset, calibration, engine
        self.keep_f32, self.most = tuple(keep_f32), most
        opsets = dict(model.opsets) if opset >= WITH_AXES else {**model.opsets, MICROSOFT: 1}
        self.given = replace(model, body=folded(model.body, opset, keep_f32), opsets=opsets)
        self.roles = Roles(self.given.body, keep_f32)
        self.labels = {node.outputs[0]: node.name or node.outputs[0] for node in self.given.body.nodes if node.outputs}
        self.numbers = self.measured() if self.roles.products else {}
        self.steps = self.probed() if self.roles.products else {}

    def outputs_of(self, body: Body) -> Iterator[Mapping[str, Array]]:
        """Of a network of this body, for each of the feeds."""
        net = self.network(replace(self.given, body=body))
        for one in self.feeds:
            yield net.run(one)

    def network(self, model: Model) -> Network:
        return network_of(model, None, None, self.engine, "numpy")

    def measured(self) -> dict[str, ByteNumbers]:
        """Scales and zero points of all values that bytes may stand for.  Twice, so that no value is kept."""
        given = self.given.body.inputs
        made = [name for name in self.roles.stored if name not in given]
        body = replace(self.given.body, outputs=tuple(made))
        seen = {name: Observed() for name in self.roles.stored}
        for look in (Observed.widen, Observed.count)[: 1 if self.calibration.rule == "minmax" else 2]:
            for feeds, found in zip(self.feeds, self.outputs_of(body) if made else [{}] * len(self.feeds), strict=True):
                for name, one in seen.items():
                    observe(name, lambda: look(one, found[name] if name in found else feeds[name]))  # noqa: B023
        return {name: one.numbers(self.calibration) for name, one in seen.items()}

    def probed(self) -> dict[str, ProbedStep]:
        probe, steps = Probe(self.roles, self.opset, self.numbers, self.most), dict[str, ProbedStep]()
        for found in self.outputs_of(probe.body_of_both()):
            collect(steps, probe.results, found)
        return steps

    def quantized(self, more_f32: Sequence[str] = ()) -> StaticModel:
        """With these products, by result, in f32, too."""
        roles = Roles(self.given.body, (*self.keep_f32, *more_f32)) if more_f32 else self.roles
        biases = corrections(self.steps) if self.calibration.correct_bias else {}
        body = in_qdq(roles, self.opset, self.numbers, biases, self.most)
        done = [node.outputs[0] for node in self.given.body.nodes if id(node) in roles.products]
        steps = {self.labels[name]: self.steps[name].share for name in done}
        kept = tuple(self.labels[name] for name in more_f32)
        return StaticModel(replace(self.given, body=body), tuple(steps), steps, kept)

    def within(self, most: float, wanted: Sequence[Mapping[str, Array]]) -> StaticModel:
        """With the fewest products in f32, in the order of their own errors, that keep outputs within a share of their
        largest value of f32's.  Raises InvalidArguments if none may be of integers then."""
        order = sorted(self.steps, key=lambda name: -self.steps[name].share)

        def error(model: Model) -> float:
            net = self.network(model)
            return max(worst_errors([net.run(one) for one in self.feeds], wanted).values(), default=0.0)

        return fewest(order, lambda names: self.quantized(names), lambda found: error(found.model) <= most, most)


def fewest(
    order: Sequence[str],
    make: Callable[[Sequence[str]], StaticModel],
    fits: Callable[[StaticModel], bool],
    most: float,
) -> StaticModel:
    """By bisection of how many from the front are needed."""
    found = make(())
    if fits(found):
        return found
    low, high = 0, len(order)  # so many are too few, and so many leave nothing
    best = None
    while high - low > 1:
        middle = (low + high) // 2
        found = make(order[:middle])
        if fits(found):
            best, high = found, middle
        else:
            low = middle
    if best is None:
        raise InvalidArguments(f"max_error={most:g} leaves no product of integers: allow more")
    return best


def observe(name: str, look: Callable[[], None]) -> None:
    try:
        look()
    except InvalidArguments as error:
        raise InvalidArguments(f"the value {name!r} cannot have a range: {error}") from None


def worst_errors(found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]) -> dict[str, float]:
    """By output, the largest difference over the largest value, of all feeds the worst."""
    return {name: max(share(a[name], b[name]) for a, b in zip(found, wanted, strict=True)) for name in wanted[0]}
