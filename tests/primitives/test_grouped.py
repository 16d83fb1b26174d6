"""Convolutions in groups: depthwise, several groups in a vector, and many channels a group; by every implementation."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.isa.levels import AVX512_CORE
from asmdnn.planning.host import executable_isas
from tests.primitives.conv_case import MACHINE, ConvCase, case_of
from tests.primitives.conv_reference import make_data, sums
from tests.primitives.conv_run import check_results, run
from tests.primitives.test_conv_axes import Scaled
from tests.support.plans import proved_desc

# What takes it without its ISA level, and the case.
LINES = """
depthwise              g19mb2ic19ih9oc19oh9kh3ph1                           any    any    bias  relu
depthwise              g32mb1ic32ih14oc32oh7kh5sh2ph2                       nhwc   nhwc   bias  sum:0.5+relu
depthwise              g40mb2ic40ih7oc40oh7kh7ph3                           nhwc   any    -     -
depthwise              g16mb1ic16ih5iw30oc16oh3ow28kh3kw5sh2sw1ph0pw1       any    nhwc   bias  -
depthwise              g30mb1ic30ih8iw9oc30oh8ow5kh3kw3sh1sw2ph1pw1         nChw16c nhwc~3 bias relu
depthwise              g16mb1ic16ih12iw13oc16oh10ow9kh3kw3ph1pw1dh1dw2      any    any    bias  -
depthwise              g17mb1ic17ih4iw4oc17oh9ow8kh2kw9ph4pw6               any    any    bias  relu
depthwise              g21mb3ic21iw20oc21ow20kw3pw1                         nwc    any    bias  sum
depthwise              g20mb1ic20ih1iw1oc20oh5ow5kh3kw3ph3pw3               any    nhwc   bias  relu
reorder+depthwise      g18mb2ic18ih8oc18oh8kh3ph1                           nchw   nchw   bias  sum+relu
pack+depthwise         g16mb1ic16ih8oc16oh4kh3sh2ph1                        nhwc   nhwc   bias  -     goihw
pack+reorder+depthwise g16mb1ic16ih8oc16oh8kh3ph1                           nchw   nhwc   -     -     hwigo
grouped                g9mb2ic18ih9oc18oh9kh3ph1                            any    any    bias  relu
grouped                g7mb1ic28ih9oc28oh5kh3sh2ph1                         nhwc   nhwc   bias  sum
grouped                g3mb1ic24ih7oc24oh7kh5ph2                            any    nhwc   -     relu
reorder+grouped        g8mb1ic32ih6oc32oh6kh3ph1                            nchw   nchw   bias  -
direct                 g2mb2ic48ih9oc48oh9kh3ph1                            any    any    bias  sum+relu
direct                 g3mb1ic30ih6oc21oh6kh1ph0                            nhwc   nhwc   bias  relu
direct                 g2mb2ic2ih9oc38oh9kh3ph1                             any    any    bias  -
depthwise              g16mb1ic16ih3iw30oc16oh3ow15kh3kw15sh1sw2ph1pw7      any    nhwc   bias  relu
repeat+depthwise       g9mb2ic9ih7oc18oh4kh3sh2ph1                          any    any    bias  sum
repeat+depthwise       g5mb1ic5ih6iw7oc20oh6ow7kh3kw3ph1pw1                     nchw   any    bias  relu
reorder+repeat+depthwise g9mb1ic9ih6oc18oh6kh3ph1                           nChw8c nchw   -     -
pack+repeat+depthwise  g9mb1ic9iw16oc36ow16kw3pw1                           nwc    nwc    bias  -     goiw
depthwise              g16mb2ic16ih9iw11oc32oh9ow11kh3kw3ph1pw1                 any    any    bias  sum:0.5+relu
depthwise              g12mb1ic12ih9oc48oh5kh3sh2ph1                            nhwc   nhwc   bias  relu
depthwise              g6mb1ic6ih12iw30oc48oh12ow30kh5kw5ph2pw2                 nhwc   any    -     -
depthwise              g32mb1ic32ih9oc64oh4kh3sh2                               nChw16c nhwc  bias  -
depthwise              g8mb1ic8id5ih4iw6oc64od5oh4ow6kd3kh3kw3pd1ph1pw1         axb    axb    bias  relu
reorder+depthwise      g8mb1ic8ih6oc16oh6kh3ph1                                 nchw   nchw   bias  relu
pack+depthwise         g8mb1ic8iw16oc32ow16kw3pw1                               nwc    nwc    bias  -     goiw
planes+depthwise       g9mb2ic18ih9oc9oh9kh3ph1                             any    any    bias  relu
planes+depthwise       g20mb1ic60ih8iw9oc20oh4ow5kh3kw5sh2sw2ph1pw2         nchw   nhwc   -     -
planes+depthwise       g5mb1ic20iw12oc5ow12kw3pw1                           nwc    any    bias  -
reorder+planes+depthwise g16mb1ic32ih6oc16oh6kh3ph1                         nChw8c nchw   bias  -
planes+depthwise       g7mb2ic35ih5oc7oh5kh1ph0                             nhwc   nhwc   bias  -     goihw
groups+tiles           g9mb2ic9ih7oc18oh7kh1ph0                             any    any    bias  sum+relu
groups+tiles           g5mb2ic15ih6iw5oc5oh6ow5kh1kw1ph0pw0                 any    any    bias  relu
groups+tiles           g3mb2ic30iw7oc21ow7kw1                               abc    abc    bias  sum
groups+tiles           g6mb1ic18ih7oc30oh7kh1ph0                            any    any    bias  relu
groups+tiles           g6mb3ic6id2ih3iw5oc6od2oh3ow5kd1kh1kw1pd0ph0pw0      abx    abx    bias  relu
direct                 g2mb1ic6id4ih5iw6oc22od4oh5ow6kd3kh3kw3pd1ph1pw1     any    any    bias  relu
pack+direct            g2mb1ic80ih5oc48oh5kh3ph1                            nhwc   nhwc   -     -     goihw
reorder+direct         g2mb1ic40ih6oc40oh6kh3ph1                            nchw   nchw   bias  sum
depthwise              g12mb1ic12ih6iw40oc12oh6ow10kh3kw31ph1pw0            nhwc   nhwc   bias  -
depthwise              g20mb2ic20id5ih7iw7oc20od5oh7ow7kd3kh3kw3pd1ph1pw1   any    any    bias  sum:0.5+relu
depthwise              g11mb1ic11id9ih8iw8oc11od4oh4ow4kd3kh3kw3sd2sh2sw2   axb    axb    -     relu
depthwise              g8mb1ic8id3ih4iw5oc8od9oh4ow5kd3kh1kw1pd4            any    axb    bias  -
grouped                g4mb1ic16id6ih5iw8oc16od4oh5ow8kd3kh3kw3dd1ph1pw1    any    any    bias  -
reorder+depthwise      g9mb2ic9id3ih4iw5oc9od3oh4ow5kd2kh3kw3pd1ph1pw1      abx    abx    bias  relu
""".strip()
CASES = [(line.split()[0], case_of(line.split(maxsplit=1)[1])) for line in LINES.splitlines()]
IDS = [f"{name} {case}" for name, case in CASES]


def proved(case: ConvCase, isa: str, threads: int = 1, **attr: dnn.Attr) -> dnn.PrimitiveDesc:
    engine = dnn.Engine(isa=isa, threads=threads, machine=MACHINE)
    return proved_desc(case.desc(), attr.get("attr", case.attr()), engine)


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_choices(planned_isa: str, name: str, case: ConvCase) -> None:
    assert proved(case, planned_isa).implementation == f"{name}:{planned_isa}"


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_results(isa: str, name: str, case: ConvCase) -> None:
    pd = proved(case, isa)
    assert pd.implementation == f"{name}:{isa}"
    check_results(dnn.Primitive(pd), case)


@pytest.mark.parametrize(("name", "case"), CASES, ids=IDS)
def test_plans_of_the_other_level(name: str, case: ConvCase) -> None:
    proved(case, "avx512_core")


def by_lines(kernel: int, isa: str) -> tuple[ConvCase, dnn.PrimitiveDesc]:
    case = case_of(f"g64mb1ic64ih9oc64oh9kh{kernel}ph{kernel // 2} nhwc nhwc bias sum+relu")
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE, l2_bytes=4096)
    return case, dnn.primitive_desc(case.desc(), case.attr(), engine)


@pytest.mark.parametrize(("kernel", "lines"), [(3, {"avx2": 2, "avx512_core": 2}), (7, {"avx2": 1, "avx512_core": 2})])
def test_large_images_by_lines(planned_isa: str, kernel: int, lines: dict[str, int]) -> None:
    """Of a larger image than L2 holds two lines of a pixel are read at a time, where that leaves enough pixels."""
    _, pd = by_lines(kernel, planned_isa)
    pd.plan.check()
    vectors = {"avx2": 2, "avx512_core": 1}[planned_isa]
    assert {spec.abreast for spec in pd.plan.specs if isinstance(spec, GroupedRowsSpec)} == {
        vectors * lines[planned_isa]
    }


@pytest.mark.parametrize("kernel", [3, 7])
def test_results_by_lines(isa: str, kernel: int) -> None:
    case, pd = by_lines(kernel, isa)
    check_results(dnn.Primitive(pd), case)


@pytest.mark.parametrize("words", ["any any", "nhwc nhwc", "nchw nchw"])
@pytest.mark.parametrize(
    "problem", ["g27mb2ic27ih9oc27oh9kh3ph1", "g10mb2ic20ih8oc20oh8kh3ph1", "g2mb2ic20ih8oc38oh8kh3ph1"]
)
def test_scales_and_tensors(isa: str, problem: str, words: str) -> None:
    """Every broadcast of a binary post-op, and scales by output channel, which are masks of group and channel."""
    case = case_of(f"{problem} {words} bias -")
    scaled = Scaled(case)
    attr = dnn.Attr(scaled.attr.post_ops, scales={**dict(scaled.attr.scales), "weights": 3})
    pd = proved(case, isa, attr=attr)
    memories = scaled.memories(pd)
    dnn.Primitive(pd).execute(**memories)
    scaled.check(memories)


@pytest.mark.parametrize("mask", [1, 2])
def test_scales_are_of_all_channels(mask: int) -> None:
    case = case_of("g2mb1ic16ih5oc16oh5kh3ph1 any any - -")
    attr = dnn.Attr(scales={"weights": mask})
    with pytest.raises(dnn.Unimplemented, match="of groups and their channels, all or none"):
        dnn.primitive_desc(case.desc(), attr, dnn.Engine(isa="avx2"))


@pytest.mark.parametrize("case", [CASES[0][1], CASES[1][1], CASES[16][1]], ids=str)
def test_every_count_of_threads_gives_the_same_bytes(isa: str, case: ConvCase) -> None:
    large = replace(case, problem=replace(case.problem, mb=20))
    data = make_data(large, integers=False)
    assert len({run(dnn.Primitive(proved(large, isa, threads)), data).tobytes() for threads in (1, 2, 5)}) == 1


def test_depthwise_is_a_convolution_with_zeros(isa: str) -> None:
    """The same weights on the diagonal of a convolution without groups."""
    case = case_of("g12mb1ic12ih7oc12oh7kh3ph1 any any - -")
    data = make_data(case, integers=True)
    whole = case_of("mb1ic12ih7oc12oh7kh3ph1 any any - -")
    weights = np.zeros(whole.problem.weights_dims)
    weights[range(12), range(12)] = data.weights[:, 0, 0]
    result = run(dnn.Primitive(proved(case, isa)), data)
    assert np.array_equal(result, sums(whole, data.src.astype(np.float64), weights))


def test_pixels_far_apart_are_brought_together() -> None:
    far = 2**30
    src = dnn.MemoryDesc((1, 16, 2, 3), dnn.f32, strides=(6 * far, 1, 3 * far, far))
    weights, dst = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((16, 1, 1, 1, 3), (1, 16, 2, 1)))
    pd = proved_desc(dnn.ConvolutionForward(src, weights, dst), engine=dnn.Engine(isa="avx2"))
    assert pd.implementation == "reorder+depthwise:avx2"


@pytest.mark.parametrize(
    "words", ["any any bias sum+relu", "nhwc nhwc - -", "nChw16c nChw16c bias relu", "nhwc any - sum"]
)
@pytest.mark.parametrize("problem", ["g6mb2ic48ih13oc48oh7kh3sh2ph1", "g4mb1ic32ih20iw11oc32oh10ow6kh2kw1sh2sw2"])
def test_groups_of_eight_by_ymm_registers(problem: str, words: str) -> None:
    """On Zen 4, with strides; the blocks of images stay those of the level."""
    case = case_of(f"{problem} {words}")
    pd = proved_desc(case.desc(), case.attr(), dnn.Engine(isa="avx512_core", threads=1, machine="zen4"))
    assert pd.implementation == "grouped:avx2"
    assert not words.startswith("any") or pd.dst_desc == dnn.MemoryDesc(pd.dst_desc.dims, dnn.f32, "aBcd16b")
    if AVX512_CORE in executable_isas():  # which the engine asks for, whatever its kernels need
        check_results(dnn.Primitive(pd), case)


@pytest.mark.parametrize(
    "problem",
    [
        "g6mb1ic48ih7oc48oh7kh3ph1", "g6mb1ic48ih14oc48oh7kh5sh2ph2", "g6mb1ic48ih9oc48oh5kh3sh2ph1",
        "g3mb1ic24ih14oc24oh7kh3sh2ph1",
    ],
)  # fmt: skip
def test_groups_of_eight_by_zmm_registers(problem: str) -> None:
    """Without strides, by wide kernels, in short rows, and where a group is left alone."""
    case = case_of(f"{problem} any any - -")
    pd = dnn.primitive_desc(case.desc(), engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen4"))
    assert pd.implementation == "grouped:avx512_core"


@pytest.mark.parametrize("images", [3_000, 40_001])
def test_records_do_not_grow_with_images(images: int) -> None:
    case = case_of(f"g512mb{images}ic512ih2oc512oh2kh3ph1 any any - -")
    pd = dnn.primitive_desc(case.desc(), engine=dnn.Engine(isa="avx2", threads=1))
    assert sum(len(phase.records) for phase in pd.plan.phases) < 2000
    assert len(pd.plan.phases) <= 2


@pytest.mark.parametrize(
    ("width", "stride", "sizes"), [(14, 1, [14]), (14, 2, [7]), (28, 2, [14]), (56, 2, [10, 9]), (21, 1, [11, 10])]
)
def test_segments_that_hide_the_latency_of_a_multiply(width: int, stride: int, sizes: list[int]) -> None:
    """16 inputs a group and AVX-512: code allows 13 pixels, registers 27; a row of 14 is one segment, not 7 and 7."""
    across = (width - 1) // stride + 1
    case = case_of(
        f"g8mb1ic128ih4iw{width}oc128oh{3 // stride + 1}ow{across}kh3kw3ph1pw1sh{stride}sw{stride} any any - -"
    )
    specs = proved(case, "avx512_core").plan.specs
    found = {segment.pixels for spec in specs for segment in spec.segments}  # type: ignore[attr-defined]
    assert sorted(found, reverse=True) == sizes
