"""Tiles over the output, threads, dispatch: against the plan's own arrays and the problem's shape."""

from itertools import pairwise

import numpy as np
import pytest

from asmdnn.explain.model import DrawnPhase
from asmdnn.explain.tiles import owners
from tests.explain.problems import ISAS, descriptor, explained

PROBLEMS = (
    "mb1ic16ih12oc20oh12kh3ph1",
    "mb2ic8ih9oc24oh5kh3sh2ph1",
    "mb1ic128ih7oc32oh7kh3ph1",
    "mb1ic64ih14oc48oh14kh1",
    "--shuffle --dt=u8 --tag=aBx16b --axis=1 --group=4 1x128x14x14",
    "--reorder --sdt=f32 --ddt=s8 --stag=abcd --dtag=acdb 2x24x9x9",
)


def drawn(phase: DrawnPhase) -> np.ndarray:
    """int64[blocks, rows, columns]: the record of every place, as the runs say; each place at most once."""
    plane = phase.plane
    assert plane is not None
    found = np.full((len(plane.blocks), plane.rows, plane.columns), -1)
    for number, block in enumerate(plane.blocks):
        for run in plane.shapes[block.shape]:
            part = found[number, run.row, run.begin : run.end]
            assert run.begin < run.end <= plane.columns
            assert (part == -1).all()
            part[:] = block.records[run.tile]
    return found


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("words", PROBLEMS)
def test_tiles_cover_the_output_exactly(words: str, isa: str) -> None:
    pd, explanation = descriptor(words, isa), explained(words, isa)
    dst = pd.dst_desc
    for plan_phase, phase in zip(pd.plan.phases, explanation.phases, strict=True):
        found = drawn(phase)
        assert (found >= 0).all()
        owner = owners(pd.plan, plan_phase, "dst")[dst.offsets()][0]  # of the first image
        assert {tuple(plane.ravel()) for plane in found} == {tuple(plane.ravel()) for plane in owner}
        assert phase.plane is not None
        used = {record for block in phase.plane.blocks for record in block.records}
        if dst.dims[0] == 1:
            assert used == set(range(phase.records))
            assert phase.plane.of == ""
        else:
            assert phase.plane.of == f"n 0 of {dst.dims[0]}"


def test_blocks_are_runs_of_channels() -> None:
    plane = explained("mb1ic16ih12oc40oh12kh3ph1", "avx512_core").phases[0].plane
    assert plane is not None
    assert [block.name for block in plane.blocks] == ["n 0, c 0-31", "n 0, c 32-39"]
    assert plane.axes == ("h", "w")
    assert (plane.rows, plane.columns) == (12, 12)


@pytest.mark.parametrize("words", PROBLEMS)
def test_kernels_and_threads_of_tiles(words: str) -> None:
    pd, explanation = descriptor(words, "avx2"), explained(words)
    for plan_phase, phase in zip(pd.plan.phases, explanation.phases, strict=True):
        assert phase.plane is not None
        for block in phase.plane.blocks:
            for record, kernel, thread in zip(block.records, block.kernels, block.threads, strict=True):
                assert plan_phase.records[record, 0] == kernel
                part = phase.threads[thread]
                assert part.begin <= record < part.end


@pytest.mark.parametrize("words", PROBLEMS)
def test_ranges_and_sums(words: str) -> None:
    for phase in explained(words).phases:
        assert (phase.threads[0].begin, phase.threads[-1].end) == (0, phase.records)
        assert all(a.end == b.begin for a, b in pairwise(phase.threads))
        assert sum(part.cycles for part in phase.threads) == phase.cycles
        assert sum(use.records for use in phase.kernels) == phase.records
        assert sum(use.cycles for use in phase.kernels) == phase.cycles


def test_dispatch() -> None:
    chosen, other, *_ = explained().implementations
    assert (chosen.name, chosen.verdict, chosen.reason) == ("direct:avx2", "chosen", "")
    assert (other.name, other.verdict) == ("reorder+direct:avx2", "accepted")
    refused, taken, *others = explained("--stag=nchw --dtag=nchw mb1ic64ih14oc24oh14kh3ph1").implementations
    assert (refused.name, refused.verdict, taken.verdict) == ("direct:avx2", "refused", "chosen")
    assert refused.reason == "src nchw has its 64 channels apart, more than 16"
    assert {other.verdict for other in others} == {"refused"}


def test_scratch_has_no_plane() -> None:
    """What a reorder writes for the convolution is no output; the last phase writes dst."""
    explanation = explained("--stag=nchw --dtag=nchw mb1ic64ih14oc24oh14kh3ph1")
    first, *_, last = explanation.phases
    assert first.plane is None
    assert (drawn(last) >= 0).all()
    assert {b.kind for b in explanation.buffers} == {"tensor", "constant", "scratch"}


def test_the_summary_is_the_descriptors_own() -> None:
    assert explained().summary == descriptor("mb1ic16ih12oc20oh12kh3ph1", "avx2").explain()
