"""Part of the proof of a plan: records of one group run in order, on one thread, possibly in scratch of its own."""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from asmdnn.errors import PlanError
from asmdnn.planning.accesses import Spans, spans_of, united
from asmdnn.planning.bounds import read_tap_list
from asmdnn.planning.coverage import Runs
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls
from asmdnn.records import dataclass

Stamps = dict[str, npt.NDArray[np.int32]]  # of every byte of a buffer the group that wrote it last
Piece = tuple[Int64, Int64, Int64, tuple[tuple[int, int], ...]]  # records, begins, ends, loops


def merged_by_group(pieces: Sequence[Piece], groups: Int64, where: str) -> list[Runs]:
    """The elements that each group writes, each once, though several of its records may write it."""
    loops = {loop for *_, loop in pieces}
    if len(loops) > 1:
        raise PlanError(f"{where}: arguments of groups move by different bytes a round")
    numbers, begins, ends = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    group = np.searchsorted(groups, numbers, side="right") - 1
    room = int(ends.max()) + 1
    starts, stops = united(group * room + begins, group * room + ends)
    base = starts // room * room
    return [Runs(starts - base, stops - base, *loops)]


def check_groups(plan: Schedule, phase: Phase, calls: Sequence[Calls], ready: set[str], where: str) -> None:
    """Check that what a group reads of incomplete scratch, such as its own, an earlier record of it has written."""
    buffers = {one.view(a).buffer for one in calls for a in (*one.accesses.reads, *one.moved)} - ready - {""}
    for name in buffers:
        moves = {tuple(r.strides[a] for r in phase.repeats) for a, v in enumerate(phase.arguments) if v.buffer == name}
        if len(moves) > 1:
            raise PlanError(f"{where}: arguments of {name} move by different bytes a round")
    groups = np.arange(len(phase.records) + 1) if phase.groups is None else phase.groups
    kernels = [Ordered.of(one, buffers) for one in calls]
    own = {number: one for one in kernels for number in one.calls.numbers.tolist()}
    lists = {one.taps.argument for one in calls if one.taps}  # say what is read, as places do
    columns = [0, *(1 + a for a, view in enumerate(phase.arguments) if view.buffer in buffers or a in lists)]
    known: set[bytes] = set()
    stamps = {name: np.zeros(plan.buffer_bytes(name), np.int32) for name in buffers}
    for group, (begin, end) in enumerate(zip(groups[:-1].tolist(), groups[1:].tolist(), strict=True), 1):
        key = np.ascontiguousarray(phase.records[begin:end][:, columns]).tobytes()
        if key in known:
            continue
        known.add(key)
        order = range(end - 1, begin - 1, -1) if phase.backwards else range(begin, end)
        for number in order:
            check_order(plan, own[number], number, stamps, group, where)


@dataclass(frozen=True, eq=False, slots=True)
class Ordered:
    """What a kernel's records touch of the buffers that are proved in order: by argument, each byte once."""

    calls: Calls
    reads: dict[int, list[tuple[int, int]]]
    writes: dict[int, list[tuple[int, int]]]

    @classmethod
    def of(cls, calls: Calls, buffers: set[str]) -> "Ordered":
        def among(touched: Mapping[int, Spans]) -> dict[int, list[tuple[int, int]]]:
            return {a: spans.merged() for a, spans in touched.items() if calls.view(a).buffer in buffers}

        return cls(calls, among(calls.accesses.reads), among(calls.accesses.writes))

    def start(self, number: int, argument: int) -> int:
        return self.calls.view(argument).offset_bytes + int(self.calls.phase.records[number, 1 + argument])


def check_order(plan: Schedule, one: Ordered, number: int, stamps: Stamps, group: int, where: str) -> None:
    """Check one record: what it reads bears its group's stamp, what it writes gets it."""
    taps = taps_of(plan, one, number, stamps.keys(), where)
    for argument, ranges in itertools.chain(one.reads.items(), taps):
        name, start = one.calls.view(argument).buffer, one.start(number, argument)
        for begin, end in ranges:
            if (stamps[name][start + begin : start + end] != group).any():
                raise PlanError(f"{where}: record {number} reads bytes of {name} that its group has not written")
    for argument, ranges in one.writes.items():
        name, start = one.calls.view(argument).buffer, one.start(number, argument)
        for begin, end in ranges:
            stamps[name][start + begin : start + end] = group


def taps_of(
    plan: Schedule, one: Ordered, number: int, buffers: Collection[str], where: str
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """(argument, bytes from its pointer) of what a record reads of the buffers through its tap list."""
    taps, view = one.calls.taps, one.calls.view
    if taps is None or not any(view(argument).buffer in buffers for argument in taps.targets):
        return
    values = plan.constants[view(taps.argument).buffer]
    for group, offsets in read_tap_list(values, one.start(number, taps.argument), taps, where):
        for argument, spans in spans_of(taps.groups[group]).items():
            if view(argument).buffer in buffers:
                moved = offsets[:, taps.targets.index(argument), None]
                yield argument, Spans((moved + spans.begins).ravel(), (moved + spans.ends).ravel()).merged()
