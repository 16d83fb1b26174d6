"""Where the threads of a network meet: not between steps of independent branches."""

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.joining import arena
from asmdnn.network.joining.barriers import barriers
from asmdnn.planning.phase import Phase
from asmdnn.planning.phases import barriers_before
from tests.network.nets import compiled, engine, random, reference

LEVELS = ("avx2", "avx512_core")
DIMS = (1, 16, 12, 12)


def branches(threads: int = 2, isa: str = "avx2", l2_bytes: int = 512 << 10) -> dnn.Network:
    """Two branches of three pools each, which a product joins that the first one computes."""
    g = dnn.Graph("branches")
    x, ends = g.input("x", DIMS), []
    for branch in "ab":
        y = x
        for i in range(3):
            pool = g.apply("MaxPool", y, kernel_shape=(3, 3), pads=(1, 1, 1, 1), name=f"{branch}{i}")
            y = g.apply("Sigmoid", pool)
        ends.append(y)
    made = replace(engine(threads, isa), l2_bytes=l2_bytes)
    return g.compile(y=ends[0] * ends[1], engine=made)


def names(segment: CompiledSegment) -> list[str]:
    return [step.nodes[0].name for step in segment.steps if step.nodes]


@pytest.mark.parametrize("isa", LEVELS)
def test_branches_run_between_the_same_meetings(isa: str) -> None:
    net = branches(isa=isa)
    net.check()
    segment = compiled(net)
    assert names(segment) == ["a0", "b0", "a1", "b1", "b2", "a2"]
    assert [step.pd.plan.phases[0].alone for step in segment.steps] == [False] * 6
    assert barriers_before(segment.plan.phases) == [True, False, True, False, True, False, True]
    assert barriers(segment.steps, segment.plan.phases) == (3, 6)
    assert "3 of 6 barriers" in net.explain()
    assert "3 of 6 barriers" in net.page()


def test_steps_keep_their_order_where_values_would_leave_the_cache() -> None:
    segment = compiled(branches(l2_bytes=1024))
    assert names(segment) == ["a0", "a1", "b0", "b1", "b2", "a2"]
    assert barriers_before(segment.plan.phases) == [True, True, False, True, True, False, True]


def test_a_step_that_reads_what_another_one_writes_is_not_apart() -> None:
    segment = compiled(branches())
    plan = segment.joined.plan
    phases = [replace(phase, independent=i == 2 or phase.independent) for i, phase in enumerate(plan.phases)]
    with pytest.raises(PlanError, match=r"phase 2: .* may be what other records touch, without a barrier"):
        replace(plan, phases=tuple(phases)).check()


def test_small_steps_on_one_thread_meet_once() -> None:
    """The first shared step after them meets; one that does not read them does not."""
    g = dnn.Graph("small")
    x, s = g.input("x", DIMS), g.input("s", (1, 16, 1, 1))
    gate = g.apply("Sigmoid", g.apply("Softmax", s + 1.0, axis=1))
    pool = g.apply("MaxPool", x, kernel_shape=(3, 3), pads=(1, 1, 1, 1), name="pool")
    net = g.compile(y=g.apply("Relu", pool) * gate, z=g.apply("AveragePool", x, kernel_shape=(2, 2)), engine=engine(2))
    net.check()
    segment = compiled(net)
    alone = [phase.alone for phase in segment.plan.phases]
    assert alone == sorted(alone, reverse=True) and any(alone)
    assert sum(barriers_before(segment.plan.phases)) == 2


def in_turn(phases: tuple[Phase, ...]) -> list[int]:
    """Times as if what one thread runs had its place among what threads share beside it."""
    barriers = barriers_before(phases)
    return list(accumulate(barrier or phase.alone for phase, barrier in zip(phases, barriers, strict=True)))


@pytest.mark.parametrize("isa", LEVELS)
def test_what_one_thread_runs_beside_others_has_memory_of_its_own(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be done, and write where its result lies, before another thread has begun a shared phase in front."""
    g = dnn.Graph("mixed")
    x = g.input("x", DIMS)
    one, two = (g.apply("MaxPool", x, kernel_shape=(3, 3), pads=(p, p, p, p)) for p in (0, 1))
    shared = g.apply("MaxPool", g.apply("AveragePool", one, kernel_shape=(2, 2)), kernel_shape=(2, 2))
    small = [g.apply(op, two) for op in ("GlobalMaxPool", "GlobalAveragePool")]
    segment = compiled(g.compile(y=shared * small[0] + small[1], engine=engine(2, isa)))
    phases = segment.plan.phases
    assert [phase.alone for phase in phases] == [False, False, False, True, True, False, False]
    assert barriers_before(phases) == [True, False, True, False, False, True, True]
    assert arena.times_of(phases) == [0, 0, 1, 1, 1, 2, 3]
    arena.check_layout(segment.joined, segment.layout, segment.plan)
    monkeypatch.setattr(arena, "times_of", in_turn)
    wrong = arena.layout_of(segment.joined)
    with pytest.raises(PlanError, match="both alive at some time"):
        arena.check_layout(segment.joined, wrong, arena.placed_plan(segment.joined, wrong))


@pytest.mark.isa("avx2")
def test_equal_bits_for_every_number_of_threads() -> None:
    x = random(*DIMS)
    answers = [branches(threads)(x) for threads in (1, 2, 3)]
    assert all(np.array_equal(answers[0], y) for y in answers)
    wanted = reference(branches(1), {"x": x})["y"]
    np.testing.assert_allclose(answers[0], wanted, rtol=0, atol=1e-5 * abs(wanted).max())
