"""What comes together from several plans keeps what each of them has under a name."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from tests.primitives.conv_case import case_of, proven


def direct(problem: str, isa: str) -> Plan:
    return proven(case_of(f"{problem} any any - -"), isa).plan


def test_constants_of_one_name_and_other_data_are_two(planned_isa: str) -> None:
    plans = [direct(f"mb1ic32ih9oc32oh9kh{k}ph{p}", planned_isa) for k, p in ((3, 1), (5, 2), (3, 1))]
    (taps, others, same) = (plan.constants["taps"] for plan in plans)
    assert np.array_equal(taps, same) and not np.array_equal(taps, others)
    assembly = Assembly(dnn.Engine(isa=planned_isa).tuning, planned_isa)
    found = []
    for plan in plans:
        done = len(assembly.phases)
        assembly.add_plan(plan, {})
        found.append({view.buffer for phase in assembly.phases[done:] for view in phase.arguments} & {"taps", "taps 2"})
    assert found == [{"taps"}, {"taps 2"}, {"taps"}]
    assert np.array_equal(assembly.constants["taps"], taps) and np.array_equal(assembly.constants["taps 2"], others)


def through_a_copy(rows: int, isa: str) -> Plan:
    """src into dst through scratch that is called copy."""
    dense, turned = (dnn.MemoryDesc((rows, 16), dnn.f32, tag) for tag in ("ab", "ba"))
    assembly = Assembly(dnn.Engine(isa=isa).tuning, isa)
    add_reorder(assembly, Reordering("src", dense, "copy", turned))
    add_reorder(assembly, Reordering("copy", turned, "dst", dense))
    assembly.scratch["copy"] = turned.size_bytes
    return assembly.plan("through a copy", {"src": dense, "dst": dense}, ("dst",))


@pytest.mark.parametrize("sizes", [(8, 24), (24, 8), (24, 8, 40)])
def test_scratch_of_one_name_ends_for_a_plan_where_it_alone_would(sizes: tuple[int, ...], planned_isa: str) -> None:
    """Else the proof of a smaller one would ask who writes the rest of the largest."""
    assembly, tensors = Assembly(dnn.Engine(isa=planned_isa).tuning, planned_isa), {}
    for rows in sizes:
        plan = through_a_copy(rows, planned_isa)
        names = {name: f"{name} of {rows}" for name in plan.tensors}
        tensors |= {names[name]: desc for name, desc in plan.tensors.items()}
        assembly.add_plan(plan, {name: View(other) for name, other in names.items()})
    whole = assembly.plan("all", tensors, tuple(name for name in tensors if name.startswith("dst")))
    whole.check()
    assert whole.scratch_bytes == {"copy": max(sizes) * 64}
    ends = [view.size_bytes for phase in whole.phases for view in phase.arguments if view.buffer == "copy"]
    assert [end or max(sizes) * 64 for end in ends] == [rows * 64 for rows in sizes for _ in range(2)]
