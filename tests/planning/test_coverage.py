"""How often elements are written, counted where writes come again and again: against counting each of them; and proofs
of plans of 4 GiB, which still find every record that is wrong."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.planning.coverage import Runs, cover, period_of
from asmdnn.planning.phase import Phase, Repeat
from asmdnn.planning.plan import Plan
from asmdnn.planning.written import Folded

ELEMENTS = 480


def random_runs(random: np.random.Generator) -> Runs:
    """Some short runs in up to two loops, all of it within ELEMENTS."""
    count = int(random.integers(1, 4))
    begins = random.integers(0, 60, count)
    loops = tuple((int(random.integers(1, 6)), int(random.choice([0, 8, 24, 48, 60]))) for _ in range(2))
    return Runs(begins, begins + random.integers(1, 30, count), tuple(loop for loop in loops if loop[1]))


def counted(runs: list[Runs]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found = np.zeros(ELEMENTS + 200, np.int64)
    for one in runs:
        starts = np.zeros(1, np.int64)
        for times, stride in one.loops:
            starts = (starts[:, None] + np.arange(times) * stride).ravel()
        for start in starts:
            for begin, end in zip(one.begins, one.ends, strict=True):
                found[start + begin : start + end] += 1
    return found


@pytest.mark.parametrize("seed", range(40))
def test_counts_are_those_of_every_element(seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = ([random_runs(random) for _ in range(2)] for _ in range(2))
    period = int(random.choice([48, 120, 240, ELEMENTS]))
    try:
        together = cover(first, period) + cover(second, period)
    except PlanError as error:
        assert "again" in str(error)  # longer than two periods, in a loop
        return
    for coverage in (together, together.simplified()):
        rows = np.repeat(coverage.times, np.diff(coverage.columns), axis=1)
        flat = np.repeat(rows, np.diff(coverage.cuts), axis=0).ravel()
        begin = int(coverage.cuts[0]) * period
        wanted = counted([*first, *second])
        assert np.array_equal(flat[: len(wanted) - begin], wanted[begin : begin + len(flat)])
        assert not wanted[:begin].any() and not wanted[begin + len(flat) :].any()


def test_periods_that_most_strides_divide() -> None:
    assert period_of([(100, 8), (3, 7)], 1000) == 56
    assert period_of([(100, 8), (3, 7)], 100) == 8  # the loop of three is written out
    assert period_of([(2, 80)], 100) == period_of([], 100) == 100


def test_what_is_missing_is_named() -> None:
    whole = [Runs(np.zeros(1, np.int64), np.full(1, ELEMENTS), ())]
    buffer = Folded("dst", 48, cover(whole, 48), cover([], 48))
    buffer.add([Runs(np.zeros(1, np.int64), np.full(1, 47), ((10, 48),))], False, "phase 0")
    assert (buffer.is_complete, buffer.unwritten) == (False, 47)
    buffer.add([Runs(np.full(1, 47), np.full(1, 48), ((9, 48),))], False, "phase 1")
    assert buffer.unwritten == ELEMENTS - 1
    buffer.add([Runs(np.full(1, ELEMENTS - 1), np.full(1, ELEMENTS), ())], False, "phase 2")
    assert buffer.is_complete
    with pytest.raises(PlanError, match="element 96 of dst is written 2 times"):
        buffer.add([Runs(np.full(1, 96), np.full(1, 97), ())], False, "phase 3")


def large(name: str) -> Plan:
    """Some GiB, in rounds of several lengths."""
    engine = dnn.Engine(isa="avx2", threads=2, machine="zen3")
    if name == "pooling":
        src, dst = (dnn.MemoryDesc((1024, 64, n, n), dnn.f32, "axb") for n in (128, 64))
        desc = dnn.PoolingForward("max", src, dst, (3, 3), (2, 2), padding_l=(1, 1), padding_r=(1, 1))
        return dnn.primitive_desc(desc, engine=engine).plan
    src, dst = (dnn.MemoryDesc((256, 64, n, n), dnn.f32, "axb") for n in (128, 256))
    return dnn.primitive_desc(dnn.ResamplingForward("linear", src, dst), engine=engine).plan


def moved(phase: Phase) -> Phase:
    records = phase.records.copy()
    records[len(records) // 2, 2] += 4
    return replace(phase, records=records)


def shorter(phase: Phase) -> Phase:
    (first, *rest) = phase.repeats
    return replace(phase, repeats=(Repeat(first.times - 1, first.strides), *rest))


def nearer(phase: Phase) -> Phase:
    (first, *rest) = phase.repeats
    strides = (first.strides[0], first.strides[1] - 4, *first.strides[2:])
    return replace(phase, repeats=(Repeat(first.times, strides), *rest))


def without_one(phase: Phase) -> Phase:
    return replace(phase, records=phase.records[1:], cycles=phase.cycles[1:])


@pytest.mark.parametrize(
    ("name", "changes"), [("pooling", (moved, shorter, nearer, without_one)), ("resampling", (moved,))]
)
def test_plans_of_gigabytes_are_proved_and_a_wrong_record_is_found(
    name: str, changes: tuple[Callable[[Phase], Phase], ...]
) -> None:
    plan = large(name)
    plan.check()
    for change in changes:
        phases = (change(plan.phases[0]), *plan.phases[1:])
        with pytest.raises(PlanError, match=r"element \d+ of dst is (never )?written"):
            replace(plan, phases=phases).check()
