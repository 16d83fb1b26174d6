"""Loops taken apart: passes, flops and bytes against the problem's own arithmetic."""

from collections import Counter

import numpy as np
import pytest

from asmdnn.analyze.build import bytes_moved, taken_apart
from asmdnn.analyze.parts import bodies_of, constant_trips, trips_of
from asmdnn.cli.explain import one_case
from asmdnn.explain.kernels import listing_of, read_kernel
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.plan import Plan
from tests.explain.problems import ISAS, descriptor


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "problem",
    ["mb1ic16ih12oc64oh12kh3ph1", "mb2ic8ih9oc48oh5kh3sh2ph1", "mb1ic96ih7oc32oh7kh3ph1", "ic64ih14oc96oh14kh1"],
)
def test_flops_of_all_calls_are_the_problems(problem: str, isa: str) -> None:
    """2 * taps * pixels * channels without padding: the instructions do exactly that, for whole panels of channels."""
    words = f"--dir=FWD_I {problem}"
    plan = descriptor(words, isa, 1).plan
    total = 0.0
    for phase_use in [use for phase in plan.phases for use in phase.uses()]:
        bodies, trips = taken_apart(plan, plan.specs.index(phase_use[0]))
        total += phase_use[1] * sum(body.flops * (trips[body.loop] or 0) for body in bodies)
    assert total == pytest.approx(one_case("test", words.split()).problem.flops, rel=1e-12)


@pytest.mark.parametrize(
    ("isa", "types", "instructions"),
    [
        ("avx2", "f32", {"FMA"}),
        ("avx2", "f32:bf16:f32", {"FMA"}),
        ("avx2", "u8:s8:s32", {"VPMADDWD"}),
        ("avx2_vnni", "u8:s8:s32", {"VPDPBUSD_VEX"}),
        ("avx512_core", "u8:s8:s32", {"VPMADDWD"}),
        ("avx512_core_vnni", "s8:s8:s32", {"VPDPBUSD"}),
        ("avx512_core_bf16", "bf16:bf16:f32", {"VDPBF16PS"}),
        ("avx512_core_amx", "bf16:bf16:f32", {"TDPBF16PS"}),
        ("avx512_core_amx", "u8:s8:s32", {"TDPBUSD"}),
        ("avx512_core_amx", "s8:s8:s32", {"TDPBSSD"}),
    ],
)
def test_the_dot_that_is_multiplied(isa: str, types: str, instructions: set[str]) -> None:
    """All flops are counted for its instruction: a product that fills blocks, vectors and tiles has no others."""
    plan = descriptor(f"--matmul --dt={types} 64x64:64x64", isa, 1).plan
    found: Counter[str] = Counter()
    for spec, calls, _ in (use for phase in plan.phases for use in phase.uses()):
        bodies, trips = taken_apart(plan, plan.specs.index(spec))
        for body in bodies:
            found.update({name: calls * flops * (trips[body.loop] or 0) for name, flops in body.multiply_adds.items()})
    assert {name for name, flops in found.items() if flops} == instructions
    assert sum(found.values()) == pytest.approx(2 * 64**3)


@pytest.mark.parametrize("problem", ["mb1ic96ih7oc32oh7kh3ph1", "ic512ih14oc96oh14kh1", "ic8ih9oc32oh9kh3ph1"])
def test_loops_around_those_over_taps(problem: str) -> None:
    """In which sums of f16 go on as f32: all multiply-adds are in the inner ones, whose passes are numbers of taps."""
    words = f"--dir=FWD_I --dt=f16 --attr-acc-mode=f16 {problem}"
    plan = descriptor(words, "avx512_core_fp16", 1).plan
    total = ends = 0.0
    for spec, calls, _ in (use for phase in plan.phases for use in phase.uses()):
        bodies, trips = taken_apart(plan, plan.specs.index(spec))
        flops = sum(body.multiply_adds.get("VFMADD231PH", 0) * (trips[body.loop] or 0) for body in bodies)
        total += calls * flops
        ends += sum(trips[body.loop] or 0 for body in bodies if body.loop.name.endswith("_run"))
    assert total == pytest.approx(one_case("test", words.split()).problem.flops, rel=1e-12)
    assert (ends > 0) == ("ic8" not in problem)


@pytest.mark.parametrize(("rows", "row_bytes"), [(3, 96), (7, 512)])
def test_bytes_of_a_copy(rows: int, row_bytes: int) -> None:
    spec = RowsSpec(isa="avx2", rows=rows, row_bytes=row_bytes, src_step=row_bytes, dst_step=row_bytes)
    listing, size = listing_of(spec)
    (loop,) = read_kernel(spec, listing, size).loops
    inside, _ = bodies_of(listing, (loop,))
    assert inside.moved_bytes == (row_bytes, row_bytes)
    assert inside.flops == 0
    assert constant_trips(listing, loop) == rows


def test_loops_in_loops() -> None:
    """Every instruction is in one body; an inner loop's passes are multiplied by the outer one's."""
    spec = RowsSpec(isa="avx2", rows=5, row_bytes=3 * 512 + 32, src_step=2048, dst_step=2048)
    listing, size = listing_of(spec)
    kernel = read_kernel(spec, listing, size)
    bodies = bodies_of(listing, kernel.loops)
    assert sorted(line.offset for body in bodies for line in body.lines) == [line.offset for line in listing]
    assert [(body.loop.name, body.loop.depth) for body in bodies] == [("rows", 0), ("blocks", 1), ("", 0)]
    assert [body.moved_bytes for body in bodies[:2]] == [(32, 32), (512, 512)]
    assert [constant_trips(listing, loop) for loop in kernel.loops] == [5, 3]
    records = np.zeros((1, 3), np.int64)
    phase = Phase((spec,), views(("src", "dst")), records, np.ones(1, np.int32))
    plan = Plan("copy", (phase,), {}, {}, {}, ())
    assert list(trips_of(listing, kernel.loops, spec, plan, phase).values()) == [1, 5, 15]


def test_bytes_moved() -> None:
    pd = descriptor("--dir=FWD_I mb1ic8ih12oc16oh12kh1", "avx2", 1)
    once = sum(desc.size_bytes for desc in pd.plan.tensors.values())
    assert bytes_moved(pd.plan) == once == 4 * (8 * 144 + 16 * 8 + 16 * 144)
    added = descriptor("--dir=FWD_I --attr-post-ops=sum mb1ic8ih12oc16oh12kh1", "avx2", 1)
    assert bytes_moved(added.plan) == once + 4 * 16 * 144
    deep = descriptor("--dir=FWD_I mb1ic512ih7oc16oh7kh3ph1", "avx2", 1)
    assert len(deep.plan.phases) > 1  # later phases read dst, but what they read is in a cache
    assert bytes_moved(deep.plan) == sum(desc.size_bytes for desc in deep.plan.tensors.values())
