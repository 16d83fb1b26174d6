"""Part of the proof of a plan: records are well formed, stay inside their views, and continue earlier ones as
stated."""

from collections.abc import Iterator, Sequence

import numpy as np

from asmdnn.errors import PlanError
from asmdnn.generators.contract import KernelWords, Range, TapList
from asmdnn.planning.phase import NOTHING, Int64, Phase
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls

WORD_BYTES = 8


def check_names(plan: Schedule) -> None:
    """Outputs are tensors that a caller passes."""
    for name in plan.outputs:
        if name not in plan.tensors:
            raise PlanError(f"{name} is said to be an output, and is no tensor of the plan")


def check_form(plan: Schedule, index: int) -> None:
    """The executor walks dense int64 records, and trusts their kernel indices."""
    phase, where = plan.phases[index], f"phase {index}"
    records, width = phase.records, 1 + len(phase.arguments)
    if records.dtype != np.int64 or not records.flags.c_contiguous or records.shape[1:] != (width,):
        raise PlanError(f"{where}: records must be dense int64[n, {width}], not {records.dtype}{records.shape}")
    if len(phase.cycles) != len(records):
        raise PlanError(f"{where}: {len(phase.cycles)} costs for {len(records)} records")
    for kernel in np.unique(records[:, 0]):
        if not 0 <= kernel < len(phase.kernels):
            raise PlanError(f"{where}: records name kernel {kernel}, there are {len(phase.kernels)}")
    for times, strides in phase.repeats:
        if times < 1 or len(strides) != width - 1:
            raise PlanError(f"{where}: a repeat of {times} rounds has {len(strides)} strides for {width - 1} arguments")
    groups = phase.groups
    if groups is not None:
        ends = (int(groups[0]), int(groups[-1])) if len(groups) > 1 else ()
        if groups.dtype != np.int64 or ends != (0, len(records)) or (np.diff(groups) < 1).any():
            raise PlanError(f"{where}: groups must be ascending int64 from 0 to {len(records)}, the records")
    for view in phase.arguments:
        check_view(plan, phase, view.buffer, where)


def check_view(plan: Schedule, phase: Phase, name: str, where: str) -> None:
    """All views of a buffer lie inside it."""
    for view in phase.arguments:
        if view.buffer != name or view == NOTHING:
            continue
        if name not in plan.tensors and name not in plan.constants and name not in plan.scratch_bytes:
            raise PlanError(f"{where}: there is no buffer {name!r}")
        end = view.offset_bytes + (view.size_bytes or 0)
        if view.offset_bytes < 0 or (view.size_bytes or 0) < 0 or end > plan.buffer_bytes(name):
            raise PlanError(f"{where}: the view {view} leaves {name}, which has {plan.buffer_bytes(name)} bytes")


def check_calls(plan: Schedule, calls: Calls, where: str) -> None:
    """The accesses of one kernel's records are inside their views."""
    for side in (calls.accesses.reads, calls.accesses.writes):
        for argument, spans in side.items():
            if (spans.ends < spans.begins).any():
                raise PlanError(
                    f"{calls.where(where)}: a footprint ends before it begins in {calls.view(argument).buffer}"
                )
            reach = spans.reach(argument)
            check_bounds(plan, calls, argument, calls.span(argument, reach.begin_bytes, reach.end_bytes), where)
    if calls.taps:
        check_taps(plan, calls, calls.taps, where)
    if calls.accesses.words:
        check_words(plan, calls, calls.accesses.words, calls.where(where))


def check_bounds(plan: Schedule, calls: Calls, argument: int, reach: tuple[int, int], where: str) -> None:
    """Bytes [first, last) from the start of a view are inside it."""
    view, (first, last) = calls.view(argument), reach
    if view == NOTHING:
        raise PlanError(f"{calls.where(where)}: its argument {argument} points to nothing")
    limit = plan.buffer_bytes(view.buffer) - view.offset_bytes if view.size_bytes is None else view.size_bytes
    if first < 0 or last > limit:
        raise PlanError(f"{calls.where(where)}: bytes [{first}, {last}) of {view} are touched, which has {limit}")


def check_taps(plan: Schedule, calls: Calls, taps: TapList, where: str) -> None:
    """Every tap of every list that the records use stays inside its views, and begins where an element does."""
    view = calls.view(taps.argument)
    if view.buffer not in plan.constants:
        raise PlanError(f"{calls.where(where)}: its tap list is in {view}, which is no constant")
    values = plan.constants[view.buffer]
    if calls.repeats(taps.argument) and any(stride for _, stride in calls.repeats(taps.argument)):
        raise PlanError(f"{calls.where(where)}: rounds move the tap list")
    lists, named = calls.offsets[:, taps.argument], calls.where(where)
    moves = {a: calls.span(a, 0, 0) for a in taps.targets}
    every = calls.offsets
    for start in np.unique(lists):
        users = every[lists == start]
        for group, offsets in read_tap_list(values, view.offset_bytes + int(start), taps, named):
            check_elements(plan, calls, offsets, taps.targets, named)
            for access in taps.groups[group]:
                column = taps.targets.index(access.argument)
                low, high = int(offsets[:, column].min()), int(offsets[:, column].max())
                reach = Range(access.argument, low + access.begin_bytes, high + access.end_bytes)
                check_bounds(plan, calls, access.argument, span_of(calls, users, reach, moves), where)


def check_elements(plan: Schedule, calls: Calls, offsets: Int64, targets: Sequence[int], where: str) -> None:
    """A count that is too large takes the next one for an offset.  Scratch has no type, so any byte may begin there."""
    for target, column in zip(targets, offsets.T, strict=True):
        name = calls.view(target).buffer
        if name in plan.tensors:
            within = column % plan.tensors[name].dtype.size_bytes != 0
            if within.any():
                raise PlanError(f"{where}: a tap is at byte {column[within][0]} of {name}, in the middle of an element")


def check_words(plan: Schedule, calls: Calls, words: KernelWords, where: str) -> None:
    """The records point to the numbers that the footprint is of, which are inside their view already."""
    view = calls.view(words.argument)
    if view.buffer not in plan.constants:
        raise PlanError(f"{where}: its numbers come from {view.buffer}, which is no constant")
    if any(stride for _, stride in calls.repeats(words.argument)):
        raise PlanError(f"{where}: rounds move its numbers")
    for start in np.unique(calls.offsets[:, words.argument]).tolist():
        first, rest = divmod(view.offset_bytes + start, WORD_BYTES)
        found = plan.constants[view.buffer][first : first + len(words.values)].tolist()
        if rest or found != list(words.values):
            raise PlanError(f"{where}: byte {start} of {view} has other numbers than the footprint is of")


def span_of(calls: Calls, users: Int64, reach: Range, moves: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """As Calls.span, of some records."""
    column = calls.offsets[:, reach.argument]
    low, high = moves[reach.argument]
    own = users[:, reach.argument]
    before, after = low - int(column.min()), high - int(column.max())
    return int(own.min()) + before + reach.begin_bytes, int(own.max()) + after + reach.end_bytes


def read_tap_list(values: Int64, start_bytes: int, taps: TapList, where: str) -> Iterator[tuple[int, Int64]]:
    """(group, int64[count, targets]) of every group that has taps."""
    at, width = start_bytes // 8, len(taps.targets)
    for group in range(len(taps.groups)):
        count = int(values[at]) if 0 <= at < len(values) else -1
        if start_bytes % 8 or count < 0 or at + 1 + count * width > len(values):
            raise PlanError(f"{where}: the tap list at byte {start_bytes} of taps leaves its constant")
        if count:
            yield group, values[at + 1 : at + 1 + count * width].reshape(count, width)
        at += 1 + count * width


def continued(plan: Schedule, index: int, old: Sequence[Calls], new: Sequence[Calls] = ()) -> set[str]:
    """The buffers in which record i of the phase writes exactly what record i of the phase before wrote; not none."""
    before, after = plan.phases[index - 1], plan.phases[index]
    buffers = [[view.buffer for view in phase.arguments] for phase in (before, after)]
    if index == 0 or buffers[0] != buffers[1] or before.records.shape != after.records.shape:
        raise PlanError(f"phase {index} continues a phase with other records or arguments")
    if before.repeats != after.repeats or before.alone != after.alone or not same(before.groups, after.groups):
        raise PlanError(f"phase {index} continues a phase with other rounds or groups")
    old_writes = {one.spec: one.accesses.writes for one in old}
    new_writes = {one.spec: one.accesses.writes for one in new}
    written: set[int] = set()
    others: set[int] = set()  # arguments through which other bytes are written
    for first, second in np.unique(np.stack((before.records[:, 0], after.records[:, 0]), 1), axis=0):
        sides = old_writes[before.kernels[first]], new_writes[after.kernels[second]]
        written |= sides[1].keys()
        for argument, spans in sides[1].items():
            was = sides[0].get(argument)
            if was is None or was.pairs() != spans.pairs():
                others.add(argument)
    if written == others:
        raise PlanError(f"phase {index} writes other bytes than the phase it continues")
    moved = {a: before.records[:, 1 + a] != after.records[:, 1 + a] for a in sorted(written - others)}
    kept = {
        after.arguments[a].buffer
        for a, changed in moved.items()
        if not changed.any() and after.arguments[a] == before.arguments[a]
    }
    if not kept:
        record = min(int(changed.argmax()) for changed in moved.values())
        raise PlanError(f"phase {index}: record {record} does not continue its own output")
    return kept


def same(one: Int64 | None, other: Int64 | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
