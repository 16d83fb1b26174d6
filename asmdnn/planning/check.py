"""The proof of a plan, from its schedule and its kernels' footprints, without running anything.

1. Well formed: records are what the executor reads, and name kernels that exist.
2. In bounds: every byte that a record reads or writes lies inside the buffer that the argument points into.
3. Disjoint: no two records of a phase write the same element, and none reads what another one writes.
4. Complete: every element of an output tensor, zero padding included, is written, and of a scratch buffer every
   element that is read, before it is.  Phases may each write a part; an element is written again only after all have
   been.  Scratch may have gaps, such as between rows that would share the sets of L1.
5. Continued: a phase without a barrier in front goes on, record by record, with what the phase before has written.
   What else it writes is no part of what was written since the last barrier, and it reads nothing of that.
"""

from collections.abc import Iterator

import numpy as np

from asmdnn.errors import AsmdnnError
from asmdnn.generators.contract import Range, TapList
from asmdnn.planning.accesses import Accesses, Spans
from asmdnn.planning.plan import Int64, Phase, Plan

SCRATCH_ELEMENT_BYTES = 4  # what kernels keep between phases is f32
CHUNK = 1 << 20  # writes that are looked at together, at least: more cost memory, fewer cost time


class PlanError(AsmdnnError):
    """A plan that would read or write the wrong bytes; a defect of asmdnn, never the caller's."""


def check_plan(plan: Plan) -> None:
    """Raise PlanError unless all of the above holds."""
    ready = set(plan.tensors) | set(plan.constants)
    written: set[str] = set()
    partial: dict[str, tuple[str, Int64]] = {}  # of buffers not yet complete: who wrote last, how often each element
    fresh: set[str] = set()  # buffers written since the last barrier
    for index, phase in enumerate(plan.phases):
        check_form(plan, index)
        for name in sorted(partial.keys() & read_of_others(plan, phase)) if partial else ():
            check_read(plan, phase, name, *partial[name])
        counts = check_phase(plan, phase, ready, f"phase {index}")
        kept = continued(plan, index) if phase.continues else set()
        if phase.continues:
            check_unsynchronised(plan, index, counts.keys() - kept - partial.keys(), fresh)
        for name, times in counts.items():
            if name not in kept and name in partial:
                times = times + partial.pop(name)[1]
            if not check_written(plan, name, times, f"phase {index}") and name not in kept:
                partial[name] = (f"phase {index}", times)
        fresh = counts.keys() | (fresh if phase.continues else set())
        written |= counts.keys()
        ready |= counts.keys()
    for name in sorted(partial.keys() - plan.scratch_bytes.keys()):  # scratch may have gaps that nobody reads
        raise incomplete(plan, name, *partial[name])
    wanted = {name for name in (*plan.outputs, *plan.scratch_bytes) if plan.buffer_bytes(name)}
    for name in sorted(wanted - written):
        raise PlanError(f"{name} is never written")
    for name in sorted(written - set(plan.outputs) - set(plan.scratch_bytes)):
        raise PlanError(f"{name} is written, which is neither an output nor scratch")


def check_form(plan: Plan, index: int) -> None:
    """The executor walks dense int64 records of one width, and trusts their kernel indices."""
    phase, width = plan.phases[index], 1 + len(plan.phases[0].arguments)
    records = phase.records
    if len(phase.arguments) + 1 != width:
        raise PlanError(f"phase {index} has {len(phase.arguments)} arguments, phase 0 has {width - 1}")
    if records.dtype != np.int64 or not records.flags.c_contiguous or records.shape[1:] != (width,):
        raise PlanError(f"phase {index}: records must be dense int64[n, {width}], not {records.dtype}{records.shape}")
    if len(phase.cycles) != len(records):
        raise PlanError(f"phase {index}: {len(phase.cycles)} costs for {len(records)} records")
    for kernel in np.unique(records[:, 0]):
        if not 0 <= kernel < len(plan.specs):
            raise PlanError(f"phase {index}: records name kernel {kernel}, there are {len(plan.specs)}")


def check_phase(plan: Plan, phase: Phase, ready: set[str], where: str) -> dict[str, Int64]:
    """Check all calls of a phase; how often each element of every buffer is written."""
    edges: dict[str, Int64] = {}
    shared: set[str] = set()
    for kernel in np.unique(phase.records[:, 0]):
        spec = plan.specs[int(kernel)]
        records, accesses = phase.records[phase.records[:, 0] == kernel], Accesses.of(spec.footprint())
        read, others = names_read(phase, accesses)
        if read - ready:
            raise PlanError(f"{where}, kernel {spec.name}: {min(read - ready)} is read before any phase has written it")
        shared |= others
        check_calls(plan, phase, records, accesses, f"{where}, kernel {spec.name}")
        for argument, spans in accesses.writes.items():
            count_writes(plan, phase.arguments[argument], records[:, 1 + argument], spans, edges, where)
    if shared & edges.keys():
        raise PlanError(f"{where}: reads of {min(shared & edges.keys())} may see what other records write")
    return {name: np.cumsum(changes[:-1]) for name, changes in edges.items()}


def read_of_others(plan: Plan, phase: Phase) -> set[str]:
    """The buffers of which some record reads more than the bytes that it writes itself."""
    kernels = np.unique(phase.records[:, 0])
    return set().union(*(names_read(phase, Accesses.of(plan.specs[int(k)].footprint()))[1] for k in kernels))


def names_read(phase: Phase, accesses: Accesses) -> tuple[set[str], set[str]]:
    """The buffers that a kernel reads; and those of which it reads more than the bytes that it writes itself."""
    reads, taps = accesses.reads, accesses.taps
    moved = {phase.arguments[a] for a in (*taps.targets, taps.argument)} if taps else set()
    others = {phase.arguments[a] for a, spans in reads.items() if not spans.are_among(accesses.writes.get(a))}
    return {phase.arguments[a] for a in reads} | moved, others | moved


def check_calls(plan: Plan, phase: Phase, records: Int64, accesses: Accesses, where: str) -> None:
    """The accesses of one kernel's records are inside their buffers."""
    for side in (accesses.reads, accesses.writes):
        for argument, spans in side.items():
            if (spans.ends < spans.begins).any():
                raise PlanError(f"{where}: a footprint ends before it begins in {phase.arguments[argument]}")
            check_bounds(plan, phase, records, spans.reach(argument), where)
    if accesses.taps:
        check_taps(plan, phase, records, accesses.taps, where)


def check_bounds(plan: Plan, phase: Phase, records: Int64, access: Range, where: str) -> None:
    """The access of every record is inside its buffer."""
    name, offsets = phase.arguments[access.argument], records[:, 1 + access.argument]
    limit = plan.buffer_bytes(name)
    first, last = int(offsets.min()) + access.begin_bytes, int(offsets.max()) + access.end_bytes
    if first < 0 or last > limit:
        raise PlanError(f"{where}: bytes [{first}, {last}) of {name} are touched, which has {limit}")


def check_taps(plan: Plan, phase: Phase, records: Int64, taps: TapList, where: str) -> None:
    """Every tap of every list that the records use stays inside its buffers."""
    values = plan.constants[phase.arguments[taps.argument]]
    for start in np.unique(records[:, 1 + taps.argument]):
        users = records[records[:, 1 + taps.argument] == start]
        for group, offsets in read_tap_list(values, int(start), taps, where):
            for access in taps.groups[group]:
                column = taps.targets.index(access.argument)
                low, high = int(offsets[:, column].min()), int(offsets[:, column].max())
                reach = Range(access.argument, low + access.begin_bytes, high + access.end_bytes)
                check_bounds(plan, phase, users, reach, where)


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


def count_writes(plan: Plan, name: str, offsets: Int64, spans: Spans, edges: dict[str, Int64], where: str) -> None:
    """Add 1 to the element where a write of a record begins, and -1 to the one behind its end: the running sum says how
    often each is written.  int64[elements + 1] of every buffer."""
    size = element_bytes(plan, name)
    changes = edges.setdefault(name, np.zeros(1 - (-plan.buffer_bytes(name) // size), np.int64))
    for starts in in_chunks(offsets, spans, len(changes)):
        for sign, places in ((1, spans.begins), (-1, spans.ends)):
            elements, rest = np.divmod(starts + places, size)
            if rest.any():
                raise PlanError(f"{where}: a write of {name} is not made of whole elements")
            changes += sign * np.bincount(elements.ravel(), minlength=len(changes))


def element_bytes(plan: Plan, name: str) -> int:
    return plan.tensors[name].dtype.size_bytes if name in plan.tensors else SCRATCH_ELEMENT_BYTES


def in_chunks(offsets: Int64, spans: Spans, elements: int) -> Iterator[Int64]:
    """The offsets as columns, so many records at a time that their accesses need not more memory than the buffer."""
    together = max(1, max(CHUNK, elements) // len(spans.begins))
    return (offsets[first : first + together, None] for first in range(0, len(offsets), together))


def check_read(plan: Plan, phase: Phase, name: str, where: str, times: Int64) -> None:
    """What a phase reads of a buffer that is not complete has been written."""
    size, changes = element_bytes(plan, name), np.zeros(len(times) + 1, np.int64)
    for kernel in np.unique(phase.records[:, 0]):
        records, accesses = phase.records[phase.records[:, 0] == kernel], Accesses.of(plan.specs[kernel].footprint())
        taps = accesses.taps
        if taps and name in {phase.arguments[a] for a in (*taps.targets, taps.argument)}:
            raise incomplete(plan, name, where, times)
        for argument, spans in accesses.reads.items():
            is_read = phase.arguments[argument] == name
            for starts in in_chunks(records[:, 1 + argument], spans, len(times)) if is_read else ():
                changes += np.bincount(((starts + spans.begins) // size).ravel(), minlength=len(changes))
                changes -= np.bincount((-(-(starts + spans.ends) // size)).ravel(), minlength=len(changes))
    missing = np.flatnonzero((np.cumsum(changes[:-1]) > 0) & (times == 0))
    if len(missing):
        raise PlanError(f"{where}: element {int(missing[0])} of {name} is never written")


def check_written(plan: Plan, name: str, times: Int64, where: str) -> bool:
    """No element twice, and nothing between the elements; whether all that belong to the buffer are written."""
    if times.max(initial=0) > 1:
        raise PlanError(f"{where}: element {int(times.argmax())} of {name} is written {int(times.max())} times")
    expected = elements_of(plan, name, times)
    if int(times.sum()) != int(times[expected].sum()):
        raise PlanError(f"{where}: bytes between the elements of {name} are written")
    return bool(times[expected].all())


def incomplete(plan: Plan, name: str, where: str, times: Int64) -> PlanError:
    expected = elements_of(plan, name, times)
    return PlanError(f"{where}: element {int(expected[times[expected] == 0][0])} of {name} is never written")


def elements_of(plan: Plan, name: str, times: Int64) -> Int64:
    """The elements of a buffer, its zero padding included."""
    tensor = plan.tensors.get(name)
    return np.arange(len(times)) if tensor is None else tensor.offsets(with_padding=True).ravel()


def continued(plan: Plan, index: int) -> set[str]:
    """The buffers in which record i of the phase writes exactly what record i of the phase before wrote; not none."""
    before, after = plan.phases[index - 1], plan.phases[index]
    if index == 0 or before.arguments != after.arguments or before.records.shape != after.records.shape:
        raise PlanError(f"phase {index} continues a phase with other records or arguments")
    written: set[int] = set()
    others: set[int] = set()  # arguments through which other bytes are written
    for old, new in np.unique(np.stack((before.records[:, 0], after.records[:, 0]), 1), axis=0):
        sides = [Accesses.of(plan.specs[int(kernel)].footprint()).writes for kernel in (old, new)]
        written |= sides[1].keys()
        for argument, spans in sides[1].items():
            was = sides[0].get(argument)
            if was is None or was.pairs() != spans.pairs():
                others.add(argument)
    if written == others:
        raise PlanError(f"phase {index} writes other bytes than the phase it continues")
    moved = {a: before.records[:, 1 + a] != after.records[:, 1 + a] for a in sorted(written - others)}
    kept = {after.arguments[a] for a, changed in moved.items() if not changed.any()}
    if not kept:
        record = min(int(changed.argmax()) for changed in moved.values())
        raise PlanError(f"phase {index}: record {record} does not continue its own output")
    return kept


def check_unsynchronised(plan: Plan, index: int, names: set[str], fresh: set[str]) -> None:
    """A phase without a barrier in front reads nothing that other records have written since the last one, and writes
    nothing into buffers that were complete; `names` are those it writes, other than to go on with its own."""
    late = (read_of_others(plan, plan.phases[index]) | names) & fresh
    if late:
        raise PlanError(f"phase {index}: {min(late)} may be what other records write, without a barrier in between")
