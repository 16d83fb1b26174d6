"""How much of the forward pass a step keeps for its gradients, so that it fits the memory that it may have.

Ways to keep less: values that cost little are made again, or the forward pass is cut into parts, of which only what
later ones read is kept, evenly or where a caller's names say.  The steps stay those of the first plan, so a way is
joined and placed in a moment; the one of the fewest cycles that fits is taken.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.network.compiled import CompiledSegment, of_steps
from asmdnn.network.layouts import FormatPath
from asmdnn.network.network import Network
from asmdnn.network.planned import NetworkPlan, runnable
from asmdnn.network.recomputing import ThereAndBack, kept_by_cost, kept_by_parts, with_again
from asmdnn.network.static import needed
from asmdnn.records import dataclass, replace

RATES = (0.5, 1.0, 2.0, 4.0, 16.0)  # cycles a byte: maps, norms, 1x1 convolutions, others
PARTS = (2, 3, 4, 6, 8, 12, 16, 24)
CHEAP_RATE, CHEAP_SHARE = 1.0, 0.02  # without a limit: of the cycles of a step, so many may be spent on less memory
LEAST_GAIN = 0.1  # of the bytes of a call
Choice = Callable[[ThereAndBack], set[str]]


@dataclass(frozen=True, eq=False)
class Keeping:
    """A way to choose what is kept, None for everything; label: in words."""

    label: str
    choice: Choice | None = None


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A network, the bytes that a call of it takes, and how it keeps values."""

    net: Any
    nbytes: int
    keeping: Keeping


EVERYTHING = Keeping("everything is kept")


def by_cost(rate: float) -> Keeping:
    return Keeping(f"what costs up to {rate:g} cycles a byte is made again", lambda flow: kept_by_cost(flow, rate))


def cheaply(flow: ThereAndBack) -> Keeping:
    """What is made again where nobody asks for it: a step takes hardly longer."""
    budget = CHEAP_SHARE * flow.cycles(range(len(flow.steps.steps)))
    return Keeping("what costs next to nothing is made again", lambda flow: kept_by_cost(flow, CHEAP_RATE, budget))


def by_parts(count: int) -> Keeping:
    return Keeping(f"{count} parts are made again", lambda flow: kept_by_parts(flow, even_cuts(flow, count)))


def by_names(values: Sequence[str]) -> Keeping:
    """Parts that end with the steps that make these values."""

    def choice(flow: ThereAndBack) -> set[str]:
        steps = flow.steps.steps[: flow.turn]
        ends = (i + 1 for i, step in enumerate(steps) if not {*values}.isdisjoint(made_by(step)))
        return kept_by_parts(flow, [i for i in ends if i < flow.turn])

    return Keeping("what lies between checkpoints is made again", choice)


def made_by(step: Any) -> list[str]:
    return [name for node in step.nodes for name in node.outputs]


def even_cuts(flow: ThereAndBack, count: int) -> list[int]:
    """Where parts of about equal bytes begin, for the way back: of the places near, where the fewest bytes pass."""
    wanted, passing = {*flow.wanted}, passing_bytes(flow)
    total, before = 0, list[int]()
    for i in range(flow.turn):
        before.append(total)
        total += sum(flow.size(name) for name in flow.writes[i] & wanted)
    found, share = set[int](), total / count
    for k in range(1, count):
        near = [i for i in range(1, flow.turn) if abs(before[i] - k * share) <= share / 3]
        found |= {min(near, key=lambda i: passing[i])} if near else set()
    return sorted(found)


def passing_bytes(flow: ThereAndBack) -> list[int]:
    """For each step on the way forward the bytes that are made before it, and read by it or later ones there."""
    last = {name: i for i in range(flow.turn) for name in flow.reads[i] if name in flow.makers}
    change = [0] * (flow.turn + 2)
    for name, end in last.items():
        change[flow.makers[name][0] + 1] += flow.size(name)
        change[end + 1] -= flow.size(name)
    return [sum(change[: i + 1]) for i in range(flow.turn)]


def fitted(net: Any, loss: str, limit: int | None, checkpoints: Sequence[str]) -> FittedNetwork:
    """The step's network in the fastest way whose calls take no more than the limit.

    loss: the network's name of what the forward pass ends with.  Without a limit what checkpoints say is kept, or all
    but what costs next to nothing.  Raises InvalidArguments where no way fits."""
    first = FittedNetwork(net, call_bytes(net), EVERYTHING)
    if limit is not None and first.nbytes <= limit:
        return first
    flow = flow_of(net, loss)
    if limit is None and checkpoints:
        return kept_as(net, flow, by_names(checkpoints))
    if limit is None:
        cheap = kept_as(net, flow, cheaply(flow))
        return cheap if cheap.nbytes <= (1 - LEAST_GAIN) * first.nbytes else first
    found = [kept_as(net, flow, keeping) for keeping in ways(checkpoints)]
    fits = [one for one in found if one.nbytes <= limit]
    if not fits:
        least = min((first, *found), key=lambda one: one.nbytes)
        raise InvalidArguments(
            f"memory_limit is {limit} bytes, and a call takes {least.nbytes} at least ({least.keeping.label}): allow "
            "so many, or make the batch smaller"
        )
    return min(fits, key=lambda one: one.net.segments[-1].plan.cycles)


def ways(checkpoints: Sequence[str]) -> Iterator[Keeping]:
    yield from map(by_cost, RATES)
    yield from [by_names(checkpoints)] if checkpoints else map(by_parts, PARTS)


def flow_of(net: Any, loss: str) -> ThereAndBack:
    """The turn is after the last step of what the loss needs."""
    segment = net.segments[-1]  # the one that writes states
    steps, nodes = segment.way.steps, segment.graph.nodes
    forward = {name for node in needed(nodes, (net.graph.outputs[loss],)) for name in node.outputs}
    before = [i for i, step in enumerate(steps.steps) if not forward.isdisjoint(made_by(step))]
    return ThereAndBack(steps, before[-1] + 1 if before else 0)


def kept_as(net: Any, flow: ThereAndBack, keeping: Keeping) -> FittedNetwork:
    """The network with the steps of another way."""
    plan: NetworkPlan = net.planned()
    *before, segment = plan.segments
    assert isinstance(segment, CompiledSegment) and keeping.choice is not None, "training networks are native"
    way = segment.way
    again = FormatPath(with_again(flow, keeping.choice(flow)), way.cycles, way.by_themselves, way.changes)
    new = (*before, of_steps(segment.segment, segment.graph, again, segment.pool))
    how = runnable(plan.model, plan.graph, new, plan.engine)
    made = Network(lambda: plan.engine, replace(plan, segments=new, runnable=how), origin=net.origin, states=net.state)
    return FittedNetwork(made, call_bytes(made), keeping)


def call_bytes(net: Any) -> int:
    """What a call takes beside its inputs, outputs and states: the arena, and what threads have for themselves."""
    plans = [segment.plan for segment in net.segments if hasattr(segment, "plan")]
    return sum(plan.scratchpad_bytes(plan.parts(net.engine.threads)) for plan in plans)
