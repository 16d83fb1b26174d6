"""What comes together from several plans keeps what each of them has under a name."""

import numpy as np

import asmdnn as dnn
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
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
