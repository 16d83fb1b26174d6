"""Convolutions in bf16, f16 and bytes: exact sums, zero points, every type of dst, saturation, bounds of rounding."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of as sums
from asmdnn.memory.summed import SummedDesc
from tests.primitives.typed_conv import (
    HALF_ULP,
    LIMITS,
    UNIT_ROUNDOFF,
    TypedConv,
    by_channel,
    check_halves,
    computed,
    rounded,
)

BYTES = ("avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni")  # the levels that multiply them in a way of their own
HALVES = [("avx2", dnn.bf16), ("avx2", dnn.f16), ("avx512_core", dnn.f16), ("avx512_core_bf16", dnn.bf16)]
OF_BYTES = pytest.mark.parametrize("level", [pytest.param(name, marks=pytest.mark.isa(name)) for name in BYTES])
EMULATED = pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.emulated(n)) for n in BYTES])
SOURCES = pytest.mark.parametrize("src", [dnn.u8, dnn.s8], ids=str)

SHAPES = {  # problem, formats
    "a product": ("mb2ic19ih5oc37kh1", ("any", "any", "any")),
    "padding": ("mb1ic13ih6iw5oc35kh3kw3ph1pw1", ("axb", "any", "axb")),
    "strides and dilation": ("mb1ic10ih9iw8oc20kh3kw2sh2sw1ph2pw1dh1dw0", ("any", "any", "any")),
    "one axis": ("mb2ic9iw11oc17kw5pw2", ("any", "any", "any")),
    "three axes": ("mb1ic6id3ih4iw5oc18kd2kh3kw3pd1ph1pw1", ("any", "any", "any")),
    "groups": ("g3mb1ic30ih5oc57kh3ph1", ("any", "any", "any")),
    "groups of half a step": ("g2mb1ic10ih5oc6kh3ph1", ("any", "any", "any")),
    "blocks": ("mb1ic35ih5oc33kh3ph1", ("aBx16b", "any", "aBx16b")),
    "blocks as wide as a dilated step": ("mb1ic8ih2iw14oc16kh1kw4dw1", ("aBx4b", "any", "any")),
    "planes": ("mb1ic7ih5oc9kh3ph1", ("abx", "any", "abx")),
    "plain weights": ("mb1ic7ih5oc9kh3ph1", ("axb", "abcd", "axb")),
    "few channels": ("mb1ic3ih9oc16kh5ph2sh2", ("any", "any", "any")),
    "padding alone": ("mb1ic5ih2oc16oh6kh3ph4", ("any", "any", "any")),
}


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_bytes_are_exact(level: str, src: dnn.DataType, shape: str) -> None:
    text, tags = SHAPES[shape]
    case = TypedConv(text, (src, dnn.s8, dnn.s32), tags=tags, attr=dnn.Attr(zero_points={"src": 0}))
    data = {**case.data(), "src_zero_points": np.array([-7])}
    wanted = sums(case.problem, data["src"] + 7, data["weights"])
    assert np.array_equal(computed(case.planned(level), data), wanted)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("has_zero_point", [True, False])
@pytest.mark.parametrize(("shape", "name"), [("padding", "words+direct:avx2"), ("groups", "direct:avx2")])
def test_packed_weights_have_their_sums_after_them(shape: str, name: str, has_zero_point: bool) -> None:
    """In a format that can be passed again, also where nothing needs sums; plain panels serve as well."""
    text, tags = SHAPES[shape]
    point = dnn.Attr(zero_points={"src": 0})
    case = TypedConv(text, (dnn.u8, dnn.s8, dnn.s32), tags=tags, attr=point)
    summed = case.planned("avx2").plan.tensors["weights"]
    assert isinstance(summed, SummedDesc)
    assert not isinstance(replace(case, attr=dnn.Attr()).planned("avx2").plan.tensors["weights"], SummedDesc)
    data = {**case.data(), "src_zero_points": np.array([-7])}
    wanted = sums(case.problem, data["src"] + 7 * has_zero_point, data["weights"])
    engine = dnn.Engine(isa="avx2", threads=1)
    for weights in (summed, summed.storage):
        attr = point if has_zero_point else dnn.Attr()
        pd = dnn.primitive_desc(replace(case.desc(), weights=weights), attr, engine)
        assert (pd.implementation, pd.plan.tensors["weights"]) == (name, weights)
        assert np.array_equal(computed(pd, data), wanted)


@SOURCES
@EMULATED
def test_sums_of_bytes_are_exact_on_every_cpu(level: str, src: dnn.DataType) -> None:
    case = TypedConv("mb1ic7ih4iw3oc19kh3kw3ph1pw1", (src, dnn.s8, dnn.s32))
    data = case.data()
    wanted = sums(case.problem, data["src"], data["weights"])
    assert np.array_equal(computed(case.planned(level), data, emulated=True), wanted)


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("channels", [*range(1, 10), 31, 32, 33, 34, 35])
def test_every_tail_of_input_channels(level: str, src: dnn.DataType, channels: int) -> None:
    case = TypedConv(f"mb1ic{channels}ih3oc16kh2ph1", (src, dnn.s8, dnn.s32), tags=("axb", "any", "axb"))
    data = case.data()
    assert np.array_equal(computed(case.planned(level), data), sums(case.problem, data["src"], data["weights"]))


@OF_BYTES
@pytest.mark.parametrize("channels", [1, 7, 8, 15, 16, 17, 31, 33, 47, 49, 65])
def test_every_tail_of_output_channels(level: str, channels: int) -> None:
    """Bytes of dst, of which nothing after the last channel is written."""
    case = TypedConv(f"mb1ic8ih3oc{channels}kh1", (dnn.u8, dnn.s8, dnn.s8), tags=("axb", "any", "axb"))
    data = case.data()
    wanted = rounded(sums(case.problem, data["src"], data["weights"]), dnn.s8)
    assert np.array_equal(computed(case.planned(level), data), wanted)


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("extreme", [(0, 0), (0, -1), (-1, 0), (-1, -1)], ids=str)
def test_extreme_bytes(level: str, src: dnn.DataType, extreme: tuple[int, int]) -> None:
    """Largest by largest and smallest by smallest: pairs of such products do not fit 16 bits."""
    case = TypedConv("mb1ic64ih3oc16kh3ph1", (src, dnn.s8, dnn.s32))
    of_src, of_weights = extreme
    data = {name: np.full_like(values, 0) for name, values in case.data().items()}
    data["src"] += LIMITS[src][of_src]
    data["weights"] += LIMITS[dnn.s8][of_weights]
    assert np.array_equal(computed(case.planned(level), data), sums(case.problem, data["src"], data["weights"]))


@OF_BYTES
@pytest.mark.parametrize("dst", [dnn.u8, dnn.s8, dnn.s32], ids=str)
@pytest.mark.parametrize("src", [dnn.u8, dnn.s8], ids=str)
def test_requantization(level: str, src: dnn.DataType, dst: dnn.DataType) -> None:
    """By scales that are powers of two, so that f32 is exact: halves go to the even neighbour, all else saturates."""
    scales, points = {"src": 0, "weights": 1, "dst": 0}, {"src": 0, "dst": 0}
    attr = dnn.Attr([dnn.Sum(0.5, 2.0)], scales=scales, zero_points=points)
    case = TypedConv("mb2ic12ih5oc37kh3ph1", (src, dnn.s8, dst), dnn.s32, ("axb", "any", "axb"), attr)
    data, p = case.data(), case.problem
    by_weights = np.exp2(np.arange(p.oc) % 4 - 12.0)
    data |= {"src_scales": np.array([2.0]), "weights_scales": by_weights, "dst_scales": np.array([0.5])}
    data |= {"src_zero_points": np.array([3]), "dst_zero_points": np.array([-5])}
    of_f32 = sums(p, data["src"] - 3, data["weights"]) * 2.0 * by_channel(p, by_weights) + by_channel(p, data["bias"])
    wanted = rounded((of_f32 + 0.5 * (data["dst"] - 2.0)) / 0.5 - 5, dst)
    if dst != dnn.s32:
        assert {*LIMITS[dst]} <= {*wanted.ravel().tolist()} and (wanted != np.floor(of_f32)).any()
    assert np.array_equal(computed(case.planned(level), data), wanted)


@OF_BYTES
@pytest.mark.parametrize("dst", [dnn.f32, dnn.bf16, dnn.f16], ids=str)
def test_bytes_to_floats(level: str, dst: dnn.DataType) -> None:
    attr = dnn.Attr(scales={"weights": 0})
    case = TypedConv("mb1ic12ih5oc37kh3ph1", (dnn.s8, dnn.s8, dst), dst, ("axb", "any", "aBx16b"), attr)
    data = {**case.data(), "weights_scales": np.array([2.0**-14])}
    wanted = sums(case.problem, data["src"], data["weights"]) * 2.0**-14 + by_channel(case.problem, data["bias"])
    error = np.abs(computed(case.planned(level), data) - wanted)
    assert (error <= np.abs(wanted) * (HALF_ULP[dst] + UNIT_ROUNDOFF) + 2.0**-24).all()


@pytest.mark.parametrize(("level", "src"), [pytest.param(n, t, marks=pytest.mark.isa(n)) for n, t in HALVES], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_halves(level: str, src: dnn.DataType, shape: str) -> None:
    """Within the bound of sums in f32, and rounded once to dst's type; what a level does not multiply is widened."""
    text, tags = SHAPES[shape]
    assert check_halves(text, tags, src, level).implementation.endswith(f":{level}")


@OF_BYTES
def test_tensors_of_post_ops_have_their_own_types(level: str) -> None:
    channels = dnn.MemoryDesc((1, 21, 1, 1), dnn.s8, "abcd")
    pixels = dnn.MemoryDesc((1, 21, 5, 5), dnn.bf16, "axb")
    one = dnn.MemoryDesc((1, 1, 1, 1), dnn.f32, "abcd")
    attr = dnn.Attr([dnn.Binary("add", channels), dnn.Binary("max", pixels), dnn.Sum(2.0), dnn.PReLU(one)])
    case = TypedConv("mb1ic4ih5oc21kh1", (dnn.u8, dnn.s8, dnn.f32), None, ("axb", "any", "axb"), attr)
    data, random = case.data(), np.random.default_rng(2)
    data["dst"] = np.float64(random.integers(-40000, 40000, case.problem.dst_dims))
    data["binary_0"] = random.integers(-128, 127, channels.dims)
    data["binary_1"] = 256.0 * random.integers(-100, 100, pixels.dims)
    data["prelu_3"] = np.array(0.25).reshape(one.dims)
    x = sums(case.problem, data["src"], data["weights"]) + data["binary_0"]
    x = np.maximum(x, data["binary_1"]) + 2 * data["dst"]
    assert np.array_equal(computed(case.planned(level), data), np.where(x > 0, x, 0.25 * x))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.isa("avx512_core_vnni")
def test_threads_change_no_bit(threads: int) -> None:
    case = TypedConv("mb2ic32ih9oc70kh3ph1", (dnn.s8, dnn.s8, dnn.s32))
    pd = dnn.primitive_desc(case.desc(), engine=dnn.Engine(isa="avx512_core_vnni", threads=threads))
    data = case.data()
    assert np.array_equal(computed(pd, data), sums(case.problem, data["src"], data["weights"]))


@pytest.mark.parametrize("level", BYTES)
@SOURCES
def test_ranges_of_channels_leave_sums_in_dst(level: str, src: dnn.DataType) -> None:
    """Where dst holds s32; in a narrower one all channels are summed at a time."""
    text = "mb1ic2048ih3oc32kh3ph1"
    whole = TypedConv(text, (src, dnn.s8, dnn.u8)).planned(level)
    parts = TypedConv(text, (src, dnn.s8, dnn.s32)).planned(level)
    tiles = [sum(phase.continues for phase in pd.plan.phases) for pd in (whole, parts)]
    assert tiles[0] == 0 < tiles[1]


@pytest.mark.parametrize(
    ("types", "attr", "reason"),
    [
        ((dnn.f32,) * 3, {"zero_points": {"src": 0}}, "zero points are for integers, and src is f32"),
        ((dnn.bf16, dnn.bf16, dnn.f32), {"zero_points": {"dst": 0}}, "zero points are for integers, and dst is f32"),
        ((dnn.u8, dnn.s8, dnn.u8), {"zero_points": {"src": 1}}, "of src they have the mask 0 or 2, of weights 0"),
        ((dnn.u8, dnn.s8, dnn.u8), {"zero_points": {"dst": 16}}, "dst have the mask 16, for more than 4"),
        ((dnn.u8, dnn.s8, dnn.s32), {"zero_points": {"weights": 1}}, "of src they have the mask 0 or 2, of weights 0"),
        ((dnn.u8, dnn.u8, dnn.s32), {"scales": {"src": 2}}, "dst is s32, and with scales .*: take f32, s8 or u8"),
        ((dnn.s32, dnn.s32, dnn.s32), {}, "does not multiply s32 by s32"),
    ],
)
def test_reasons(types: tuple[dnn.DataType, ...], attr: dict[str, dict[str, int]], reason: str) -> None:
    case = TypedConv("mb1ic8ih3oc8kh1", types, attr=dnn.Attr(**attr))  # type: ignore[arg-type]
    with pytest.raises(dnn.Unimplemented, match=reason):
        case.planned("avx512_core_vnni")


def test_formats_that_are_open() -> None:
    """Channels last, and weights in panels of the channels that a multiply takes."""
    case = TypedConv("mb1ic64ih7oc64kh3ph1", (dnn.u8, dnn.s8, dnn.u8))
    pd = case.planned("avx512_core_vnni")
    nhwc = [dnn.MemoryDesc(d.dims, dnn.u8, "nhwc") for d in (case.desc().src, case.desc().dst)]
    assert [pd.plan.tensors["src"], pd.plan.tensors["dst"]] == nhwc
    assert pd.plan.tensors["weights"].inner_blocks == ((1, 8), (0, 32), (1, 4))
    again = replace(case, tags=("axb", "OIhw8i32o4i", "axb")).planned("avx512_core_vnni")
    assert again.plan.tensors == pd.plan.tensors and again.implementation == "direct:avx512_core_vnni"


@pytest.mark.parametrize(
    ("src", "text", "tag", "block", "name"),
    [
        (dnn.u8, "mb1ic3ih40oc64kh7ph3sh2", "any", ((1, 4),), "direct"),
        (dnn.bf16, "mb1ic3ih9oc16kh3ph2dh1", "any", ((1, 4),), "direct"),
        (dnn.u8, "mb1ic3ih40oc64kh7ph3sh2", "axb", (), "reorder+direct"),
        (dnn.u8, "mb1ic3ih40oc16oh20kh1sh2", "axb", (), "direct"),
    ],
)
def test_few_channels_are_padded(src: dnn.DataType, text: str, tag: str, block: tuple[Any, ...], name: str) -> None:
    """To whole steps: where formats are open, or where a copy is worth it."""
    weights = dnn.s8 if src == dnn.u8 else src
    pd = TypedConv(text, (src, weights, dnn.f32), tags=(tag, "any", "axb")).planned("avx512_core_bf16")
    assert pd.plan.tensors["src"].inner_blocks == block
    assert pd.implementation.rpartition(":")[0] == name


@pytest.mark.parametrize("level", ["avx2", "avx512_core_bf16"])
@pytest.mark.parametrize("dtype", [dnn.f16, dnn.bf16], ids=str)
def test_zero_points_of_floats_are_refused_by_the_types_that_are_passed(level: str, dtype: dnn.DataType) -> None:
    """What is widened inside was once named: "src is f32"."""
    case = TypedConv("mb1ic16ih8oc16kh1", (dtype, dtype, dtype), attr=dnn.Attr(zero_points={"src": 0}))
    with pytest.raises(dnn.Unimplemented, match=f"zero points are for integers, and src is {dtype}") as refused:
        case.planned(level)
    assert "src is f32" not in str(refused.value)
