"""Gradients of weights of few output channels, summed along rows: definition, threads, copies, ranges, images."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.plane_weights import PlaneWeightsSpec, fits
from asmdnn.isa.vectors import lanes_of
from asmdnn.primitives.convolution_backward.planes_calls import cut_of, vector_cycles
from asmdnn.types import IsaName
from tests.primitives import conv_gradients as reference
from tests.primitives.conv_case import MACHINE
from tests.primitives.conv_gradients import described, problem_of
from tests.primitives.gradient_case import check
from tests.primitives.test_conv_backward_weights import check_adjoint, gradient

# What takes it without its ISA level, the problem, and the layouts of src, dst and weights.
LINES = """
planes          mb2ic1ih18iw33oc3kh3kw3ph1pw1              any  any  any
planes          mb2ic3ih20iw32oc3kh3kw3ph0pw0              any  any  any
planes          mb1ic2ih33iw70oc2kh5kw3sh2sw2ph2pw1        any  any  any
planes          mb2ic9ih16iw47oc2kh3kw3ph0pw2dh1dw1        nhwc any  oihw
planes          mb2ic20ih16oc2kh1                          nchw nchw any
planes          mb1ic4iw300oc2kw5pw2                       any  any  any
planes          mb1ic3id5ih6iw33oc4kd2kh3kw3pd1ph1pw1      any  any  any
planes          g3mb2ic6ih16iw32oc9kh3kw3ph1pw1            any  any  any
reorder+planes  g2mb2ic10ih16iw32oc6kh3kw3ph1pw1           nhwc nhwc goihw
reorder+planes  mb2ic6ih16iw32oc3kh3kw3ph1pw1              any  any  Ohwi16o
reorder+planes  mb2ic6ih33iw65oc3kh1kw1sh2sw2              any  any  any
planes          deconv:mb2ic3ih16iw33oc6kh3kw3ph1pw1         any  any  any
""".strip()
CASES = [line.split() for line in LINES.splitlines()]
ALL = pytest.mark.parametrize(("name", "text", "src", "dst", "weights"), CASES)


@ALL
def test_results(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    pd = check(*gradient(text, src, dst, weights), isa)
    assert pd.implementation == f"{name}:{isa}"
    assert [*pd.plan.tensors] == ["src", "diff_weights", "diff_dst", "diff_bias"]


@ALL
def test_adjoint(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    check_adjoint(isa, text, src, dst, weights)


def specs_of(plan: Any) -> list[PlaneWeightsSpec]:
    return [spec for phase in plan.phases for spec in phase.kernels if isinstance(spec, PlaneWeightsSpec)]


@pytest.mark.parametrize("text", ["mb8ic1ih60iw50oc4kh3kw3ph1pw1", "mb1ic1ih200oc3kh3", "mb4ic2ih100oc1kh1"])
def test_ranges_of_blocks(isa: str, text: str) -> None:
    """Few tiles and many pixels: blocks in ranges, whose partial sums are added, in a number that the shape decides."""
    desc, arrays, wanted = gradient(text, bias=False)
    pd = check(desc, arrays, wanted, isa)
    assert pd.implementation == f"planes:{isa}"
    assert "partial sums" in pd.plan.scratch_bytes


@pytest.mark.parametrize(("padding", "phases"), [(0, 2), (1, 4)])
def test_images_of_several_phases(isa: str, padding: int, phases: int) -> None:
    """They go on with the sums of the images before; copies are of some images, and in the same place."""
    desc, arrays, wanted = gradient(f"mb{phases}ic2ih{240 - 2 * padding}oc1kh3ph{padding}", bias=False)
    pd = check(desc, arrays, wanted, isa)
    assert {spec.accumulate for spec in specs_of(pd.plan)} == {False, True}  # the first images begin, others go on


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_real_numbers(isa: str) -> None:
    p = problem_of("mb2ic3ih20iw32oc3kh3kw3ph1pw1")
    random = np.random.default_rng(5)
    x, dy = (random.standard_normal(dims).astype(np.float32) for dims in (p.src_dims, p.dst_dims))
    wanted = {"diff_weights": reference.of_weights(p, x, dy)}
    bound = 2 * p.mb * 20 * 32 * 2.0**-24 * reference.of_weights(p, abs(x), abs(dy))
    pd = check(described(dnn.ConvolutionBackwardWeights, p, {}), {"src": x, "diff_dst": dy}, wanted, isa,
               {"diff_weights": bound})  # fmt: skip
    assert pd.implementation == f"planes:{isa}"


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("kernel", [1, 3, 5, 7, 9, 25, 49])
def test_registers_hold_what_a_tile_needs(isa: IsaName, kernel: int) -> None:
    """Of any number of channels, and multiplies are as many as loads, if there are some."""
    for out in range(1, lanes_of(isa)):
        for into in (1, 2, 3, 64):
            cut = cut_of(into, out, kernel, isa)
            assert fits(isa, max(cut.outputs), max(cut.positions))
            assert sum(cut.outputs) == out
            assert sum(cut.positions) == kernel * cut.together
            if into * out * kernel >= 64:
                assert vector_cycles(cut, into, isa) <= into * out * kernel * (1 if out > 2 else 2)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mb2ic6ih28oc14kh3ph1", "direct"),  # vectors of channels are nearly full
        ("mb2ic6ih7oc8kh3ph1", "direct"),  # and those of pixels are not
        ("mb2ic6ih28oc5kh3ph1", "planes"),
        ("mb2ic16ih28oc5kh3ph1", "exchanged"),  # and those of input channels are full
        ("g4mb2ic16ih28oc16kh3ph1", "grouped"),
    ],
)
def test_lanes_are_what_fills_them(text: str, name: str) -> None:
    engine = dnn.Engine(isa="avx512_core", threads=1, machine=MACHINE)
    assert dnn.primitive_desc(gradient(text, bias=False)[0], engine=engine).implementation == f"{name}:avx512_core"


def test_tiles_of_one_pattern_share_a_kernel() -> None:
    """Of every input channel."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine=MACHINE)
    plan = dnn.primitive_desc(gradient("mb1ic64ih32oc4kh3ph1", bias=False)[0], engine=engine).plan
    assert len({*specs_of(plan)}) <= 6
