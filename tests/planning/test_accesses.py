"""How often a plan writes each element, against a loop over bytes; footprints of many ranges."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.corpus.families import corpus
from asmdnn.errors import PlanError
from asmdnn.generators.contract import Footprint, Range, touched_by
from asmdnn.generators.dot.matmul_shape import MatmulTile
from asmdnn.planning import touches
from asmdnn.planning.accesses import Accesses
from asmdnn.planning.check import Proof
from asmdnn.planning.phase import Phase, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.touches import Footprints
from asmdnn.planning.written import counted
from tests.planning.test_check import MadeUp

SIZE = 4
ELEMENTS = 60


def made_up(random: np.random.Generator) -> Plan:
    """Two kernels that write ranges of several lengths, here and there and again, and records of both."""
    desc, kernels = dnn.MemoryDesc((ELEMENTS,), dnn.f32, "a"), []
    for k in range(2):
        begins = random.integers(0, 20, random.integers(1, 6)).tolist()
        ranges = tuple(Range(0, SIZE * begin, SIZE * (begin + int(random.integers(0, 4)))) for begin in begins)
        kernels.append(MadeUp(f"kernel {k}", Footprint((), ranges)))
    count = int(random.integers(1, 9))
    records = np.stack((random.integers(0, 2, count), SIZE * random.integers(0, 36, count)), 1)
    phase = Phase(tuple(kernels), (View("dst"),), records, np.ones(count, np.int32))
    return Plan("made up", (phase,), {"dst": desc}, {}, {}, ("dst",))


@pytest.mark.parametrize("chunk", [1, 1 << 20])
@pytest.mark.parametrize("seed", range(40))
def test_every_write_counts(seed: int, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touches, "CHUNK", chunk)
    plan = made_up(np.random.default_rng(seed))
    phase, expected = plan.phases[0], np.zeros(ELEMENTS, np.int64)
    for kernel, offset in phase.records.tolist():
        for access in plan.specs[kernel].footprint().writes:
            for byte in range(offset + access.begin_bytes, offset + access.end_bytes, SIZE):
                expected[byte // SIZE] += 1
    writes = [(one, argument) for one in Footprints().calls_of(phase) for argument in one.accesses.writes]
    first, times = counted(Proof(plan).runs("dst", writes, phase, "phase 0"))
    assert np.array_equal(np.pad(times, (first, ELEMENTS - first - len(times))), expected)
    with pytest.raises(PlanError, match="written"):  # no such plan writes each element once
        plan.check()


def test_reads_of_what_a_record_writes_itself() -> None:
    """Also parts of these, and what begins in one of them and ends in the next."""
    writes = (Range(0, 12, 20), Range(0, 0, 4), Range(0, 4, 8))
    reads = [(0, 0, 4), (1, 2, 8), (2, 14, 16), (3, 2, 9), (4, 8, 12), (5, 11, 13), (6, 20, 21), (7, -1, 1)]
    spans = Accesses.of(Footprint(tuple(Range(*read) for read in reads), writes))
    own = [spans.reads[argument].are_among(spans.writes[0]) for argument, *_ in reads]
    assert own == [True, True, True, False, False, False, False, False]
    assert not spans.reads[0].are_among(None)
    assert spans.writes[0].reach(0) == Range(0, 0, 20)


def test_a_footprint_that_ends_before_it_begins() -> None:
    """It would take away from what others write."""
    desc = dnn.MemoryDesc((4,), dnn.f32, "a")
    kernel = MadeUp("backwards", Footprint((), (Range(0, 0, 16), Range(0, 0, 16), Range(0, 16, 0))))
    phase = Phase((kernel,), (View("dst"),), np.zeros((1, 2), np.int64), np.ones(1, np.int32))
    with pytest.raises(PlanError, match="kernel backwards: a footprint ends before it begins in dst"):
        Plan("made up", (phase,), {"dst": desc}, {}, {}, ("dst",)).check()


@pytest.mark.parametrize("by", [4, 8, -4])
def test_one_of_many_elements_astray(by: int) -> None:
    """Strided on both sides, a range for each element."""
    src = dnn.MemoryDesc((64, 32), dnn.f32, strides=(100, 3))
    dst = dnn.MemoryDesc((64, 32), dnn.f32, strides=(200, 5))
    plan = dnn.primitive_desc(dnn.Reorder(src, dst), engine=dnn.Engine(isa="avx2", threads=1)).plan
    plan.check()
    writes = plan.specs[0].footprint().writes
    astray = (*writes[:700], Range(1, writes[700].begin_bytes + by, writes[700].end_bytes + by), *writes[701:])
    broken = MadeUp("broken", Footprint(plan.specs[0].footprint().reads, astray))
    phase = replace(plan.phases[0], kernels=(broken, *plan.specs[1:]))
    plan = replace(plan, phases=(phase,))
    with pytest.raises(PlanError, match="bytes between the elements of dst are written"):
        plan.check()


def test_specs_that_say_their_arguments_say_those_of_their_footprints() -> None:
    found = [spec for spec in corpus() if hasattr(spec, "touched_arguments")]
    assert len({type(spec) for spec in found}) > 2
    for spec in found:
        assert spec.touched_arguments() == touched_by(spec.footprint()), spec.name


def test_long_sums_are_planned_without_a_range_for_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As footprints have where rows of weights lie apart: minutes, and gigabytes, of a million steps."""
    depths, footprint = list[int](), MatmulTile.footprint
    monkeypatch.setattr(MatmulTile, "footprint", lambda tile: depths.append(tile.depth) or footprint(tile))
    src, weights = dnn.MemoryDesc((8, 40_003), dnn.u8, "ab"), dnn.MemoryDesc((40_003, 8), dnn.s8, "any")
    desc = dnn.MatMul(src, weights, dnn.MemoryDesc((8, 8), dnn.s32, "ab"))
    found = dnn.implementations(desc, engine=dnn.Engine("cpu", isa="avx512_core_vnni", threads=1))
    assert any(isinstance(one, dnn.PrimitiveDesc) for one in found)
    assert max(depths, default=0) < 1000
