"""Part of the proof of a plan: records of one group run in order, on one thread, possibly in scratch of its own."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from asmdnn.planning.bounds import read_tap_list
from asmdnn.planning.coverage import PlanError, Runs
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls

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
    order = np.argsort(group * room + begins, kind="stable")
    begins, ends = (group * room + begins)[order], (group * room + ends)[order]
    reached = np.maximum.accumulate(ends)
    first = np.append(True, begins[1:] > reached[:-1])
    starts = np.flatnonzero(first)
    stops = np.append(reached[starts[1:] - 1], reached[-1])
    base = begins[starts] // room * room
    return [Runs(begins[starts] - base, stops - base, *loops)]


def check_groups(plan: Schedule, phase: Phase, calls: Sequence[Calls], ready: set[str], where: str) -> None:
    """Check that what a group reads of incomplete scratch, such as its own, an earlier record of it has written."""
    buffers = {view.buffer for view in phase.arguments} - ready - {""}
    for name in buffers:
        moves = {tuple(r.strides[a] for r in phase.repeats) for a, v in enumerate(phase.arguments) if v.buffer == name}
        if len(moves) > 1:
            raise PlanError(f"{where}: arguments of {name} move by different bytes a round")
    groups = np.arange(len(phase.records) + 1) if phase.groups is None else phase.groups
    own = {number: one for one in calls for number in one.numbers.tolist()}
    columns = [0, *(1 + a for a, view in enumerate(phase.arguments) if view.buffer in buffers)]
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


def check_order(plan: Schedule, one: Calls, number: int, stamps: Stamps, group: int, where: str) -> None:
    """Check one record: what it reads bears its group's stamp, what it writes gets it."""
    for argument, begin, end in reads_of(plan, one, number, where):
        name = one.view(argument).buffer
        if name in stamps and (stamps[name][begin:end] != group).any():
            raise PlanError(f"{where}: record {number} reads bytes of {name} that its group has not written")
    for argument, spans in one.accesses.writes.items():
        name = one.view(argument).buffer
        if name in stamps:
            start = one.view(argument).offset_bytes + int(one.phase.records[number, 1 + argument])
            for begin, end in zip(spans.begins.tolist(), spans.ends.tolist(), strict=True):
                stamps[name][start + begin : start + end] = group


def reads_of(plan: Schedule, one: Calls, number: int, where: str) -> Iterator[tuple[int, int, int]]:
    """(argument, first byte, end) in the buffer of everything that a record reads."""
    record = one.phase.records[number]

    def start(argument: int) -> int:
        return one.view(argument).offset_bytes + int(record[1 + argument])

    for argument, spans in one.accesses.reads.items():
        for begin, end in zip(spans.begins.tolist(), spans.ends.tolist(), strict=True):
            yield argument, start(argument) + begin, start(argument) + end
    taps = one.taps
    if taps is None:
        return
    values = plan.constants[one.view(taps.argument).buffer]
    for group, offsets in read_tap_list(values, start(taps.argument), taps, where):
        for access in taps.groups[group]:
            for offset in offsets[:, taps.targets.index(access.argument)].tolist():
                at = start(access.argument) + offset
                yield access.argument, at + access.begin_bytes, at + access.end_bytes
