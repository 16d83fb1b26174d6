"""Convolutions with few output channels in bf16, f16 and bytes: who takes them, sums, what is stored."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of as sums
from tests.primitives.typed_conv import TypedConv, by_channel, check_halves, computed, rounded

LEVELS = {"avx2": "avx2", "avx2_vnni": "avx2", "avx512_core": "avx512_core", "avx512_core_vnni": "avx512_core"}
HALVES = [
    ("avx2", dnn.bf16), ("avx2", dnn.f16), ("avx512_core", dnn.f16), ("avx512_core_bf16", dnn.bf16)
]  # fmt: skip
OF_BYTES = pytest.mark.parametrize("level", [pytest.param(name, marks=pytest.mark.isa(name)) for name in LEVELS])
EMULATED = pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.emulated(n)) for n in LEVELS])
OF_HALVES = pytest.mark.parametrize(
    ("level", "src"), [pytest.param(n, t, marks=pytest.mark.isa(n)) for n, t in HALVES], ids=str
)
EMULATED_HALVES = pytest.mark.parametrize(
    ("level", "src"), [pytest.param(n, t, marks=pytest.mark.emulated(n)) for n, t in HALVES], ids=str
)
SOURCES = pytest.mark.parametrize("src", [dnn.u8, dnn.s8], ids=str)
OPEN, LAST, BLOCKED = ("any", "any", "any"), ("axb", "any", "abx"), ("aBx64b", "any", "abx")

SHAPES = {  # problem, formats, what is around the kernels
    "one output": ("mb2ic128ih9oc1kh3ph1", OPEN, ""),
    "two, a cut group": ("mb1ic197ih8oc2kh3ph1", LAST, ""),
    "strided and dilated": ("mb1ic160ih15oc2kh3sh2ph2dh1", LAST, ""),
    "blocks": ("mb1ic128ih7oc1kh3ph1", BLOCKED, ""),
    "one axis": ("mb2ic130iw40oc1kw5pw2", OPEN, ""),
    "three axes": ("mb1ic128id4ih5iw6oc2kd3kh3kw3pd1ph1pw1", OPEN, ""),
    "padding alone": ("mb1ic128ih4oc1kh3ph5", OPEN, ""),
    "plain weights": ("mb1ic128ih8oc1kh3ph1", ("axb", "abcd", "abx"), "pack+"),
    "channels of dst last": ("mb1ic128ih8oc2kh3ph1", ("axb", "any", "axb"), "reorder+"),
}


def level_of(level: str, src: dnn.DataType) -> str:
    """Bytes with a sign are not shifted: instructions for those without are for u8."""
    return level if src == dnn.u8 else LEVELS[level]


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_bytes_are_exact(level: str, src: dnn.DataType, shape: str) -> None:
    text, tags, around = SHAPES[shape]
    case = TypedConv(text, (src, dnn.s8, dnn.s32), tags=tags)
    data, pd = case.data(), case.planned(level)
    assert pd.implementation == f"{around}few_outputs:{level_of(level, src)}"
    assert np.array_equal(computed(pd, data), sums(case.problem, data["src"], data["weights"]))


@SOURCES
@EMULATED
def test_sums_of_bytes_are_exact_on_every_cpu(level: str, src: dnn.DataType) -> None:
    case = TypedConv("mb1ic197ih5iw4oc1kh3kw3ph1pw1", (src, dnn.s8, dnn.s32), tags=LAST)
    data, pd = case.data(), case.planned(level)
    assert pd.implementation == f"few_outputs:{level_of(level, src)}"
    assert np.array_equal(computed(pd, data, emulated=True), sums(case.problem, data["src"], data["weights"]))


@SOURCES
@OF_BYTES
@pytest.mark.parametrize("dst", [dnn.u8, dnn.s8, dnn.s32], ids=str)
def test_requantization(level: str, src: dnn.DataType, dst: dnn.DataType) -> None:
    """By powers of two, so that f32 is exact; the bias is of integers."""
    scales = {"src": 0, "weights": 1, "dst": 0}
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Eltwise("relu")], scales=scales, zero_points={"dst": 0})
    case = TypedConv("mb2ic197ih8oc2kh3ph1", (src, dnn.s8, dst), dnn.s32, LAST, attr)
    data, p = case.data(), case.problem
    by_weights = np.array([2.0**-12, 2.0**-10])
    data |= {"src_scales": np.array([2.0]), "weights_scales": by_weights, "dst_scales": np.array([0.5])}
    data |= {"dst_zero_points": np.array([-5])}
    of_f32 = sums(p, data["src"], data["weights"]) * 2.0 * by_channel(p, by_weights) + by_channel(p, data["bias"])
    wanted = rounded(np.maximum(of_f32 + 0.5 * data["dst"], 0) / 0.5 - 5, dst)
    pd = case.planned(level)
    assert pd.implementation == f"few_outputs:{level_of(level, src)}"
    assert np.array_equal(computed(pd, data), wanted)


def test_zero_points_of_src_are_for_tiles() -> None:
    """What padding would add is not in the sums here."""
    case = TypedConv("mb1ic128ih8oc1kh3ph1", (dnn.u8, dnn.s8, dnn.s32), tags=LAST)
    case = TypedConv(case.text, case.types, tags=LAST, attr=dnn.Attr(zero_points={"src": 0}))
    data = {**case.data(), "src_zero_points": np.array([7])}
    pd = case.planned("avx2")
    assert "few_outputs" not in pd.implementation
    assert np.array_equal(computed(pd, data), sums(case.problem, data["src"] - 7, data["weights"]))


@OF_HALVES
@pytest.mark.parametrize("shape", SHAPES)
def test_halves(level: str, src: dnn.DataType, shape: str) -> None:
    text, tags, around = SHAPES[shape]
    pd = check_halves(text, tags, src, level)
    assert pd.implementation == f"{around}few_outputs:{level}"


@EMULATED_HALVES
def test_halves_on_every_cpu(level: str, src: dnn.DataType) -> None:
    """Whole numbers, whose sums f32 has."""
    case = TypedConv("mb1ic101ih5iw4oc1kh3kw3ph1pw1", (src, src, dnn.f32), tags=LAST)
    data = {name: np.round(4 * values) for name, values in case.data().items()}
    pd = case.planned(level)
    assert pd.implementation == f"few_outputs:{level}"
    assert np.array_equal(computed(pd, data, emulated=True), sums(case.problem, data["src"], data["weights"]))
