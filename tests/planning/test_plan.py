"""How plans are divided among threads, from made-up costs."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.plan import Plan
from tests.primitives.conv_case import case_of, proven
from tests.primitives.test_conv_phases import in_ranges
from tests.support.tuning import with_numbers


def phase(cycles: list[int], continues: bool = False) -> Phase:
    records = np.zeros((len(cycles), 2), np.int64)
    return Phase((), views(("dst",)), records, np.array(cycles, np.int32), continues)


def plan(*phases: Phase) -> Plan:
    return Plan("made up", phases, {}, {}, {}, ())


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("seed", range(3))
def test_every_record_belongs_to_one_part_and_parts_cost_the_same(seed: int, parts: int) -> None:
    cycles = np.random.default_rng(seed).integers(1, 1000, 40)
    (bounds,) = plan(phase(cycles.tolist())).split(parts)
    assert bounds.dtype == np.int64
    assert (bounds[0], bounds[-1], len(bounds)) == (0, 40, parts + 1)
    assert (np.diff(bounds) >= 0).all()
    fair = cycles.sum() / parts
    assert all(abs(cycles[a:b].sum() - fair) <= cycles.max() for a, b in pairwise(bounds))


def test_one_expensive_record() -> None:
    (bounds,) = plan(phase([1, 1, 1000, 1, 1])).split(3)
    assert bounds.tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize("parts", [1, 2, 4, 8])
def test_equal_records_in_equal_parts(parts: int) -> None:
    (bounds,) = plan(phase([1000] * 8)).split(parts)
    assert np.diff(bounds).tolist() == [8 // parts] * parts


def test_costs_beyond_32_bits() -> None:
    made = plan(phase([2**31 - 1] * 8))
    assert made.cycles == 8 * (2**31 - 1)
    assert made.split(4)[0].tolist() == [0, 2, 4, 6, 8]
    continued = plan(phase([2**31 - 1] * 8), phase([2**31 - 1] * 8, continues=True))
    assert [bounds.tolist() for bounds in continued.split(4)] == [[0, 2, 4, 6, 8]] * 2


def test_phases_that_continue_are_split_alike() -> None:
    made = plan(phase([1, 1, 1, 1]), phase([9, 1, 1, 1], True), phase([1, 1, 1, 9]), phase([1, 1, 1, 1], True))
    first, second, third, fourth = (bounds.tolist() for bounds in made.split(2))
    assert first == second == [0, 1, 4]
    assert third == fourth
    assert third != first


def test_nothing_to_do() -> None:
    assert plan(phase([])).split(2)[0].tolist() == [0, 0, 0]


def test_little_work_wakes_nobody() -> None:
    small = proven(case_of("mb1ic8ih2oc8oh2kh1ph0 any any - -"), "avx2", 8)
    large = proven(case_of("mb1ic64ih28oc64oh28kh3ph1 any any - -"), "avx2", 8)
    assert (small.threads, large.threads) == (1, 8)
    eager = replace(small.engine, tuning=with_numbers(small.engine.tuning, "phases", inline_cycles=1))
    assert dnn.primitive_desc(small.desc, engine=eager).threads == 8


def test_parts_are_shares() -> None:
    assert plan(phase([1, 1])).parts(1) == 1
    assert plan(phase([1] * 3)).parts(8) == 3
    assert plan(phase([1] * 8), phase([1])).parts(8) == 8


def test_equal_requests_share_a_plan(planned_isa: str) -> None:
    case = in_ranges("mb1ic40ih5oc32oh5kh3ph1 any any bias relu")
    assert proven.__wrapped__(case, planned_isa).plan is proven.__wrapped__(case, planned_isa).plan
