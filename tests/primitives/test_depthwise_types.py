"""Depthwise and grouped convolutions in bf16, f16 and bytes: the implementation, exact sums, bounds of rounding."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of as sums
from asmdnn.generators.dot.grouped_dots import GroupedDotsSpec
from asmdnn.isa.vectors import lanes_of
from tests.primitives.typed_conv import UNIT_ROUNDOFF, TypedConv, by_channel, check_halves, computed, rounded

BYTES = ("avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni")
HALVES = [("avx2", dnn.bf16), ("avx2", dnn.f16), ("avx512_core", dnn.f16), ("avx512_core_bf16", dnn.bf16)]
OF_BYTES = pytest.mark.parametrize("level", [pytest.param(name, marks=pytest.mark.isa(name)) for name in BYTES])
EMULATED = pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.emulated(n)) for n in BYTES])
OF_HALVES = pytest.mark.parametrize(
    ("level", "src"), [pytest.param(n, t, marks=pytest.mark.isa(n)) for n, t in HALVES], ids=str
)
SOURCES = pytest.mark.parametrize("src", [dnn.u8, dnn.s8], ids=str)
LAST, BLOCKED = ("axb", "any", "axb"), ("aBx16b", "any", "aBx16b")

DEPTHWISE = {  # problem, formats
    "pairs of rows": ("g35mb2ic35ih9iw11oc35kh3kw3ph1pw1", ("any", "any", "any")),
    "rows alone": ("g32mb1ic32ih9oc32kh3sh2ph1", LAST),
    "dilated": ("g16mb1ic16ih9iw13oc16kh3kw3ph1pw2dh1dw1", LAST),
    "dilated and strided alike": ("g16mb1ic16ih11oc16kh3sh2ph2dh1", LAST),
    "five by five": ("g40mb1ic40ih8oc40kh5ph2", LAST),
    "wide": ("g9mb1ic9ih4iw20oc9kh1kw9pw4", LAST),
    "high": ("g9mb1ic9ih20iw4oc9kh9kw1ph4", LAST),
    "one axis": ("g17mb2ic17iw21oc17kw5pw2", ("any", "any", "any")),
    "three axes": ("g20mb1ic20id4ih5iw6oc20kd3kh3kw3pd1ph1pw1", ("any", "any", "any")),
    "blocks": ("g35mb1ic35ih6oc35kh3ph1", BLOCKED),
    "padding alone": ("g16mb1ic16ih2oc16kh3ph4", LAST),
    "planes of channels": ("g18mb1ic18ih5oc18kh3ph1", ("abx", "any", "abx")),
    "plain weights": ("g16mb1ic16ih5oc16kh3ph1", ("axb", "abcde", "axb")),
}
OTHERS = {  # which rows of bytes do not take, and rows of halves do
    "groups of four": ("g5mb1ic20ih6oc20kh3ph1", "grouped"),
    "groups of eight": ("g5mb2ic40ih6oc40kh3ph1", "grouped"),
    "groups of 16": ("g2mb1ic32ih5oc32kh3ph1", "grouped"),
    "eleven wide": ("g16mb1ic16ih3iw14oc16kh3kw11ph1pw5", "depthwise"),
    "several for each": ("g7mb1ic7ih6oc28kh3ph1", "repeat+depthwise"),
}

BY_TILES = {  # a vector of channels and more, which tiles widen less often
    ("groups of eight", "avx2"), ("groups of 16", "avx2"), ("groups of 16", "avx512_core"),
}  # fmt: skip
GROUPS_OF = {"groups of four": 4, "groups of eight": 8, "groups of 16": 16}  # that rows may multiply 4 bytes at a time


def word_of(tags: tuple[str, str, str], level: str) -> str:
    """In front of the name: what formats need; 35 channels in blocks of 16 have a vector of padding alone with AVX2."""
    apart = tags[0] == "abx" or (tags == BLOCKED and level.startswith("avx2"))
    return "pack+" if tags[1] == "abcde" else "reorder+" * apart


@OF_BYTES
@pytest.mark.parametrize(("number", "shape"), [*enumerate(DEPTHWISE)])
def test_sums_of_bytes_are_exact(level: str, number: int, shape: str) -> None:
    """Of u8 and s8 in turn, another way round on every other level."""
    text, tags = DEPTHWISE[shape]
    src = (dnn.u8, dnn.s8)[(number + BYTES.index(level)) % 2]
    case = TypedConv(text, (src, dnn.s8, dnn.s32), tags=tags, attr=dnn.Attr(zero_points={"src": 0}))
    data = {**case.data(), "src_zero_points": np.array([1000])}
    pd = case.planned(level)
    assert pd.implementation == f"{word_of(tags, level)}depthwise:{level}"
    assert np.array_equal(computed(pd, data), sums(case.problem, data["src"] - 1000, data["weights"]))


@SOURCES
@EMULATED
def test_sums_of_bytes_are_exact_on_every_cpu(level: str, src: dnn.DataType) -> None:
    case = TypedConv("g21mb1ic21ih5iw4oc21kh3kw3ph1pw1", (src, dnn.s8, dnn.s32), tags=LAST)
    data, pd = case.data(), case.planned(level)
    assert pd.implementation == f"depthwise:{level}"
    assert np.array_equal(computed(pd, data, emulated=True), sums(case.problem, data["src"], data["weights"]))


@OF_BYTES
@pytest.mark.parametrize("channels", [1, 5, 7, 8, 15, 17, 33, 65])
def test_every_tail_of_channels(level: str, channels: int) -> None:
    case = TypedConv(f"g{channels}mb1ic{channels}ih4oc{channels}kh3ph1", (dnn.s8, dnn.s8, dnn.s8), tags=LAST)
    data, pd = case.data(), case.planned(level)
    wanted = rounded(sums(case.problem, data["src"], data["weights"]), dnn.s8)
    assert np.array_equal(computed(pd, data), wanted)


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("dst", [dnn.u8, dnn.s8, dnn.s32], ids=str)
def test_requantization(level: str, src: dnn.DataType, dst: dnn.DataType) -> None:
    """By powers of two, so that f32 is exact; relu in front of what saturates at 0 anyway."""
    scales, points = {"src": 0, "weights": 3, "dst": 0}, {"src": 0, "dst": 0}
    attr = dnn.Attr([dnn.Sum(0.5, 2.0), dnn.Eltwise("relu")], scales=scales, zero_points=points)
    case = TypedConv("g37mb2ic37ih5oc37kh3ph1", (src, dnn.s8, dst), dnn.s32, LAST, attr)
    data, p = case.data(), case.problem
    by_weights = np.exp2(np.arange(37) % 4 - 10.0)
    data |= {"src_scales": np.array([2.0]), "weights_scales": by_weights, "dst_scales": np.array([0.5])}
    data |= {"src_zero_points": np.array([3]), "dst_zero_points": np.array([-5])}
    of_f32 = sums(p, data["src"] - 3, data["weights"]) * 2.0 * by_channel(p, by_weights) + by_channel(p, data["bias"])
    wanted = rounded(np.maximum(of_f32 + 0.5 * (data["dst"] - 2.0), 0) / 0.5 - 5, dst)
    assert np.array_equal(computed(case.planned(level), data), wanted)


@OF_HALVES
@pytest.mark.parametrize("shape", DEPTHWISE)
def test_halves(level: str, src: dnn.DataType, shape: str) -> None:
    text, tags = DEPTHWISE[shape]
    pd = check_halves(text, tags, src, level)
    assert pd.implementation == f"{word_of(tags, level)}depthwise:{level}"


@OF_HALVES
@pytest.mark.parametrize("shape", OTHERS)
def test_groups_of_halves(level: str, src: dnn.DataType, shape: str) -> None:
    text, name = OTHERS[shape]
    pd = check_halves(text, ("any", "any", "any"), src, level)
    if (shape, level) in BY_TILES:
        name = "direct"
    if (shape, level) == ("eleven wide", "avx512_core_bf16"):
        name = "interleave+depthwise"
    assert pd.implementation in (f"{name}:{level}", f"widen+{name}:{level}")


@SOURCES
@OF_BYTES
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("g19mb1ic19ih6iw14oc19oh6ow14kh3kw11ph1pw5", "interleave+"),
        ("g19mb1ic19iw14oc19ow14kw11pw5", "floats+"),
        ("g9mb1ic9iw70oc9ow70kw65pw32", "interleave+"),
        ("g9mb1ic9iw300oc9ow20kw281", "floats+"),
        ("g9mb1ic9iw1110oc9ow11kw1100", "direct"),
        ("g9mb1ic9ih12iw12oc9oh12ow11kh7kw6ph3pw2", "depthwise"),
    ],
)
def test_long_kernels(level: str, src: dnn.DataType, text: str, name: str) -> None:
    """Rows of bytes are up to nine wide, and interleaved ones up to 256; floats take others while they hold their sums:
    up to 514 products of u8."""
    for dst in (dnn.s8, dnn.s32):
        case = TypedConv(text, (src, dnn.s8, dst), tags=("any",) * 3)
        data, pd = case.data(), case.planned(level)
        assert pd.implementation.startswith(name)
        assert np.array_equal(computed(pd, data), rounded(sums(case.problem, data["src"], data["weights"]), dst))


@OF_BYTES
def test_sums_that_floats_just_hold(level: str) -> None:
    """Of 512 products of the largest bytes, and a bias of f32 that is added once, after them."""
    attr = dnn.Attr(zero_points={"src": 2}, accumulation_mode="f32")
    case = TypedConv("g9mb1ic9ih8iw70oc9oh1ow7kh8kw64ph0pw0", (dnn.u8, dnn.s8, dnn.s32), dnn.f32, tags=LAST, attr=attr)
    data, pd = case.data() | {"src_zero_points": np.zeros(9)}, case.planned(level)
    assert pd.implementation.startswith("floats+")
    data["src"][:], data["weights"][:], data["bias"][:] = 255, -128, 0.6
    data["weights"][..., 0, ::2] = -127  # an odd sum
    wanted = (sums(case.problem, data["src"], data["weights"]).astype(np.float32) + np.float32(0.6)).astype(np.float64)
    assert abs(wanted).max() > 0.99 * 2**24
    assert np.array_equal(computed(pd, data), rounded(wanted, dnn.s32))


@pytest.mark.isa("avx2")
@SOURCES
@pytest.mark.parametrize(
    "text", ["g21mb1ic21ih9iw7oc21kh3kw3ph1pw1", "g19mb2ic19ih11oc19kh5sh2ph2", "g4mb1ic32ih7oc32kh3ph1"]
)
def test_bytes_by_floats(text: str, src: dnn.DataType) -> None:
    """Read into f32, within its bound; a zero point is refused."""
    case = TypedConv(text, (src, dnn.f32, dnn.f32), tags=LAST)
    data, p, pd = case.data(), case.problem, case.planned("avx2")
    assert pd.implementation in ("depthwise:avx2", "grouped:avx2")
    size = sums(p, np.abs(data["src"]).astype(np.float64), np.abs(data["weights"]))
    terms = p.reduction * UNIT_ROUNDOFF
    assert (np.abs(computed(pd, data) - sums(p, data["src"], data["weights"])) <= size * terms / (1 - terms)).all()
    with pytest.raises(dnn.Unimplemented, match="zero points of src are not implemented"):
        replace(case, attr=dnn.Attr(zero_points={"src": 0})).planned("avx2")


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("channels", [8, 16])
def test_blocks_of_channels_stay_with_rows(channels: int) -> None:
    """Tiles of pairs would copy them first."""
    text = f"g{48 // channels}mb1ic48ih5oc48kh3ph1"
    pd = check_halves(text, BLOCKED, dnn.bf16, "avx512_core_bf16")
    assert pd.implementation == "grouped:avx512_core_bf16"


@OF_HALVES
def test_few_inputs_of_halves(level: str, src: dnn.DataType) -> None:
    """One at a time where the level does not multiply several."""
    pd = check_halves("mb1ic1ih20oc8kh3ph1", ("any", "any", "any"), src, level)
    assert pd.implementation == ("kernel_rows" if level == "avx512_core_bf16" else "few_inputs") + f":{level}"


@OF_BYTES
@pytest.mark.parametrize(("number", "shape"), [*enumerate(OTHERS)])
def test_groups_of_bytes(level: str, number: int, shape: str) -> None:
    """Rows of u8 where VPDPBUSD multiplies four channels of a group that fits a vector; where they refuse, tiles do it,
    or floats, as exactly."""
    text, _ = OTHERS[shape]
    for src in (dnn.u8, dnn.s8):
        case = TypedConv(text, (src, dnn.s8, dnn.s32))
        data, pd = case.data(), case.planned(level)
        assert np.array_equal(computed(pd, data), sums(case.problem, data["src"], data["weights"]))
        fits = GROUPS_OF.get(shape, 99) <= lanes_of(level)
        name = "grouped" if fits and src == dnn.u8 and level.endswith("vnni") else "direct"
        words = "words+" if level == "avx2" and shape == "groups of eight" else ""
        found = "interleave+depthwise" if shape == "eleven wide" else words + name
        assert shape == "several for each" or pd.implementation.rpartition(":")[0] == found


GROUPED = {  # problem, formats: what rows of dot products distinguish
    "strided": ("g6mb2ic48ih9oc48kh3sh2ph1", LAST),
    "dilated, one row alone": ("g3mb1ic12ih3iw20oc12kh1kw5pw4dw1", LAST),
    "a tail": ("g5mb1ic40ih14oc40kh3ph1", LAST),
    "one axis": ("g16mb2ic64iw40oc64kw7pw3", LAST),
    "three axes": ("g8mb1ic32id4ih5iw6oc32kd3kh3kw3pd1ph1pw1", LAST),
    "planes of channels": ("g4mb1ic32ih6oc32kh3ph1", ("abx", "any", "abx")),
    "plain weights": ("g4mb1ic32ih6oc32kh3ph1", ("axb", "abcde", "axb")),
    "blocks": ("g4mb1ic32ih6oc32kh3ph1", BLOCKED),
}


@pytest.mark.parametrize("shape", GROUPED)
@pytest.mark.parametrize(
    ("level", "types"),
    [
        pytest.param("avx512_core_bf16", (dnn.bf16, dnn.bf16, dnn.bf16), marks=pytest.mark.isa("avx512_core_bf16")),
        pytest.param("avx512_core_vnni", (dnn.u8, dnn.s8, dnn.s32), marks=pytest.mark.isa("avx512_core_vnni")),
        pytest.param("avx2_vnni", (dnn.u8, dnn.s8, dnn.s32), marks=pytest.mark.emulated("avx2_vnni")),
    ],
)
def test_groups_by_dot_products(level: str, types: tuple[dnn.DataType, ...], shape: str) -> None:
    text, tags = GROUPED[shape]
    if types[0] == dnn.bf16:
        pd = check_halves(text, tags, dnn.bf16, level)
    else:
        case = TypedConv(text, (dnn.u8, dnn.s8, dnn.s32), tags=tags)
        data, pd = case.data(), case.planned(level)
        found = computed(pd, data, emulated=level == "avx2_vnni")
        assert np.array_equal(found, sums(case.problem, data["src"], data["weights"]))
    word = "pack+" * (tags[1] == "abcde") or "reorder+" * (tags[0] == "abx")
    assert pd.implementation == f"{word}grouped:{level}"
    assert {type(spec) for spec in pd.plan.specs} >= {GroupedDotsSpec}


@pytest.mark.parametrize("zero_points", [{"src": 0}, {"dst": 0}], ids=str)
def test_zero_points_of_groups(zero_points: dict[str, int]) -> None:
    """Padding would have src's, too: tiles, which start from it; dst's is added behind."""
    attr = dnn.Attr(scales={"src": 0}, zero_points=zero_points)  # type: ignore[arg-type]
    case = TypedConv("g4mb1ic32ih6oc32kh3ph1", (dnn.u8, dnn.s8, dnn.u8), tags=LAST, attr=attr)
    name = "direct" if "src" in zero_points else "grouped"
    assert case.planned("avx512_core_vnni").implementation == f"{name}:avx512_core_vnni"


def test_slow_pairs_are_no_dot_products() -> None:
    desc = TypedConv("g4mb1ic64ih14oc64kh3ph1", (dnn.bf16, dnn.bf16, dnn.bf16), tags=LAST).desc()
    engine = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="sapphire_rapids")
    pd = dnn.primitive_desc(desc, engine=engine)
    assert not any(isinstance(spec, GroupedDotsSpec) for spec in pd.plan.specs)


@OF_BYTES
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_images_change_no_bit(level: str, threads: int) -> None:
    case = TypedConv("g24mb3ic24ih31iw33oc24kh3kw3ph1pw1", (dnn.u8, dnn.s8, dnn.s32), tags=LAST)
    pd = dnn.primitive_desc(case.desc(), engine=dnn.Engine(isa=level, threads=threads, machine="zen3"))
    pd.plan.check()
    data = case.data()
    assert np.array_equal(computed(pd, data), sums(case.problem, data["src"], data["weights"]))


def test_formats_that_are_open() -> None:
    case = TypedConv("g48mb1ic48ih7oc48kh3ph1", (dnn.u8, dnn.s8, dnn.u8))
    pd = case.planned("avx512_core_vnni")
    assert [pd.plan.tensors[name] for name in ("src", "dst")] == [dnn.MemoryDesc((1, 48, 7, 7), dnn.u8, "nhwc")] * 2
    assert pd.plan.tensors["weights"].inner_blocks == ((0, 16),)
    again = replace(case, tags=("axb", "Goihw16g", "axb")).planned("avx512_core_vnni")
    assert again.plan.tensors == pd.plan.tensors and again.implementation == "depthwise:avx512_core_vnni"
