"""One piece of memory for everything that a network keeps while it runs: buffers that are not alive together share it.

Time is counted in phases; phases that no barrier separates happen at one time, unless one thread runs all of them, one
after another.  A buffer is alive from the first phase that touches it to the last.  The largest buffers are placed
first, each into the smallest gap among those that live at the same time.

Source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference (2020), greedy by size.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import NamedTuple

from asmdnn.errors import PlanError
from asmdnn.memory import MemoryDesc
from asmdnn.network.calls.running import ARENA, WEIGHTS
from asmdnn.network.joining.joined import JoinedPlan
from asmdnn.network.joining.touches import Touches
from asmdnn.planning.phase import Phase, View
from asmdnn.planning.phases import barriers_before, intervals
from asmdnn.planning.plan import ALIGNMENT_BYTES, Plan
from asmdnn.records import dataclass, replace
from asmdnn.types import u8

OWN_SCRATCH = "scratch of a part"  # what all primitives' own scratch lies in


class Life(NamedTuple):
    """The first and the last time at which a buffer is touched."""

    first: int
    last: int

    def overlaps(self, other: "Life") -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, eq=False)
class ArenaLayout:
    """Where each buffer lies in the arena, and each weight in the blob of weights, in bytes."""

    arena: Mapping[str, int]
    arena_bytes: int
    lives: Mapping[str, Life]
    weights: Mapping[str, int]
    weights_bytes: int

    def __post_init__(self) -> None:
        for name in ("arena", "lives", "weights"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def times_of(phases: tuple[Phase, ...]) -> list[int]:
    """For each phase when it happens.

    A phase that threads share has no place among those that one thread runs beside it: each may be done before
    another thread has begun its share.
    """
    times, now = list[int](), 0
    for interval in intervals(phases):
        in_turn = all(phase.alone for phase in interval)
        times += [now + i * in_turn for i in range(len(interval))]
        now = times[-1] + 1
    return times


def lives_of(plan: Plan) -> dict[str, Life]:
    """Of the scratch that all parts share, in the order in which it is first touched."""
    lives: dict[str, Life] = {}
    for time, phase in zip(times_of(plan.phases), plan.phases, strict=True):
        for view in phase.arguments:
            if view.buffer in plan.scratch_bytes and view.buffer not in plan.per_part:
                first = lives.get(view.buffer, Life(time, time)).first
                lives[view.buffer] = Life(first, time)
    return lives


def aligned(size: int, unit: int = ALIGNMENT_BYTES) -> int:
    return -(-size // unit) * unit


def layout_of(joined: JoinedPlan) -> ArenaLayout:
    """Place all buffers and weights."""
    plan = joined.plan
    lives = lives_of(plan)
    sizes = {name: aligned(plan.scratch_bytes[name]) for name in lives}
    placed = placed_in(sorted(lives, key=lambda name: (-sizes[name], lives[name])), sizes, lives)
    arena_bytes = max((placed[name] + sizes[name] for name in placed), default=0)
    weights, end = dict[str, int](), 0
    for name in joined.weights:
        weights[name] = end
        end += aligned(plan.tensors[name].size_bytes)
    return ArenaLayout(placed, arena_bytes, lives, weights, end)


def placed_in(order: Iterable[str], sizes: Mapping[str, int], lives: Mapping[str, Life]) -> dict[str, int]:
    """Where each buffer lies, one after another in this order, apart from those before that live at the same time."""
    placed, rows = dict[str, int](), list[tuple[int, int, int, int]]()
    for name in order:
        first, last = lives[name]
        taken = sorted([(begin, end) for begin, end, since, until in rows if since <= last and first <= until])
        placed[name] = begin = best_gap(sizes[name], taken)
        rows.append((begin, begin + sizes[name], first, last))
    return placed


def best_gap(size: int, taken: list[tuple[int, int]]) -> int:
    """Where so many bytes fit with the least room left over; after all if no gap holds them.  `taken` is sorted."""
    best, least, end = -1, -1, 0
    for begin, stop in taken:
        room = begin - end
        if room >= size and (best < 0 or room < least):
            best, least = end, room
        end = max(end, stop)
    return end if best < 0 else best


def placed_plan(joined: JoinedPlan, layout: ArenaLayout) -> Plan:
    """The plan with all values in one scratch buffer, and all weights in one tensor."""
    plan = joined.plan
    places = {name: View(ARENA, at, plan.scratch_bytes[name]) for name, at in layout.arena.items()}
    places |= {name: View(WEIGHTS, at, plan.tensors[name].size_bytes) for name, at in layout.weights.items()}
    own = own_scratch(plan)
    own_bytes = max((at + aligned(plan.scratch_bytes[name]) for name, at in own.items()), default=0)
    places |= {name: View(OWN_SCRATCH, at, plan.scratch_bytes[name]) for name, at in own.items()}
    tensors = {name: desc for name, desc in plan.tensors.items() if name not in layout.weights}
    if layout.weights:
        tensors[WEIGHTS] = MemoryDesc((layout.weights_bytes,), u8, "a")
    scratch = {OWN_SCRATCH: own_bytes} if own else {}
    if layout.arena_bytes:
        scratch[ARENA] = layout.arena_bytes
    phases = tuple(phase.on(places) for phase in plan.phases)
    per_part = (OWN_SCRATCH,) if own else ()
    return replace(plan, phases=phases, tensors=tensors, scratch_bytes=scratch, per_part=per_part)


def own_lives(plan: Plan) -> dict[str, Life]:
    """Of the scratch that each part has for itself, in phases, which a part runs one after another."""
    lives: dict[str, Life] = {}
    for number, phase in enumerate(plan.phases):
        for view in phase.arguments:
            if view.buffer in plan.per_part:
                lives[view.buffer] = Life(lives.get(view.buffer, Life(number, number)).first, number)
    return lives


def own_scratch(plan: Plan) -> dict[str, int]:
    """Where each lies in the piece that all of them share: those of one primitive side by side."""
    lives = own_lives(plan)
    order = sorted(lives, key=lambda name: (-plan.scratch_bytes[name], lives[name]))
    return placed_in(order, {name: aligned(plan.scratch_bytes[name]) for name in lives}, lives)


def check_layout(joined: JoinedPlan, layout: ArenaLayout, plan: Plan) -> None:
    """Prove of a placed plan that it is the joined one, that of buffers which share memory one is done with before the
    other one is begun, and that all lie inside.  Raises PlanError.

    With `joined.plan.check()`, which proves that every value is read only when it is complete, no value in the arena
    is overwritten before its last reader.
    """
    own = joined.plan
    check_placed(plan, placed_plan(joined, layout))
    check_own_scratch(own)
    check_weights(layout, own)
    touches = touches_of(own, layout)
    names = sorted(touches, key=layout.arena.__getitem__)
    for i, name in enumerate(names):
        end = layout.arena[name] + own.scratch_bytes[name]
        if layout.arena[name] < 0 or end > layout.arena_bytes:
            raise PlanError(f"{name} ends at byte {end} of the arena, which has {layout.arena_bytes}")
        for other in names[i + 1 :]:
            if layout.arena[other] >= end:
                break
            one, two = touches[name], touches[other]
            if not (one.done_before(two) or two.done_before(one)):
                raise PlanError(f"{name} and {other} share bytes of the arena, and are both alive at some time")


def check_placed(plan: Plan, expected: Plan) -> None:
    """Prove that what runs is the plan whose layout is proved, phase by phase.  Raises PlanError."""
    for name in ("tensors", "scratch_bytes", "per_part", "outputs", "in_place"):
        if getattr(plan, name) != getattr(expected, name):
            raise PlanError(f"{name} of the network are {getattr(plan, name)}, not {getattr(expected, name)}")
    if any(plan.constants.get(name) is not array for name, array in expected.constants.items()):
        raise PlanError("constants of the network are not those that were proved")
    if len(plan.phases) != len(expected.phases):
        raise PlanError(f"the network has {len(plan.phases)} phases, {len(expected.phases)} were proved")
    for number, (right, phase) in enumerate(zip(expected.phases, plan.phases, strict=True)):
        if any(value is not getattr(phase, name) for name, value in vars(right).items() if name != "arguments"):
            raise PlanError(f"phase {number} of the network is not the one that was proved")
        for view, place in zip(phase.arguments, right.arguments, strict=True):
            if view != place:
                raise PlanError(f"phase {number}: an argument is at {view}, not where it lies, {place}")


def touches_of(plan: Plan, layout: ArenaLayout) -> dict[str, Touches]:
    """Which phases touch each buffer of the arena."""
    touches: dict[str, Touches] = {}
    barriers = list(accumulate(barriers_before(plan.phases)))
    for number, phase in enumerate(plan.phases):
        for view in phase.arguments:
            if view.buffer in layout.arena:
                touches.setdefault(view.buffer, Touches([], [])).add(number, barriers[number], phase.alone)
    return touches


def check_weights(layout: ArenaLayout, plan: Plan) -> None:
    """Prove that weights lie apart, inside their piece of memory.  Raises PlanError."""
    end = 0
    for name, start in sorted(layout.weights.items(), key=lambda item: item[1]):
        if start < end:
            raise PlanError(f"weights {name} begin at byte {start}, where others lie")
        end = start + plan.tensors[name].size_bytes
    if end > layout.weights_bytes:
        raise PlanError(f"weights end at byte {end} of {layout.weights_bytes}")


def check_own_scratch(plan: Plan) -> None:
    """Prove that of two pieces of a part's own scratch which share bytes one is done with before the other one is
    begun.  Raises PlanError."""
    lives, placed = own_lives(plan), own_scratch(plan)
    names = sorted(placed, key=placed.__getitem__)
    for i, name in enumerate(names):
        end = placed[name] + plan.scratch_bytes[name]
        for other in names[i + 1 :]:
            if placed[other] >= end:
                break
            if lives[name].overlaps(lives[other]):
                raise PlanError(f"{name} and {other} share bytes of a part's own scratch, and are both alive")
