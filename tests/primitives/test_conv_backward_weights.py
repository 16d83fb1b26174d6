"""Gradients of the weights of convolutions and deconvolutions: definition, threads, ranges, pages, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.grouped_weights import GroupedWeightsSpec
from asmdnn.primitives.convolution_backward import weights_tiles
from asmdnn.types import IsaName
from tests.primitives import conv_gradients as reference
from tests.primitives.conv_case import MACHINE
from tests.primitives.conv_gradients import described, integers, is_deconvolution, problem_of
from tests.primitives.gradient_case import check, proved, run

# What takes it without its ISA level, the problem, and the layouts of src, dst and weights.
LINES = """
direct          mb2ic20ih5iw6oc24kh3kw3ph1pw1                any  any  any
direct          mb2ic19ih7oc16kh3sh2ph1                      nhwc nhwc any
reorder+direct  mb1ic12ih8oc9kh1sh2                          nchw any  any
reorder+direct  mb2ic20ih7oc16kh1sh3                         any  any  any
reorder+direct  g2mb1ic16ih5iw8oc32kh1kw1sh2sw1              nhwc nhwc any
reorder+direct  mb1ic3iw9oc8kw1sw2                           any  any  any
reorder+direct  mb2ic12ih3iw9oc16kh1kw1sh1sw2                abcD4d any any
direct          mb1ic12ih8oc9kh1sh2ph1                       nchw any  any
direct          mb3ic9ih6oc33kh1                             any  any  any
direct          mb1ic3ih12oc32kh5sh2ph2                      any  any  any
direct          mb2ic2ih5oc16kh2ph1                          nhwc nhwc any
direct          mb1ic9iw11oc5kw3dw1pw2                       any  any  any
direct          mb1ic9id3ih4iw5oc9kd2kh3kw2sd2ph1pd0pw0      any  any  any
direct          mb7ic16ih3oc16kh3ph1                         any  any  any
direct          mb1ic8iw3oc8kw5pw4                           any  any  any
direct          g2mb1ic24ih6oc32kh3ph1                       any  any  any
grouped         g8mb1ic32ih6oc32kh3sh2ph1                    any  any  any
padded          g3mb2ic15ih5oc9kh3ph1                        nhwc any  any
grouped         g5mb2ic20ih6oc20kh3ph1                       any  any  any
grouped         g19mb2ic38ih9iw23oc38kh5kw3ph2pw1dh1         any  any  any
grouped         g16mb3ic64ih5iw31oc64kh3kw5sw2pw2            nhwc nhwc any
grouped         g8mb2ic16iw40oc16kw9pw4                      any  any  any
grouped         g4mb1ic16id3ih4iw3oc16kd2kh3kw2pd1ph1pw0     any  any  any
grouped         g8mb5ic32ih2oc32kh1sh2                       any  any  any
repeated        g7mb1ic28ih5oc84kh3sh2ph1                    nhwc any  any
padded          g6mb2ic18id3ih4iw3oc60kd2kh3kw2pd1ph1pw0 any  any  any
reorder+padded  g5mb1ic15ih6iw5oc50kh3kw3ph1pw1              nchw aBcd8b goihw
repeated        g7mb1ic7ih5oc21kh3sh2ph1                     nhwc any  any
reorder+wide    g9mb2ic27ih4oc36kh3ph1                       any  nhwc any
repeated        g5mb1ic10iw9oc60kw3pw1                       any  any  any
depthwise       g19mb2ic19ih7oc19kh3sh2ph1                   any  any  any
depthwise       g32mb1ic32ih20iw9oc32kh3kw5ph1pw2            nhwc nhwc any
depthwise       g16mb3ic16ih3oc16kh3ph1dh1                   any  any  any
depthwise       g16mb1ic16iw40oc16kw31pw15                   any  any  any
depthwise       g8mb1ic8id3ih4iw3oc8kd2kh3kw2pd1ph1pw0       any  any  any
reorder+depthwise g9mb1ic9ih6oc9kh3ph1                       nchw nchw goihw
depthwise       deconv:g16mb1ic16ih5oc16kh4sh2ph1            any  any  any
depthwise       g23mb2ic23ih5iw7oc23kh3kw3ph1pw1             nhwc nhwc any
depthwise       g17mb1ic17ih40iw30oc17kh3kw3ph1pw1           nhwc any  goihw
depthwise       g45mb3ic45id3ih4iw3oc45kd2kh3kw2pd1ph1pw0    any  ndhwc any
grouped         g10mb2ic20ih6oc20kh3sh2ph1                   nhwc nhwc any
grouped         g9mb1ic36ih5oc36kh3ph1                       any  nhwc goihw
depthwise       deconv:g23mb1ic23ih5oc23kh4sh2ph1          nhwc nhwc any
groups+tiles    g9mb2ic9ih3oc18kh1                        any  any  any
groups+one_by_one+dots g9mb1ic9ih7oc45kh1                    any  any  any
groups+one_by_one+dots+outer g10mb3ic40iw49oc40kw1           abc  abc  goiw
groups+one_by_one+dots deconv:g9mb1ic27iw50oc9kw1            abc  abc  any
reorder+direct  mb1ic20ih6oc16kh3ph1                         nchw nchw oihw
reorder+grouped g4mb1ic8ih4oc8kh3ph1                         nchw nchw goihw
repeated        g4mb1ic8ih4oc16kh3ph1                        nchw nchw goihw
repeated        g16mb2ic16ih5iw7oc48kh3kw3ph1pw1             nhwc nhwc any
repeated        g16mb2ic32ih6oc16kh3sh2ph1                   nhwc nhwc goihw
repeated        g8mb1ic64ih5oc16kh3ph1                       any  any  any
repeated        g4mb2ic16iw19oc48kw5pw2dw1                   any  any  any
repeated        g16mb1ic48id3ih4iw3oc16kd2kh3kw2pd1ph1pw0 any  any  any
repeated        deconv:g16mb2ic48ih5oc16kh4sh2ph1            any  any  any
reorder+repeated g16mb1ic48ih5oc16kh3ph1                     nhwc nhwc aBcde8b
reorder+wide    g3mb1ic3ih6oc6kh3ph1                        nhwc nhwc any
direct          deconv:mb2ic20ih5oc24kh3sh2ph1               any  any  any
reorder+direct  deconv:mb1ic16ih4oc8kh1sh2                   any  any  any
wide            deconv:g2mb2ic8ih5oc12kh3sh2ph1              any  any  any
grouped         deconv:g4mb2ic16ih5oc16kh4sh2ph1             any  any  any
wide            deconv:g5mb2ic20ih5oc30kh3sh2ph1             any  any  any
reorder+direct  deconv:mb1ic18ih4oc9kh2sh2                   nchw nhwc iohw
reorder+direct  deconv:mb2ic16iw5oc12kw1sw2                  any  aBC4c16b any
""".strip()
CASES = [line.split() for line in LINES.splitlines()]
ALL = pytest.mark.parametrize(("name", "text", "src", "dst", "weights"), CASES)


def gradient(text: str, src: str = "any", dst: str = "any", weights: str = "any", bias: bool = True) -> Any:
    """(description, inputs, results)."""
    p = problem_of(text)
    form = dnn.DeconvolutionBackwardWeights if is_deconvolution(p) else dnn.ConvolutionBackwardWeights
    x, dy = integers(1, p.src_dims), integers(2, p.dst_dims)
    wanted = {"diff_weights": reference.of_weights(p, x, dy)}
    tags = {"src": src, "dst": dst, "weights": weights}
    if bias:
        wanted["diff_bias"] = dy.astype(float).sum(axis=(0, *range(2, dy.ndim)))
        tags["bias"] = "a"
    return described(form, p, tags), {"src": x, "diff_dst": dy}, wanted


@ALL
def test_results(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    pd = check(*gradient(text, src, dst, weights), isa)
    assert pd.implementation == f"{name}:{isa}"
    assert [*pd.plan.tensors] == ["src", "diff_weights", "diff_dst", "diff_bias"]


def check_adjoint(isa: str, text: str, src: str, dst: str, weights: str) -> None:
    """<forward(w), y> = <w, backward(y)>, exactly, and without a reference."""
    p = problem_of(text)
    desc, arrays, _ = gradient(text, src, dst, weights, bias=False)
    form = dnn.DeconvolutionForward if is_deconvolution(p) else dnn.ConvolutionForward
    w = integers(3, p.weights_dims)
    forward = run(proved(described(form, p, {"src": src, "dst": dst}), isa), {"src": arrays["src"], "weights": w})
    back = run(proved(desc, isa), arrays)
    assert np.vdot(forward["dst"].astype(float), arrays["diff_dst"]) == np.vdot(w, back["diff_weights"].astype(float))


@ALL
def test_adjoint(isa: str, name: str, text: str, src: str, dst: str, weights: str) -> None:
    check_adjoint(isa, text, src, dst, weights)


@pytest.mark.parametrize(
    ("level", "kernel", "lines"), [("avx2", 3, 3), ("avx2", 5, 1), ("avx512_core", 3, 3), ("avx512_core", 5, 5)]
)
def test_lines_of_a_depthwise_kernel(level: IsaName, kernel: int, lines: int) -> None:
    """All at once where registers hold their sums; rows at the edges reach fewer."""
    desc, _, _ = gradient(f"g16mb1ic16ih12oc16kh{kernel}ph1", bias=False)
    plan = dnn.primitive_desc(desc, engine=dnn.Engine(isa=level, threads=1, machine=MACHINE)).plan
    found = {spec.lines for phase in plan.phases for spec in phase.kernels if isinstance(spec, GroupedWeightsSpec)}
    assert max(map(len, found)) == lines
    assert len(found) == (1 if lines == 1 else 2)


OF_LANES = (
    "g4mb2ic32ih9oc32kh3ph1", "g13mb1ic104ih7oc104kh3sh2ph1", "g3mb1ic24ih8iw40oc24kh5kw5ph2pw2",
    "g2mb1ic16iw9oc16kw7pw3", "deconv:g2mb1ic16ih5oc16kh4sh2ph1",
    "g3mb2ic48ih9oc48kh3ph1", "g2mb1ic32ih7oc32kh3sh2ph1",
)  # fmt: skip


@pytest.mark.parametrize("text", OF_LANES)
def test_groups_of_half_a_vector_or_of_a_whole_one(isa: str, text: str) -> None:
    p, lanes = problem_of(text), 16 if isa == "avx512_core" else 8
    wanted = "grouped" if p.ic // p.groups <= lanes else "direct"
    for tag in ("any", "nhwc") if "ih" in text else ("any",):
        name = check(*gradient(text, tag, tag), isa).implementation
        assert name.endswith(f"{wanted}:{isa}"), name


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_no_lane_of_small_groups_is_wasted(isa: IsaName) -> None:
    """As many cycles as one product of whole vectors has for as many multiplies, and some for rows."""
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE)
    lanes = 16 if isa == "avx512_core" else 8
    for group in (2, 4, lanes // 2, lanes):
        desc = gradient(f"g{64 // group}mb1ic64ih28oc64kh3ph1", bias=False)[0]
        products = 28 * 28 * 64 * group * 9
        assert dnn.primitive_desc(desc, engine=engine).plan.cycles < 1.6 * products / lanes


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("g4mb4ic64ih56oc64oh28kh3sh2ph1", (2 * 56 * 64, 2 * 56 * 64 + 64)),
        ("g4mb4ic64ih56oc64kh3ph1", ()),
        ("g4mb1ic64ih8oc64oh4kh3sh2ph1", ()),
        ("g64mb4ic64ih56oc64oh28kh3sh2ph1", ()),
        ("g4mb64ic64iw800oc64kw3sw2pw1", ()),
    ],
)
def test_strided_rows_ask_for_lines_from_beyond_l2(text: str, lines: tuple[int, ...]) -> None:
    """Those of the row that the next row of diff_dst has in the place of a column."""
    desc, _, _ = gradient(text, bias=False)
    plan = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine=MACHINE)).plan
    specs = [spec for phase in plan.phases for spec in phase.kernels if isinstance(spec, GroupedWeightsSpec)]
    assert {spec.prefetched for spec in specs} == {lines}


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize(("groups", "channels"), [(13, 12), (55, 12), (9, 24), (7, 6), (3, 20)])
def test_groups_that_are_left_over_cost_no_more_than_others(groups: int, channels: int, isa: IsaName) -> None:
    """Those of whole vectors are not computed with all others for their sake."""
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE)

    def cycles(count: int) -> int:
        size = f"g{count}mb1ic{count * channels}ih28oc{count * channels}kh3ph1"
        return dnn.primitive_desc(gradient(size, bias=False)[0], engine=engine).plan.cycles

    assert cycles(groups) < 1.4 * cycles(groups + 16 - groups % 16)


@pytest.mark.parametrize(("isa", "text", "rows"), [
    ("avx512_core", "mb1ic16ih9oc16kh3ph1", 24), ("avx512_core", "g2mb1ic20ih9oc20kh3ph1", 24),
    ("avx512_core", "mb1ic64ih9oc16kh1", 22), ("avx512_core", "mb1ic16ih9oc32kh3ph1", 8),
    ("avx2", "mb1ic16ih9oc8kh3ph1", 12), ("avx2", "mb1ic16ih9oc16kh3ph1", 6),
])  # fmt: skip
def test_tiles_have_sums_enough_for_the_latency_of_a_multiply(isa: IsaName, text: str, rows: int) -> None:
    """Of one vector of output channels, rows are of several positions."""
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE)
    plan = dnn.primitive_desc(gradient(text, bias=False)[0], engine=engine).plan
    specs = [spec for phase in plan.phases for spec in phase.kernels if isinstance(spec, ConvTileSpec)]
    assert max(len(spec.src_pixel_bytes) for spec in specs) == rows


RANGES = ["mb2ic3ih60iw50oc16kh3kw3ph1pw1", "mb1ic3iw3000oc16kw3", "mb2ic8ih100oc16kh1", "g16mb1ic16ih60oc16kh3ph1"]


@pytest.mark.parametrize("text", RANGES)
def test_ranges_of_chunks(isa: str, text: str) -> None:
    """Few tiles and many pixels: chunks in ranges, whose partial sums are added, in a number that the shape decides."""
    p = problem_of(text)
    x, dy = integers(1, p.src_dims, 2), integers(2, p.dst_dims, 2)
    desc = described(dnn.ConvolutionBackwardWeights, p, {})
    pd = proved(desc, isa)
    assert "partial sums" in pd.plan.scratch_bytes
    # A product for every tap: a loop over all pixels would take long.
    g = p.groups
    windows = np.pad(x.astype(float), ((0, 0), (0, 0), *((axis.p, axis.p) for axis in p.axes)))
    wanted = np.zeros((g, p.oc // g, p.ic // g, *(axis.k for axis in p.axes)))
    for tap in np.ndindex(*wanted.shape[3:]):
        part = windows[(..., *(slice(t, t + axis.o) for t, axis in zip(tap, p.axes, strict=True)))]
        both = (side.reshape(p.mb, g, side.shape[1] // g, -1) for side in (dy, part))
        wanted[(..., *tap)] = np.einsum("ngop,ngip->goi", *both)
    check(desc, {"src": x, "diff_dst": dy}, {"diff_weights": wanted.reshape(p.weights_dims)}, isa)


def test_real_numbers(isa: str) -> None:
    p = problem_of("mb2ic20ih9oc24kh3ph1")
    random = np.random.default_rng(5)
    x, dy = (random.standard_normal(dims).astype(np.float32) for dims in (p.src_dims, p.dst_dims))
    wanted = {"diff_weights": reference.of_weights(p, x, dy)}
    bound = 2 * 81 * 2.0**-24 * np.linalg.norm(x) * np.linalg.norm(dy)
    check(described(dnn.ConvolutionBackwardWeights, p, {}), {"src": x, "diff_dst": dy}, wanted, isa, bound)


@pytest.mark.parametrize(("mb", "i", "o"), [(0, 5, 3), (2, 2, 0)])
def test_nothing(isa: str, mb: int, i: int, o: int) -> None:
    """Of no pixels the gradients are 0, that of a bias too, side by side or apart."""
    tensors = [dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((mb, 8, i), (9, 8, 3), (mb, 9, o))]
    desc = dnn.ConvolutionBackwardWeights(*tensors)
    arrays = {"src": integers(1, (mb, 8, i)), "diff_dst": integers(2, (mb, 9, o))}
    check(desc, arrays, {"diff_weights": np.zeros((9, 8, 3))}, isa)
    for step in (1, 3):
        bias = dnn.MemoryDesc((9,), dnn.f32, strides=(step,), offset0=2)
        with_bias = dnn.ConvolutionBackwardWeights(*tensors, bias)
        check(with_bias, arrays, {"diff_weights": np.zeros((9, 8, 3)), "diff_bias": np.zeros(9)}, isa)


@pytest.mark.parametrize("text", ["mb1ic20ih6oc48kh3ph1", "mb1ic9ih9oc40kh5sh2ph2", "g2mb2ic32ih6oc160kh1"])
def test_the_forward_weights_panels_are_written(isa: str, text: str) -> None:
    """So that an optimiser can work on packed weights, element by element; with padding in the last panel, too."""
    desc, arrays, wanted = gradient(text, bias=False)
    forward = described(dnn.ConvolutionForward, problem_of(text), {})
    engine = dnn.Engine(isa=isa, threads=1, machine=MACHINE)
    weights = dnn.primitive_desc(forward, engine=engine).weights_desc
    pd = check(desc.with_formats({"diff_weights": weights}), arrays, wanted, isa)
    assert (pd.implementation, pd.diff_weights_desc) == (f"direct:{isa}", weights)


def test_of_a_forward_pass() -> None:
    p = problem_of("mb1ic20ih6oc24kh3sh2ph1")
    engine = dnn.Engine(isa="avx2", threads=1)
    forward = dnn.primitive_desc(described(dnn.ConvolutionForward, p, {"src": "nhwc"}), engine=engine)
    desc = dnn.ConvolutionBackwardWeights.of(forward, diff_bias="a")
    assert desc.src == forward.src_desc and desc.diff_dst == forward.dst_desc and desc.diff_weights.is_any
    assert desc.diff_bias is None  # the forward pass has none


def test_plans_do_not_grow_with_images() -> None:
    """Phases share their records: a large batch is more phases, and nothing else."""
    few, many = (
        dnn.primitive_desc(described(dnn.ConvolutionBackwardWeights, problem_of(f"mb{mb}ic16ih28oc16kh3ph1"), {}),
                           engine=dnn.Engine(isa="avx2", threads=1)).plan
        for mb in (4, 256)
    )  # fmt: skip
    assert many.nbytes == few.nbytes
    assert weights_tiles.CHUNK_BYTES < 1 << 20


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"diff_dst": (1, 4, 9, 10)}, "ConvolutionBackwardWeights, seen from its forward pass: dst's height is 9"),
        ({"diff_bias": (5,)}, "bias has 5 elements, weights makes 4 channels"),
        ({"src": (1, 7, 10, 10)}, "weights has 8 input channels, src has 7"),
    ],
)
def test_what_does_not_fit(changed: dict[str, Any], message: str) -> None:
    dims = {"src": (1, 8, 10, 10), "diff_weights": (4, 8, 3, 3), "diff_dst": (1, 4, 10, 10), "diff_bias": (4,)}
    tensors = {name: dnn.MemoryDesc(changed.get(name, size), dnn.f32, "any") for name, size in dims.items()}
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.ConvolutionBackwardWeights(**tensors, padding_l=(1, 1), padding_r=(1, 1))


def test_what_is_not_implemented() -> None:
    desc, _, _ = gradient("mb1ic8ih4oc8kh3ph1")
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops, scales or zero points"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]))
    octets = desc.with_formats({"src": dnn.MemoryDesc(desc.src.dims, dnn.s8, "any")})
    with pytest.raises(dnn.Unimplemented, match="src is s8, only f32, bf16, f16 is implemented"):
        dnn.primitive_desc(octets)
