"""Part of the proof of a plan: an input that may be the memory of an output is read before it is written over.

No phase reads it after one that has written there.  Within a phase, where records run in any order, a record reads only
what it writes itself there, or what records after it in its group write.  Footprints have no order: that a kernel reads
an element before it writes it is for the tests to say, which run each pair in place.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from asmdnn.errors import PlanError
from asmdnn.planning.accesses import united
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls, Extent, in_chunks
from asmdnn.records import dataclass, field, replace

MOST_IN_ORDER = 1 << 24  # bytes of an output that are looked at one by one
NOBODY = -1


def check_pairs(plan: Schedule) -> None:
    """Pairs are of an input and an output that lie alike."""
    for pair in plan.in_place:
        if len(pair) != 2 or not {*pair} <= plan.tensors.keys():
            raise PlanError(f"in_place has {pair}, which names no input and an output whose memory it may be")
        name, output = pair
        if name in plan.outputs or output not in plan.outputs:
            raise PlanError(f"in_place has {pair}, the first must be an input, the second an output")
        if plan.tensors[name] != plan.tensors[output]:
            raise PlanError(f"in_place has {pair}, which lie otherwise: {plan.tensors[name]}, {plan.tensors[output]}")


@dataclass(eq=False)
class Replaced:
    """outputs: of each input those whose memory it may be.  written: what phases have written of them."""

    plan: Schedule
    outputs: Mapping[str, tuple[str, ...]] = field(init=False)
    written: list[Extent] = field(default_factory=list)

    def __post_init__(self) -> None:
        pairs = self.plan.in_place
        self.outputs = {name: tuple(y for x, y in pairs if x == name) for name, _ in pairs}

    def places(self, extents: Iterable[Extent]) -> list[Extent]:
        """Where inputs may lie in outputs."""
        return [replace(x, buffer=output) for x in extents for output in self.outputs.get(x.buffer, ())]

    def phase(self, phase: Phase, calls: Sequence[Calls], where: str) -> None:
        """Check what a phase reads, and record what it writes."""
        for one in calls if self.outputs else ():
            for argument in sorted({*one.accesses.reads, *one.moved}):
                for place in self.places([reach(one, argument)]):
                    if place.overlaps(self.written):
                        raise PlanError(f"{one.where(where)}: {said(one, argument, place)}")
                    self.check_order(calls, one, argument, place, where)
        outputs = {output for _, output in self.plan.in_place}
        self.written += [extent for one in calls for _, extent in one.writes if extent.buffer in outputs]

    def check_order(self, calls: Sequence[Calls], one: Calls, argument: int, place: Extent, where: str) -> None:
        """No record reads what another one may have written before."""
        writes = [(x, a) for x in calls for a, extent in x.writes if place.overlaps([extent])]
        if not writes or reads_its_own(one, argument, place.buffer):
            return
        record = argument not in one.moved and first_late(writes, one, argument)
        if record is not None:
            raise PlanError(f"{one.where(where)}: {said(one, argument, place)} by other records")


def reach(one: Calls, argument: int) -> Extent:
    """The bytes that calls read through an argument: of one that a tap list moves, maybe all of its view."""
    view, spans = one.view(argument), one.accesses.reads.get(argument)
    if argument in one.moved or spans is None:
        end = 1 << 62 if view.size_bytes is None else view.offset_bytes + view.size_bytes
        return Extent(view.buffer, view.offset_bytes, end)
    return one.extent(argument, spans)


def reads_its_own(one: Calls, argument: int, buffer: str) -> bool:
    """Whether every record reads through an argument only bytes that it writes at the same place of a buffer."""
    written = [
        x for a, x in one.accesses.writes.items() if one.view(a).buffer == buffer and one.same_bytes(argument, a)
    ]
    if argument in one.moved or not written:
        return False
    begins, ends = united(np.concatenate([x.begins for x in written]), np.concatenate([x.ends for x in written]))
    first, last = (np.array(x) for x in zip(*one.accesses.reads[argument].merged(), strict=True))
    at = np.searchsorted(begins, first, side="right") - 1
    return bool(((at >= 0) & (last <= ends[at])).all())


def said(one: Calls, argument: int, place: Extent) -> str:
    return f"{one.view(argument).buffer} is read after {place.buffer}, whose memory it may be, was written"


def first_late(writes: Sequence[tuple[Calls, int]], one: Calls, argument: int) -> int | None:
    """The first record that reads bytes which neither it nor one after it in its group writes; of all, if that is not
    known.

    Rounds move all of them alike, so that the first round stands for all: other groups write none of these bytes.
    """
    phase, spans = one.phase, one.accesses.reads[argument]
    moves = {tuple(calls.repeats(a)) for calls, a in (*writes, (one, argument))}
    if len(moves) > 1 or phase.backwards:
        return 0
    written = [piece for calls, a in writes for piece in in_chunks(calls, a, calls.accesses.writes[a], 0)]
    low, high = min(int(x.min()) for _, x, _ in written), max(int(x.max()) for *_, x in written)
    if high - low > MOST_IN_ORDER:
        return 0
    first, last = first_and_last(written, low, high)
    groups = np.arange(len(phase.records) + 1) if phase.groups is None else phase.groups
    for numbers, begins, ends in in_chunks(one, argument, spans, 0):
        some = begins < ends
        late = (begins < low) | (ends > high)
        bounds = np.stack((begins, ends), 1).clip(low, high).ravel() - low
        earliest = np.minimum.reduceat(first, bounds)[::2]
        latest = np.maximum.reduceat(last, bounds)[::2]
        late |= (earliest < numbers) | (latest >= groups[np.searchsorted(groups, numbers, side="right")])
        if (late & some).any():
            return int(numbers[(late & some).argmax()])
    return None


def first_and_last(pieces: Sequence[tuple[Int64, Int64, Int64]], low: int, high: int) -> tuple[Int64, Int64]:
    """Of each byte from low to high, and one after it, the first and the last record that writes it; NOBODY."""
    numbers, begins, ends = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    found = []
    for order in (np.argsort(-numbers, kind="stable"), np.argsort(numbers, kind="stable")):
        owners = np.full(high - low + 1, NOBODY, np.int64)
        for number, begin, end in rows(numbers[order], begins[order] - low, ends[order] - low):
            owners[begin:end] = number
        found.append(owners)
    return found[0], found[1]


def rows(*columns: Int64) -> Iterator[tuple[int, int, int]]:
    return zip(*(column.tolist() for column in columns), strict=True)
