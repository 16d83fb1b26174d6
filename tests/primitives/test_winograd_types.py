"""Winograd's convolution of other types: bf16 and f16 in memory, f32 or bf16 inside, any dst; the choice by cycles."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded, rounded
from asmdnn.isa.dot import BF16, F32, Types
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.primitives.convolution.winograd.cut import WinogradCut
from tests.primitives.test_winograd_groups import SHORT, WHOLE
from tests.primitives.winograd_case import Case, check, memories_of, name_of, panels_of, planned

ROUNDING = "avx512_core_bf16"
HALVES = (dnn.bf16, dnn.bf16, dnn.bf16)
SMALL = Case(2, 19, 21, (9, 6), types=HALVES)
LAYER = Case(1, 64, 64, (28, 28), types=HALVES)
TYPES = [HALVES, (dnn.bf16, dnn.bf16, dnn.f32), (dnn.bf16, dnn.f32, dnn.u8), (dnn.f32, dnn.bf16, dnn.bf16),
         (dnn.f16, dnn.f16, dnn.f16), (dnn.f16, dnn.f16, dnn.s32), (dnn.f32, dnn.f32, dnn.s8),
         (dnn.u8, dnn.f32, dnn.u8), (dnn.s8, dnn.f32, dnn.f32)]  # fmt: skip
CUTS = [(2, BF16), (2, F32), (4, BF16), (4, F32)]


def levels(*names: str) -> list[Any]:
    """Each where the CPU has it."""
    return [pytest.param(name, marks=pytest.mark.isa(name)) for name in names]


@pytest.mark.parametrize("types", TYPES, ids=name_of)
@pytest.mark.parametrize(("m", "inside"), CUTS, ids=str)
@pytest.mark.parametrize("isa", levels("avx2", "avx512_core", ROUNDING))
def test_types(isa: str, types: tuple[dnn.DataType, dnn.DataType, dnn.DataType], m: int, inside: Types) -> None:
    """Of widths with a tail, and odd numbers of channels, in every layout, in blocks and in phases."""
    if (isa == ROUNDING and dnn.bf16 not in types) or (isa != ROUNDING and inside == BF16):
        return  # what that level is not planned for
    for tag in ("acdb", "any"):
        for block in (0, 5):
            case = replace(SMALL, types=types, tags=(tag, tag))
            cut = WinogradCut(m, 1, block, panels_of(case, isa, 1), types=inside)
            check(planned(case, isa, cut, threads=2), case, m)


@pytest.mark.parametrize(
    ("case", "cut"),
    [
        (WHOLE, WinogradCut(2, 1, 5, 1, types=BF16)),
        (WHOLE, WinogradCut(4, 1, 5, 1, 3)),
        (SHORT, WinogradCut(2, 1, 6, 2, 3, BF16)),
        (replace(SHORT, ic=33), WinogradCut(2, 1, 6, 2, 3, BF16)),
        (SHORT, WinogradCut(4, 2, 12, 1, 3)),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("isa", levels(ROUNDING))
def test_groups(isa: str, case: Case, cut: WinogradCut) -> None:
    case = replace(case, types=HALVES, tags=("acdb", "acdb"))
    check(planned(case, isa, cut, threads=2), case, cut.m)


@pytest.mark.emulated(ROUNDING)
@pytest.mark.parametrize("cut", [WinogradCut(2, 1, 0, 2, types=BF16), WinogradCut(4, 2, 3, 1)], ids=name_of)
def test_cuts_emulated(cut: WinogradCut) -> None:
    case = Case(1, 3, 21, (5, 6), tags=("acdb", "acdb"), types=HALVES)
    check(planned(case, ROUNDING, cut), case, cut.m, emulated=True)


@pytest.mark.parametrize("isa", levels("avx2", ROUNDING))
def test_ends(isa: str) -> None:
    """A bias, scales, tensors of bf16 and f32, and what dst held, in dst's type."""
    tensor = {"binary_1": dnn.MemoryDesc((2, 21, 9, 6), dnn.bf16, "abcd")}
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Binary("add", tensor["binary_1"]), dnn.Eltwise("relu")], scales={"weights": 1})
    cut = WinogradCut(2, 1, 0, panels_of(SMALL, isa, 1), types=F32)
    for tags in (("acdb", "acdb"), ("any", "any")):
        case = replace(SMALL, tags=tags)
        pd, arrays = planned(case, isa, cut, attr), case.arrays()
        arrays["binary_1"] = np.float32(rounded(arrays["dst"][:, ::-1], dnn.bf16))
        arrays["weights_scales"] = np.linspace(1, 2, 21, dtype=np.float32)
        memories = {
            name: dnn.Memory.from_numpy(encoded(arrays[name], desc.dtype), desc)
            for name, desc in pd.plan.tensors.items()
        }
        dnn.Primitive(pd).execute(**memories)
        bias, scales = (np.float64(arrays[name])[:, None, None] for name in ("bias", "weights_scales"))
        wanted = (case.sums(arrays) - bias) * scales + bias + 0.5 * arrays["dst"] + arrays["binary_1"]
        found = decoded(memories["dst"].numpy(), dnn.bf16)
        np.testing.assert_allclose(found, np.maximum(wanted, 0), 2.0**-8, 1e-4)


@pytest.mark.parametrize("isa", levels("avx2", ROUNDING))
def test_threads_agree_in_every_bit(isa: str) -> None:
    case, results, inside = replace(LAYER, size=(23, 17)), [], BF16 if isa == ROUNDING else F32
    for threads in (1, 2, 3, 5):
        pd = planned(case, isa, WinogradCut(2, 2, 6, panels_of(case, isa, 2), types=inside), threads=threads)
        dnn.Primitive(pd).execute(**(memories := memories_of(pd, case.arrays())))
        results.append(memories["dst"].array.copy())
    assert all(np.array_equal(results[0], other) for other in results)


def chosen(case: Case, algorithm: str = "auto", isa: str = ROUNDING, machine: str = "zen4") -> tuple[str, str]:
    pd = dnn.primitive_desc(case.desc(algorithm), engine=dnn.Engine(isa=isa, machine=machine, threads=1))
    pd.plan.check()
    return pd.implementation, str(pd.weights_desc)


def test_the_choice() -> None:
    """Cycles decide; bf16 inside needs bf16 src and weights, and multiplies that are quick; F(4x4) in bf16 is never
    chosen."""
    deep = replace(LAYER, ic=512, oc=512, size=(7, 7))
    assert chosen(deep) == (f"winograd:{ROUNDING}", "bf16 512x512x3x3 winograd2:AcdB16a2b")
    assert chosen(LAYER, "direct")[0] == f"direct:{ROUNDING}"
    assert chosen(replace(LAYER, ic=16, oc=16, size=(4, 4)))[0] == f"direct:{ROUNDING}"
    assert chosen(deep, isa="avx512_core")[1].startswith("f32 512x512x3x3 winograd")
    assert chosen(replace(deep, types=(dnn.f16,) * 3))[1].startswith("f32 512x512x3x3 winograd")
    assert chosen(deep, machine="sapphire_rapids")[1].startswith("f32 512x512x3x3 winograd")


def test_weights_say_what_is_multiplied() -> None:
    """F(4x4) in bf16 is there for who asks for it by the format of weights."""
    for m, dtype in ((4, dnn.bf16), (2, dnn.bf16), (4, dnn.f32), (2, dnn.f32)):
        weights = WinogradDesc(SMALL.weights_dims, dtype, m, 16)
        engine = dnn.Engine(isa=ROUNDING, machine="zen4", threads=1)
        pd = dnn.primitive_desc(SMALL.desc("auto", weights), engine=engine)
        assert pd.weights_desc == weights and pd.implementation == f"winograd:{ROUNDING}"
        decoded_plan, _ = decode_plan(encode_plan(pd.plan))
        assert decoded_plan.tensors == pd.plan.tensors
    with pytest.raises(dnn.Unimplemented, match="avx512_core has no dot product of bf16"):
        engine = dnn.Engine(isa="avx512_core", machine="zen4", threads=1)
        dnn.primitive_desc(SMALL.desc("auto", WinogradDesc(SMALL.weights_dims, dnn.bf16, 2, 16)), engine=engine)


@pytest.mark.parametrize("dims", [(21, 7, 3, 3), (8, 40, 3, 3), (2, 21, 5, 3, 3)], ids=name_of)
@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16, dnn.f16], ids=str)
@pytest.mark.parametrize("m", [2, 4])
def test_a_reorder_rounds_weights(dims: tuple[int, ...], dtype: dnn.DataType, m: int) -> None:
    """Of any float, in any format; f32 are rounded once, after their transform."""
    weights = encoded(np.random.default_rng(1).standard_normal(dims).astype(np.float32), dtype)
    desc = WinogradDesc(dims, dnn.bf16, m, 16)
    made = dnn.reorder(dnn.Memory.from_array(weights, dtype), desc)
    exact = dnn.Memory.from_numpy(np.float32(decoded(weights, dtype)), WinogradDesc(dims, dnn.f32, m, 16))
    wide = dnn.MemoryDesc(desc.storage.dims, dnn.f32, exact.desc.storage.tag)
    narrow = dnn.MemoryDesc(desc.storage.dims, dnn.bf16, desc.storage.tag)
    found = dnn.reorder(dnn.Memory(narrow, made.array), dnn.MemoryDesc(narrow.dims, dnn.f32, "abcde"[: len(dims)]))
    wanted = dnn.reorder(dnn.Memory(wide, exact.array), found.desc).numpy()
    np.testing.assert_allclose(found.numpy(), wanted, 2.0**-8, 8 * 2.0**-24 * np.abs(wanted).max())
    assert made.padding_is_zero()
    again = dnn.Memory.from_numpy(encoded(np.float32(decoded(weights, dtype)), dnn.bf16), desc)
    assert dtype != dnn.bf16 or np.array_equal(again.array, made.array)


@pytest.mark.parametrize("isa", levels(ROUNDING))
def test_errors_are_those_that_the_page_states(isa: str) -> None:
    """To float64 on the same numbers: F(2x2) in bf16 is off by three times what rounding dst alone is, F(4x4) by eight;
    f32 inside by nothing more."""
    found = {}
    for m, inside, most in ((2, BF16, 3.0), (4, BF16, 9.0), (4, F32, 1.05)):
        case = Case(1, 64, 16, (20, 20), bias=False, types=HALVES, tags=("acdb", "acdb"))
        pd, arrays = planned(case, isa, WinogradCut(m, 1, 5, 1, types=inside)), case.arrays()
        memories = memories_of(pd, arrays)
        dnn.Primitive(pd).execute(**memories)
        exact = case.sums(arrays)
        least = np.sqrt(np.mean((rounded(exact, dnn.bf16) - exact) ** 2))
        found[m, inside] = np.sqrt(np.mean((decoded(memories["dst"].numpy(), dnn.bf16) - exact) ** 2)) / least
        assert found[m, inside] <= most


def test_arrays() -> None:
    random = np.random.default_rng(2)
    x, w = (random.standard_normal(dims).astype(ml_dtypes.bfloat16) for dims in ((1, 16, 20, 20), (24, 16, 3, 3)))
    direct = dnn.ops.conv2d(x, w, padding=1)
    packed = dnn.ops.pack_conv_weights(w, (1, 16, 20, 20), padding=1, algorithm="winograd")
    assert isinstance(packed.desc, WinogradDesc)
    for y in (dnn.ops.conv2d(x, packed, padding=1), dnn.ops.conv2d(x, w, padding=1, algorithm="winograd")):
        assert y.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(np.float32(y), np.float32(direct), atol=0.25)
