"""Depthwise convolutions by large kernels in fewer bytes than f32: which way takes them, exact sums, what is beyond."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of as sums
from asmdnn.generators.dot.interleaved_rows import InterleavedRowsSpec
from asmdnn.generators.functions.shifted import ShiftedSpec
from tests.primitives.typed_conv import TypedConv, by_channel, check_halves, computed, rounded

BYTES = ("avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni")
OF_BYTES = pytest.mark.parametrize("level", [pytest.param(name, marks=pytest.mark.isa(name)) for name in BYTES])
EMULATED = pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.emulated(n)) for n in BYTES])
SOURCES = pytest.mark.parametrize("src", [dnn.u8, dnn.s8], ids=str)
LAST, OPEN = ("axb", "any", "axb"), ("any", "any", "any")

SHAPES = {  # problem, formats: every rest of a kernel by four, strides and dilations that share a divisor or none
    "square": ("g35mb2ic35ih9iw20oc35oh9ow20kh13kw13ph6pw6", OPEN),
    "wide": ("g17mb1ic17ih3iw40oc17oh3ow40kh2kw22ph0pw10", LAST),
    "high": ("g8mb1ic8ih40iw6oc8oh40ow6kh23kw10ph11pw4", LAST),
    "strided": ("g16mb1ic16ih21iw23oc16oh10ow11kh12kw14sh2sw2ph5pw6", LAST),
    "strided by three": ("g9mb1ic9ih28iw28oc9oh10ow10kh15kw15sh3sw3ph7pw7", LAST),
    "dilated": ("g16mb1ic16ih20iw21oc16oh20ow21kh10kw11dh1dw1ph9pw10", LAST),
    "dilated and strided": ("g16mb1ic16ih31iw20oc16oh11ow20kh10kw11sh3dh1ph9pw5", LAST),
    "one axis": ("g17mb2ic17iw50oc17ow51kw31pw15", OPEN),
    "three axes": ("g20mb1ic20id4ih6iw12oc20od4oh6ow12kd3kh5kw11pd1ph2pw5", OPEN),
    "more than the image": ("g16mb1ic16ih5iw6oc16oh5ow6kh31kw31ph15pw15", LAST),
    "padding alone at the ends": ("g16mb1ic16ih6iw30oc16oh19ow30kh10kw15ph11pw7", LAST),
    "no padding": ("g16mb1ic16ih26iw27oc16oh11ow12kh16kw16", LAST),
    "planes of channels": ("g18mb1ic18ih12iw12oc18oh12ow12kh11kw11ph5pw5", ("abx", "any", "abx")),
    "blocks": ("g35mb1ic35ih12iw12oc35oh12ow12kh11kw11ph5pw5", ("aBx16b", "any", "aBx16b")),
    "plain weights": ("g16mb1ic16ih12iw12oc16oh12ow12kh11kw11ph5pw5", ("axb", "abcde", "axb")),
}


def interleaves(pd: dnn.PrimitiveDesc) -> bool:
    specs = (spec.kernel if isinstance(spec, ShiftedSpec) else spec for spec in pd.plan.specs)
    return any(isinstance(spec, InterleavedRowsSpec) for spec in specs)


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_bytes_are_exact(level: str, src: dnn.DataType, shape: str) -> None:
    text, tags = SHAPES[shape]
    case = TypedConv(text, (src, dnn.s8, dnn.s32), tags=tags)
    data, pd = case.data(), case.planned(level)
    assert interleaves(pd)
    assert np.array_equal(computed(pd, data), sums(case.problem, data["src"], data["weights"]))


@SOURCES
@EMULATED
def test_sums_of_bytes_are_exact_on_every_cpu(level: str, src: dnn.DataType) -> None:
    case = TypedConv("g9mb1ic9ih4iw7oc9oh4ow7kh3kw13ph1pw6", (src, dnn.s8, dnn.s32), tags=LAST)
    data, pd = case.data(), case.planned(level)
    assert interleaves(pd)
    assert np.array_equal(computed(pd, data, emulated=True), sums(case.problem, data["src"], data["weights"]))


@SOURCES
@OF_BYTES
def test_sums_beyond_what_floats_hold(level: str, src: dnn.DataType) -> None:
    """Of the largest bytes, and an odd one: 33x33 of them are beyond 2^24."""
    case = TypedConv("g9mb1ic9ih33iw33oc9oh1ow1kh33kw33", (src, dnn.s8, dnn.s32), tags=LAST)
    data, pd = case.data(), case.planned(level)
    data["src"][:], data["weights"][:] = {dnn.u8: 255, dnn.s8: -128}[src], -128
    data["src"][:, :, 3, 5] -= 1 if src == dnn.u8 else -1
    data["weights"][..., 3, 5] = -127
    wanted = sums(case.problem, data["src"], data["weights"])
    assert interleaves(pd) and abs(wanted).min() > 2**24 and wanted.flat[0] % 2 == data["src"][0, 0, 3, 5] % 2
    assert np.array_equal(computed(pd, data), wanted)


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("tags", [LAST, ("aBx16b", "any", "axb"), ("abx", "abcde", "abx")], ids=str)
def test_requantization(level: str, src: dnn.DataType, tags: tuple[str, str, str]) -> None:
    """A zero point of src, which padding has, too; by powers of two, so that f32 is exact."""
    scales, points = {"src": 0, "weights": 3, "dst": 0}, {"src": 0, "dst": 0}
    attr = dnn.Attr([dnn.Sum(0.5, 2.0), dnn.Eltwise("relu")], scales=scales, zero_points=points)
    case = TypedConv("g37mb2ic37ih9iw13oc37oh9ow13kh11kw11ph5pw5", (src, dnn.s8, dnn.u8), dnn.s32, tags, attr)
    data, p = case.data(), case.problem
    by_weights = np.exp2(np.arange(37) % 4 - 12.0)
    zero_point = {dnn.u8: 131, dnn.s8: -77}[src]
    data |= {"src_scales": np.array([2.0]), "weights_scales": by_weights, "dst_scales": np.array([0.5])}
    data |= {"src_zero_points": np.array([zero_point]), "dst_zero_points": np.array([-5])}
    of_f32 = sums(p, data["src"] - zero_point, data["weights"]) * 2.0 * by_channel(p, by_weights)
    of_f32 += by_channel(p, data["bias"])
    wanted = rounded(np.maximum(of_f32 + 0.5 * (data["dst"] - 2.0), 0) / 0.5 - 5, dnn.u8)
    pd = case.planned(level)
    assert interleaves(pd)
    assert np.array_equal(computed(pd, data), wanted)


@OF_BYTES
@pytest.mark.parametrize("src", [dnn.u8, dnn.s8], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_zero_points_of_any_size_go_by_columns_of_the_kernel(level: str, src: dnn.DataType, shape: str) -> None:
    """Where dst is s32 a zero point is subtracted modulo 2^32, and words are not that wide: parts of the kernel are."""
    text, tags = SHAPES[shape]
    attr = dnn.Attr(zero_points={"src": 0})
    case = TypedConv(text, (src, dnn.s8, dnn.s32), dnn.s32, tags=tags, attr=attr)
    data, pd = case.data() | {"src_zero_points": np.array([100_000])}, case.planned(level)
    assert any("may be more than words hold" in str(refusal) for refusal in pd.refusals)
    in_padding = shape == "more than the image"
    assert ("columns+depthwise:" in pd.implementation) != (in_padding or case.problem.axes[-1].k < 10), (
        pd.implementation
    )
    pd.plan.check()
    exact = sums(case.problem, data["src"] - 100_000, data["weights"]) + by_channel(case.problem, data["bias"])
    assert np.array_equal(computed(pd, data), (exact.astype(np.int64) + 2**31) % 2**32 - 2**31)


@pytest.mark.isa("avx2")
def test_what_follows_sums_is_left_to_others() -> None:
    for attr in (dnn.Attr([dnn.Eltwise("relu")], zero_points={"src": 0}), dnn.Attr(zero_points={"src": 0, "dst": 0})):
        case = TypedConv(SHAPES["wide"][0], (dnn.u8, dnn.s8, dnn.s32), tags=LAST, attr=attr)
        reasons = [str(refusal) for refusal in case.planned("avx2").refusals]
        assert any("would follow those of each part" in reason for reason in reasons)


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_of_bf16(shape: str) -> None:
    text, tags = SHAPES[shape]
    assert interleaves(check_halves(text, tags, dnn.bf16, "avx512_core_bf16"))


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize(
    "text",
    [
        "g21mb1ic21ih40iw12oc21oh11ow12kh30kw10ph0pw4",
        "g21mb1ic21ih40iw20oc21oh10ow10kh31kw11",
        "g21mb1ic21iw200oc21ow170kw31",
        "g21mb1ic21iw100oc21ow90kw31pw10",
        "g9mb1ic9id3ih20iw20oc9od2oh10ow10kd2kh11kw11",
    ],
)
def test_what_pairs_have_beyond_the_kernel_counts_for_nothing(text: str) -> None:
    """An infinite pixel is met by the windows that have it: not by one whose last pair has a half more."""
    case = TypedConv(text, (dnn.bf16, dnn.bf16, dnn.f32), tags=LAST)
    data, pd = case.data(), case.planned("avx512_core_bf16")
    assert interleaves(pd)
    data["src"][:, 3] = np.inf
    data["src"][:, 3, ..., :-1] = 1
    if len(case.problem.axes) > 1:
        data["src"][:, 4, ..., :-1, :] = 1
        data["src"][:, 4, ..., -1, :] = np.nan
    data["weights"] = np.abs(data["weights"]) + 1
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(sums(case.problem, data["src"], data["weights"]))
    assert not finite.all() and finite.any()
    assert np.array_equal(np.isfinite(computed(pd, data)), finite)


@pytest.mark.parametrize(
    ("text", "types", "level", "name"),
    [
        ("g64ic64ih56oc64oh56kh9ph4dh0n", (dnn.u8, dnn.s8, dnn.u8), "avx512_core_vnni", "interleave+depthwise"),
        ("g64ic64ih33oc64oh5kh11sh3dh1", (dnn.u8, dnn.s8, dnn.u8), "avx512_core_vnni", "interleave+depthwise"),
        ("g64ic64ih33oc64oh5kh11sh3dh1", (dnn.f16,) * 3, "avx512_core", "depthwise"),
        ("g64ic64ih33oc64oh5kh11sh3dh1", (dnn.bf16,) * 3, "avx512_core_bf16", "depthwise"),
        ("g64ic64ih33oc64oh1kh33", (dnn.u8, dnn.s8, dnn.u8), "avx512_core_vnni", "interleave+depthwise"),
        ("g64ic64ih56oc64oh57kh8ph4dh0n", (dnn.u8, dnn.s8, dnn.u8), "avx512_core_vnni", "depthwise"),
        ("g64ic64ih56oc64oh56kh9ph4dh0n", (dnn.bf16,) * 3, "avx512_core_bf16", "depthwise"),
        ("g64ic64ih56oc64oh56kh13ph6dh0n", (dnn.bf16,) * 3, "avx512_core_bf16", "interleave+depthwise"),
        ("g64ic64ih56oc64oh56kh7ph3dh0n", (dnn.s8, dnn.s8, dnn.s8), "avx2", "interleave+depthwise"),
        ("g64ic64ih56oc64oh57kh6ph3dh0n", (dnn.s8, dnn.s8, dnn.s8), "avx2", "depthwise"),
        ("g64ic64iw99oc64ow99kw9pw4", (dnn.u8, dnn.s8, dnn.u8), "avx512_core_vnni", "interleave+depthwise"),
        ("g64ic64iw99oc64ow99kw15pw7", (dnn.bf16,) * 3, "avx512_core_bf16", "depthwise"),
        ("g64ic64ih56oc64oh56kh9ph4dh0n", (dnn.bf16,) * 3, "avx2", "widen+depthwise"),
        ("g64ic64ih56oc64oh56kh9ph4dh0n", (dnn.f16,) * 3, "avx512_core", "widen+depthwise"),
        ("g64ic64ih56oc64oh56kh7ph3dh0n", (dnn.f16,) * 3, "avx512_core", "depthwise"),
        ("g64ic64ih56oc64oh56kh13ph6dh0n", (dnn.f16, dnn.f32, dnn.f16), "avx2", "widen+depthwise"),
    ],
)
def test_where_it_pays(text: str, types: tuple[dnn.DataType, ...], level: str, name: str) -> None:
    pd = TypedConv(text, (types[0], types[1], types[2])).planned(level)
    assert pd.implementation.rpartition(":")[0] == name


def test_slow_pairs_become_f32() -> None:
    desc = TypedConv("g64mb1ic64ih56oc64oh56kh13ph6dh0n", (dnn.bf16,) * 3, tags=LAST).desc()
    engine = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="sapphire_rapids")
    assert dnn.primitive_desc(desc, engine=engine).implementation.startswith("widen+depthwise:")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("src", [dnn.bf16, dnn.f16], ids=str)
@pytest.mark.parametrize("shape", ["square", "dilated", "three axes", "planes of channels", "blocks", "plain weights"])
def test_halves_as_f32(src: dnn.DataType, shape: str) -> None:
    text, tags = SHAPES[shape]
    pd = check_halves(text, tags, src, "avx2")
    assert "widen+depthwise:avx2" in pd.implementation


@pytest.mark.isa("avx512_core_vnni")
@pytest.mark.parametrize(
    ("threads", "images", "apart"), [(1, 2, True), (2, 2, True), (2, 3, False), (2, 9, True), (3, 2, False)]
)
def test_images_one_by_one(threads: int, images: int, apart: bool) -> None:
    """Where groups of all would leave L2, and threads are not more than images; bias, and sums with what dst held."""
    text = f"g37mb{images}ic37ih21iw23oc37oh21ow23kh11kw12ph5pw6"
    attr = dnn.Attr([dnn.Sum(), dnn.Eltwise("relu")], zero_points={"src": 0})
    case = TypedConv(text, (dnn.s8, dnn.s8, dnn.f32), dnn.s32, LAST, attr)
    engine = dnn.Engine(isa="avx512_core_vnni", threads=threads, l2_bytes=32 << 10, machine="zen3")
    pd = dnn.primitive_desc(case.desc(), case.attr, engine)
    pd.plan.check()
    assert interleaves(pd) and bool(pd.plan.per_part) == apart
    data = case.data() | {"src_zero_points": np.array([-77])}
    data["dst"] = np.rint(9 * data["dst"])
    wanted = sums(case.problem, data["src"] + 77, data["weights"]) + by_channel(case.problem, data["bias"])
    assert np.array_equal(computed(pd, data), np.maximum(wanted + data["dst"], 0))


@pytest.mark.isa("avx512_core_bf16")
def test_images_of_pairs_one_by_one() -> None:
    """In other formats, too; a tensor of post-ops that has images keeps them together."""
    text, size = "g37mb4ic37ih41iw33oc37oh41ow33kh11kw11ph5pw5", (4, 37, 41, 33)
    for tags in (LAST, ("aBx16b", "any", "aBx16b")):
        assert check_halves(text, tags, dnn.bf16, "avx512_core_bf16").plan.per_part
    for dims, apart in ((size, False), ((1, *size[1:]), True), ((1, 37, 1, 1), True)):
        attr = dnn.Attr([dnn.Binary("add", dnn.MemoryDesc(dims, dnn.f32, "acdb"))])
        case = TypedConv(text, (dnn.bf16,) * 3, tags=LAST, attr=attr)
        assert bool(case.planned("avx512_core_bf16").plan.per_part) == apart


def test_formats_that_are_open() -> None:
    """Weights have a group of four rows of a channel together, and their format is taken again."""
    case = TypedConv("g48mb1ic48ih14oc48oh14kh11ph5dh0n", (dnn.u8, dnn.s8, dnn.u8))
    pd = case.planned("avx512_core_vnni")
    assert [pd.plan.tensors[name].tag for name in ("src", "dst")] == ["acdb"] * 2
    assert pd.plan.tensors["weights"].inner_blocks == ((0, 16), (3, 4))
    again = replace(case, tags=("axb", "GoiHw16g4h", "axb")).planned("avx512_core_vnni")
    assert again.plan.tensors == pd.plan.tensors and again.implementation == pd.implementation
