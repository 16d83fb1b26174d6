"""Loops taken apart: passes, flops and bytes against the problem's own arithmetic."""

import pytest

from asmdnn.analyze.build import bytes_moved, taken_apart
from asmdnn.analyze.parts import bodies_of, constant_trips
from asmdnn.cli.descriptors import one_case
from asmdnn.explain.kernels import listing_of, loops_of, read_kernel
from asmdnn.generators.reorder import CopySpec, TransposeSpec
from tests.explain.problems import ISAS, descriptor


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "problem",
    ["mb1ic16ih12oc64oh12kh3ph1", "mb2ic8ih9oc48oh5kh3sh2ph1", "mb1ic128ih7oc96oh7kh3ph1", "ic64ih14oc96oh14kh1"],
)
def test_flops_of_all_calls_are_the_problems(problem: str, isa: str) -> None:
    """2 * taps * pixels * channels without padding: the instructions do exactly that, for whole panels of channels."""
    words = f"--dir=FWD_I {problem}"
    plan = descriptor(words, isa, 1).plan
    total = 0.0
    for phase_use in [use for phase in plan.phases for use in phase.uses()]:
        bodies, trips = taken_apart(plan, phase_use[0])
        total += phase_use[1] * sum(body.flops * (trips[body.loop] or 0) for body in bodies)
    assert total == pytest.approx(one_case("test", words.split()).problem.flops, rel=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(3, 20), (7, 128)])
def test_bytes_of_a_copy(rows: int, columns: int) -> None:
    spec = CopySpec("avx2", rows, columns, 4 * columns, 4 * columns)
    listing, size = listing_of(spec)
    (loop,) = read_kernel(spec, listing, size).loops
    inside, _ = bodies_of(listing, (loop,))
    vectors = -(-columns // 8)
    assert inside.moved_bytes == (32 * vectors, 32 * vectors)
    assert inside.flops == 0
    assert constant_trips(listing, loop) == rows


def test_bodies_hold_every_instruction_once() -> None:
    spec = TransposeSpec("avx2", 8, 45, 200, 32)
    listing, size = listing_of(spec)
    kernel = read_kernel(spec, listing, size)
    bodies = bodies_of(listing, kernel.loops)
    assert sorted(line.offset for body in bodies for line in body.lines) == [line.offset for line in listing]
    assert [body.loop.name for body in bodies] == ["blocks", ""]
    assert constant_trips(listing, kernel.loops[0]) == 45 // 8
    assert loops_of(kernel.instructions) == kernel.loops


def test_bytes_moved() -> None:
    pd = descriptor("--dir=FWD_I mb1ic8ih12oc16oh12kh1", "avx2", 1)
    once = sum(desc.size_bytes for desc in pd.plan.tensors.values())
    assert bytes_moved(pd.plan) == once == 4 * (8 * 144 + 16 * 8 + 16 * 144)
    added = descriptor("--dir=FWD_I --attr-post-ops=sum mb1ic8ih12oc16oh12kh1", "avx2", 1)
    assert bytes_moved(added.plan) == once + 4 * 16 * 144
    deep = descriptor("--dir=FWD_I mb1ic512ih7oc16oh7kh3ph1", "avx2", 1)
    assert len(deep.plan.phases) > 1  # later phases read dst, but what they read is in a cache
    assert bytes_moved(deep.plan) == sum(desc.size_bytes for desc in deep.plan.tensors.values())
