"""What a schedule can say, on copies of rows: proved, executed by every number of threads, and refused where wrong."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from asmdnn.generators.contract import Footprint
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.planning.phase import NOTHING, Phase, Repeat, View
from asmdnn.planning.phases import barriers_before
from asmdnn.planning.plan import APART_BYTES, Plan
from asmdnn.planning.rounds import in_loops
from asmdnn.planning.splitting import cut_evenly
from asmdnn.planning.tuning import DEFAULT
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.runtime.execution import ExecutablePlan
from tests.support.plans import emulate_plan

ROW = 64  # bytes that a record copies
COPY = RowsSpec(isa="avx2", rows=1, row_bytes=ROW, src_step=0, dst_step=0)
ROWS = 48
DESC = dnn.MemoryDesc((ROWS, ROW // 4), dnn.f32, "ab")
PARTS = (1, 2, 3, 7)


def phase(records: list[tuple[int, int]], source: View, target: View, **how: object) -> Phase:
    """Copies of rows, (from, to) in rows of the views."""
    table = np.array([(0, ROW * a, ROW * b) for a, b in records], np.int64).reshape(-1, 3)
    return Phase((COPY,), (source, target), table, np.full(len(table), 100, np.int32), **how)  # type: ignore[arg-type]


def plan_of(*phases: Phase, scratch: dict[str, int] | None = None, per_part: tuple[str, ...] = ()) -> Plan:
    return Plan("copies", phases, {"src": DESC, "dst": DESC}, {}, scratch or {}, ("dst",), (), per_part)


def rows() -> np.ndarray:
    return np.arange(ROWS * ROW // 4, dtype=np.float32).reshape(ROWS, -1)


def result(plan: Plan, parts: int) -> np.ndarray:
    """What dst holds after a call in so many parts, some of them on one thread."""
    program = ExecutablePlan(replace(plan, phases=tuple(replace(p, cycles=p.cycles * 100) for p in plan.phases)), parts)
    memories = {"src": dnn.Memory(DESC), "dst": dnn.Memory(DESC)}
    memories["src"].array[...] = rows().ravel().reshape(memories["src"].array.shape)
    call = program.prepare()
    call.bind([memory.address for memory in memories.values()], keep=memories)
    call()
    return memories["dst"].array.reshape(ROWS, -1).copy()


SRC, DST, OWN, KEPT = View("src"), View("dst"), View("own"), View("kept")
ALL = [(i, i) for i in range(ROWS)]
THIRD = (Repeat(3, (16 * ROW, 16 * ROW)),)
NESTED = (Repeat(3, (16 * ROW, 16 * ROW)), Repeat(4, (4 * ROW, 4 * ROW)))
HALF = ROWS // 2 * ROW


CASES: dict[str, Callable[[], Plan]] = {
    "rounds": lambda: plan_of(phase(ALL[:16], SRC, DST, repeats=THIRD)),
    "rounds in rounds": lambda: plan_of(phase(ALL[:4], SRC, DST, repeats=NESTED)),
    "rounds backwards": lambda: plan_of(phase(ALL[:4], SRC, DST, repeats=NESTED, backwards=True)),
    "backwards": lambda: plan_of(phase(ALL, SRC, DST, backwards=True)),
    "independent": lambda: plan_of(
        phase(ALL[:12], SRC, DST, repeats=(Repeat(3, (12 * ROW, 12 * ROW)),)),
        phase(ALL[36:], SRC, DST, independent=True),
    ),
    "alone": lambda: plan_of(
        phase(ALL, SRC, KEPT, alone=True), phase(ALL, KEPT, DST, alone=True), scratch={"kept": ROWS * ROW}
    ),
    "views": lambda: plan_of(
        phase(ALL[:24], View("src", 0, HALF), View("dst", 0, HALF)),
        phase(ALL[:24], View("src", HALF), View("dst", HALF, HALF), independent=True),
    ),
    "through scratch, a view each": lambda: plan_of(
        phase(ALL[:24], SRC, KEPT),
        phase(ALL[:24], KEPT, DST),
        phase(ALL[:24], View("src", HALF), KEPT),
        phase(ALL[:24], KEPT, View("dst", HALF)),
        scratch={"kept": HALF},
    ),
    "groups": lambda: plan_of(
        Phase(
            (
                replace(COPY, rows=1),
                RowsSpec(isa="avx2", rows=2, row_bytes=ROW // 2, src_step=ROW // 2, dst_step=ROW // 2),
            ),
            (SRC, DST),
            np.array([(k, ROW * i, ROW * i) for i in range(ROWS) for k in (0, 1)], np.int64),
            np.full(2 * ROWS, 50, np.int32),
            groups=np.arange(0, 2 * ROWS + 1, 2),
        )
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_executed(case: str) -> None:
    plan = CASES[case]()
    plan.check()
    for parts in PARTS:
        assert (result(plan, parts) == rows()).all()
    copy, _ = decode_plan(encode_plan(plan))
    copy.check()
    assert (result(copy, 2) == rows()).all()
    memories = {"src": dnn.Memory(DESC), "dst": dnn.Memory(DESC)}
    memories["src"].array[...] = rows().ravel().reshape(memories["src"].array.shape)
    emulate_plan(plan, memories)
    assert (memories["dst"].array.reshape(ROWS, -1) == rows()).all()


def own_plan(size: int = 4 * ROW, **how: object) -> Plan:
    """Groups of four rows that go through scratch which every part has for itself."""
    to, back = (
        RowsSpec(isa="avx2", rows=4, row_bytes=ROW, src_step=ROW, dst_step=ROW),
        Back(isa="avx2", rows=4, row_bytes=ROW, src_step=ROW, dst_step=ROW),
    )
    table = np.array([(k, 4 * ROW * i, 0, 4 * ROW * i) for i in range(ROWS // 4) for k in (0, 1)], np.int64)
    how = {"groups": np.arange(0, len(table) + 1, 2), **how}
    made = Phase((to, back), (SRC, OWN, DST), table, np.full(len(table), 50, np.int32), **how)  # type: ignore[arg-type]
    return plan_of(made, scratch={"own": size}, per_part=("own",))


class Back(RowsSpec):
    """Rows from argument 1 to argument 2, instead of from 0 to 1."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return "back_" + super().name

    def footprint(self) -> Footprint:
        found = super().footprint()
        reads, writes = (tuple(replace(x, argument=x.argument + 1) for x in r) for r in (found.reads, found.writes))
        return replace(found, reads=reads, writes=writes)

    def generate(self, asm: Assembler) -> None:
        asm.ADD(asm.frame, 8)
        super().generate(asm)


@pytest.mark.parametrize("backwards", [False, True])
def test_scratch_of_each_part(backwards: bool) -> None:
    plan = own_plan()
    plan.check()
    assert (plan.scratchpad_bytes(1), plan.scratchpad_bytes(3)) == (4 * ROW + APART_BYTES, 3 * (4 * ROW + APART_BYTES))
    for parts in PARTS:
        assert (result(plan, parts) == rows()).all()
    if backwards:
        with pytest.raises(PlanError, match="reads bytes of own that its group has not written"):
            own_plan(backwards=True).check()


def test_wrong_groups() -> None:
    with pytest.raises(PlanError, match="reads bytes of own that its group has not written"):
        own_plan(groups=None).check()
    with pytest.raises(PlanError, match=r"bytes .* of own are touched"):
        own_plan(3 * ROW).check()
    plan = CASES["groups"]()
    with pytest.raises(PlanError, match="of dst is written 2 times"):
        plan_of(replace(plan.phases[0], groups=None)).check()
    for groups in ([0, 2, 3], [0, 3, 2, 96], [1, 96]):
        with pytest.raises(PlanError, match="groups must be ascending"):
            plan_of(replace(plan.phases[0], groups=np.array(groups))).check()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: phase(ALL[:16], SRC, DST, repeats=(Repeat(2, (16 * ROW,) * 2),)), "of dst is never written"),
        (lambda: phase(ALL[:16], SRC, DST, repeats=(Repeat(4, (16 * ROW,) * 2),)), "bytes .* of src are touched"),
        (lambda: phase(ALL[:16], SRC, DST, repeats=(Repeat(3, (16 * ROW, 15 * ROW)),)), "of dst is written 2 times"),
        (lambda: phase(ALL[:16], SRC, DST, repeats=(Repeat(3, (0, 0)),)), "of dst is written"),
        (lambda: phase(ALL[:16], SRC, DST, repeats=(Repeat(3, (16 * ROW, 16 * ROW + 2)),)), "touched|whole elements"),
        (lambda: phase(ALL[:24], SRC, View("dst", HALF + 64, HALF)), "leaves dst"),
        (lambda: phase(ALL[:24], View("src", 0, HALF - 4), DST), "bytes .* of src:1532 are touched"),
        (lambda: phase(ALL, SRC, NOTHING), "its argument 1 points to nothing"),
        (lambda: phase(ALL, SRC, View("other")), "there is no buffer 'other'"),
        (lambda: phase(ALL, SRC, DST, repeats=(Repeat(0, (0, 0)),)), "a repeat of 0 rounds"),
        (lambda: phase(ALL, SRC, DST, repeats=(Repeat(2, (0,)),)), "1 strides for 2 arguments"),
    ],
)
def test_wrong_phases(made: Callable[[], Phase], reason: str) -> None:
    with pytest.raises(PlanError, match=reason):
        plan_of(made()).check()


def test_phases_that_are_not_apart() -> None:
    body = phase(ALL[:36], SRC, DST)
    with pytest.raises(PlanError, match="of dst is written 2 times"):
        plan_of(body, phase(ALL[35:], SRC, DST, independent=True)).check()
    through = (phase(ALL, SRC, KEPT), phase(ALL, KEPT, DST, independent=True))
    with pytest.raises(PlanError, match="kept may be what other records touch, without a barrier"):
        plan_of(*through, scratch={"kept": ROWS * ROW}).check()
    copied = plan_of(phase(ALL, SRC, KEPT), phase(ALL, SRC, DST, independent=True), scratch={"kept": ROWS * ROW})
    copied.check()
    with pytest.raises(PlanError, match="dst may be what other records touch, without a barrier"):  # dst is src
        replace(copied, in_place=(("src", "dst"),)).check()
    over = (phase(ALL, SRC, KEPT), phase(ALL, KEPT, DST), phase(ALL, SRC, KEPT, independent=True))
    with pytest.raises(PlanError, match="kept may be what other records touch, without a barrier"):
        plan_of(*over, scratch={"kept": ROWS * ROW}).check()
    mixed = (phase(ALL, SRC, KEPT), replace(through[1], alone=True))
    with pytest.raises(PlanError, match="kept may be"):
        plan_of(*mixed, scratch={"kept": ROWS * ROW}).check()


def test_who_waits() -> None:
    many, alone = phase(ALL, SRC, DST), phase(ALL, SRC, DST, alone=True)
    assert barriers_before([many, alone, alone, many, alone]) == [True, True, False, True, True]
    assert barriers_before([alone, alone, replace(many, independent=True), alone]) == [True, False, False, True]


@pytest.mark.parametrize("parts", [1, 2, 5, 64])
def test_rounds_are_split_evenly(parts: int) -> None:
    made = phase(ALL[:4], SRC, DST, repeats=NESTED)
    bounds = plan_of(made).split(parts)[0]
    assert np.diff(bounds).sum() == made.count == ROWS
    assert np.diff(bounds).max() - np.diff(bounds).min() <= 1
    both = plan_of(made, replace(made, independent=True)).split(parts)
    assert both[0] is both[1], "phases that share costs share bounds"


@pytest.mark.parametrize(
    "loops", [[(7, (64, 64))], [(3, (6400, 6400)), (100, (64, 64))], [(9, (65536, 65536)), (1000, (64, 64))]]
)
def test_loops_are_the_same_records(loops: list[tuple[int, tuple[int, int]]]) -> None:
    first = np.zeros((1, 3), np.int64)
    made = in_loops((COPY,), (SRC, DST), first, np.ones(1, np.int32), loops, DEFAULT.phases)
    found = np.concatenate([one.written_out().records for one in made])
    grid = np.zeros(1, np.int64)
    for times, (step, _) in loops:
        grid = (grid[:, None] + np.arange(times) * step).ravel()
    assert sorted(found[:, 1].tolist()) == sorted(grid.tolist())
    assert [one.independent for one in made] == [False] + [True] * (len(made) - 1)


def test_plans_that_share_records_cannot_be_corrupted() -> None:
    desc = dnn.MemoryDesc((16, 16), dnn.f32, "ab")
    plan = dnn.primitive_desc(dnn.MatMul(desc, desc, desc), engine=dnn.Engine(isa="avx2", threads=1)).plan
    for array in (plan.phases[0].records, *plan.constants.values()):
        with pytest.raises(ValueError, match="read-only"):
            array[...] += 4
    with pytest.raises(ValueError, match="read-only"):
        plan.phases[0].cycles[0] = 1
    with pytest.raises(TypeError):
        plan.tensors["src"] = desc  # type: ignore[index]


def test_time_steps_and_joined_plans() -> None:
    """The same records at every step, on other rows; two plans as one call, with a scratch between them."""
    step = phase([(i, i) for i in range(4)], View("x"), View("y"))

    def at(name: str, t: int) -> View:
        return View(name, 4 * ROW * t, 4 * ROW)

    steps = [step.on({"x": at("src", t), "y": at("kept", t)}) for t in range(ROWS // 4)]
    assert all(one.records is step.records for one in steps)
    copy = phase(ALL, View("a"), View("b"))
    plan = plan_of(*steps, copy.on({"a": View("kept"), "b": View("dst")}), scratch={"kept": ROWS * ROW})
    plan.check()
    assert (result(plan, 3) == rows()).all()
    assert len({id(bounds) for bounds in plan.split(3)}) == 2
    with pytest.raises(PlanError, match="kept is never written"):
        replace(plan, phases=(*plan.phases[:3], *plan.phases[4:])).check()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rounds", [1, 3, 100_000_000])
def test_shares_are_cut_in_integers(rounds: int) -> None:
    """Whatever a record costs: the cuts ascend from the first record to the last."""
    for costs in ([1] * 7, [1 << 30] * 5, [5, 1 << 31, 3]):
        cuts = cut_evenly(np.cumsum([0, *costs], dtype=np.int64), 4, rounds)
        assert cuts.dtype == np.int64
        assert (cuts[0], cuts[-1]) == (0, rounds * len(costs))
        assert (np.diff(cuts) >= 0).all()
    even = cut_evenly(np.arange(9, dtype=np.int64), 4, rounds)
    assert even.tolist() == [rounds * 2 * part for part in range(5)]


def test_barriers_that_nobody_needs() -> None:
    """Only before what reads what was written, writes what was read, or writes scratch again; dst may be src."""
    other, scratch = View("other"), {"kept": ROWS * ROW, "other": ROWS * ROW}
    whole = [phase(ALL, *way) for way in ((SRC, KEPT), (SRC, other), (KEPT, other), (other, KEPT), (KEPT, DST))]
    plan = without_needless_barriers(plan_of(*whole, scratch=scratch))
    assert [one.independent for one in plan.phases] == [False, True, False, False, False]
    plan.check()
    goes_on = phase(ALL, KEPT, DST, independent=True)  # of the phase before it, but not of the first
    plan = without_needless_barriers(plan_of(*whole[:2], goes_on, scratch=scratch))
    assert [one.independent for one in plan.phases] == [False, False, True]
    plan.check()
    plain = plan_of(phase(ALL, SRC, KEPT), phase(ALL, SRC, DST), scratch={"kept": ROWS * ROW})
    assert without_needless_barriers(plain).phases[1].independent
    assert not without_needless_barriers(replace(plain, in_place=(("src", "dst"),))).phases[1].independent
