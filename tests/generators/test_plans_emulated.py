"""The convolutions of tests/primitives on an emulated CPU: whole plans of the level that this machine may lack."""

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, given, settings

from tests.primitives.conv_case import ConvCase, cases_of_file, proven
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import memories_of
from tests.primitives.tensors import assert_within, read
from tests.primitives.test_conv_phases import SPLIT, WHOLE
from tests.primitives.test_conv_shapes import CASES
from tests.support.plans import emulate_plan

EVERY_CASE = [*cases_of_file(), *SPLIT, *WHOLE]
LONG_FLOPS = 800_000  # emulated in a third of a second


def of_level(isa: str, cases: list[ConvCase]) -> list[ParameterSet]:
    slow = {case: [pytest.mark.slow] * (case.problem.flops > LONG_FLOPS) for case in cases}
    emulated = pytest.mark.emulated(isa)
    return [pytest.param(isa, case, id=f"{isa} {case}", marks=[emulated, *slow[case]]) for case in cases]


def check_emulated(isa: str, case: ConvCase) -> None:
    """Integers, so that results are equal; padding zero and gaps untouched, which `read` asserts."""
    pd, data = proven.__wrapped__(case, isa), make_data(case, integers=True)
    memories = memories_of(pd, data)
    emulate_plan(pd.plan, memories)
    assert_within(read(memories["dst"]), expected(case, data), 0.0)


@pytest.mark.parametrize(("isa", "case"), of_level("avx512_core", EVERY_CASE) + of_level("avx2", EVERY_CASE[::6]))
@pytest.mark.one_in(3)
def test_results(isa: str, case: ConvCase) -> None:
    check_emulated(isa, case)


@pytest.mark.slow
@pytest.mark.emulated("avx512_core")
@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=CASES)
def test_results_of_many_shapes(case: ConvCase) -> None:
    check_emulated("avx512_core", case)
