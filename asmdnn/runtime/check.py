"""The proof of a plan, from its schedule and its kernels' footprints, without running anything.

1. In bounds: every byte that a record reads or writes lies inside the buffer that the argument points into.
2. Disjoint: no two records of a phase write the same element, and none reads what another one writes.
3. Complete: every element of an output tensor, zero padding included, and of every scratch buffer is written.
"""

from collections.abc import Iterator

import numpy as np

from asmdnn.errors import AsmdnnError
from asmdnn.generators.footprint import Footprint, Range, TapList
from asmdnn.runtime.plan import Int64, Phase, Plan

ELEMENT_BYTES = 4  # every kernel so far writes f32


class PlanError(AsmdnnError):
    """A plan that would read or write the wrong bytes; a defect of asmdnn, never the caller's."""


def check_plan(plan: Plan) -> None:
    """Raise PlanError unless the plan is in bounds, disjoint and complete."""
    for index, phase in enumerate(plan.phases):
        written: dict[str, Int64] = {}
        for spec_index in np.unique(phase.records[:, 0]):
            records = phase.records[phase.records[:, 0] == spec_index]
            spec = plan.specs[int(spec_index)]
            where = f"phase {index}, kernel {spec.name}"
            check_calls(plan, phase, records, spec.footprint(), written, where)
        for name, times in written.items():
            check_written(plan, name, times, f"phase {index}")
        if phase.continues:
            check_continuation(plan, index)


def check_continuation(plan: Plan, index: int) -> None:
    """Record i of the phase writes exactly what record i of the phase before wrote, and reads nothing else of that."""
    before, after = plan.phases[index - 1], plan.phases[index]
    same = index > 0 and before.arguments == after.arguments and before.records.shape == after.records.shape
    if not same:
        raise PlanError(f"phase {index} continues a phase with other records or arguments")
    for old, new in np.unique(np.stack((before.records[:, 0], after.records[:, 0]), 1), axis=0):
        writes = plan.specs[int(new)].footprint().writes
        if set(plan.specs[int(old)].footprint().writes) != set(writes):
            raise PlanError(
                f"phase {index}: {plan.specs[int(new)].name} writes other bytes than the phase it continues"
            )
    columns = [1 + i for i, name in enumerate(after.arguments) if name in plan.outputs or name in plan.scratch_bytes]
    moved = (before.records[:, columns] != after.records[:, columns]).any(axis=1)
    if moved.any():
        raise PlanError(f"phase {index}: record {int(moved.argmax())} does not continue its own output")


def check_calls(
    plan: Plan, phase: Phase, records: Int64, footprint: Footprint, written: dict[str, Int64], where: str
) -> None:
    """Check the records of one kernel in one phase, and count their writes."""
    for access in (*footprint.reads, *footprint.writes):
        check_bounds(plan, phase, records, access, where)
    if footprint.taps:
        check_taps(plan, phase, records, footprint.taps, where)
    outputs = {phase.arguments[access.argument] for access in footprint.writes}
    own = set(footprint.writes)
    moved = {phase.arguments[a] for a in footprint.taps.targets} if footprint.taps else set()
    shared = {phase.arguments[r.argument] for r in footprint.reads if r not in own} | moved
    if shared & outputs:
        raise PlanError(f"{where}: reads of {', '.join(sorted(shared & outputs))} may see what other records write")
    for access in footprint.writes:
        count_writes(plan, phase, records, access, written)


def check_bounds(plan: Plan, phase: Phase, records: Int64, access: Range, where: str) -> None:
    """The access of every record is inside its buffer."""
    name, offsets = phase.arguments[access.argument], records[:, 1 + access.argument]
    limit = plan.buffer_bytes(name)
    first, last = int(offsets.min()) + access.begin_bytes, int(offsets.max()) + access.end_bytes
    if first < 0 or last > limit:
        raise PlanError(f"{where}: bytes [{first}, {last}) of {name} are touched, which has {limit}")


def check_taps(plan: Plan, phase: Phase, records: Int64, taps: TapList, where: str) -> None:
    """Every tap of every list that the records use stays inside its buffers."""
    name = phase.arguments[taps.argument]
    values = plan.constants[name]
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
            raise PlanError(f"{where}: the tap list at byte {start_bytes} leaves its constant")
        if count:
            yield group, values[at + 1 : at + 1 + count * width].reshape(count, width)
        at += 1 + count * width


def count_writes(plan: Plan, phase: Phase, records: Int64, access: Range, written: dict[str, Int64]) -> None:
    """Add one to every element that a record writes."""
    name = phase.arguments[access.argument]
    times = written.setdefault(name, np.zeros(-(-plan.buffer_bytes(name) // ELEMENT_BYTES), np.int64))
    begin = (records[:, 1 + access.argument] + access.begin_bytes) // ELEMENT_BYTES
    elements = begin[:, None] + np.arange((access.end_bytes - access.begin_bytes) // ELEMENT_BYTES)
    times += np.bincount(elements.ravel(), minlength=len(times))


def check_written(plan: Plan, name: str, times: Int64, where: str) -> None:
    """No element twice; and every element that belongs to the buffer once."""
    if times.max(initial=0) > 1:
        raise PlanError(f"{where}: element {int(times.argmax())} of {name} is written {int(times.max())} times")
    expected = plan.tensors[name].offsets(with_padding=True).ravel() if name in plan.tensors else np.arange(len(times))
    if not times[expected].all():
        missing = int(expected[times[expected] == 0][0])
        raise PlanError(f"{where}: element {missing} of {name} is never written")
    if int(times.sum()) != len(expected):
        raise PlanError(f"{where}: bytes between the elements of {name} are written")
