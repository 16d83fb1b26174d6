"""Pooling in every layout: windows of all kinds, indices, types, post-ops, NaN; adaptive; bad input."""

from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded, rounded
from asmdnn.definitions.windows import SlidingWindow, largest, positions_of, window_means
from asmdnn.isa.levels import AVX512_CORE
from asmdnn.planning.host import executable_isas
from asmdnn.planning.tuning import DEFAULT
from asmdnn.types import PoolingAlgorithm
from tests.support.plans import proved_desc
from tests.support.tuning import tuned, with_numbers

ALGS: tuple[PoolingAlgorithm, ...] = ("max", "avg_include_padding", "avg_exclude_padding")
TAGS = ("abcd", "acdb", "aBcd8b", "aBcd16b", "bacd")
# dims, kernel, strides, dilations, padding_l, padding_r
PROBLEMS: tuple[Any, ...] = (
    ((2, 19, 9, 15), (3, 3), (2, 2), (0, 0), (1, 1), (1, 1)),
    ((1, 16, 14, 28), (3, 3), (1, 1), (0, 0), (1, 1), (1, 1)),
    ((1, 8, 12, 33), (2, 2), (2, 2), (0, 0), (0, 0), (0, 1)),
    ((2, 5, 7, 7), (7, 7), (1, 1), (0, 0), (0, 0), (0, 0)),
    ((1, 9, 11, 12), (9, 9), (1, 1), (0, 0), (4, 4), (4, 4)),
    ((1, 6, 13, 19), (3, 2), (3, 4), (0, 1), (2, 0), (0, 1)),
    ((1, 3, 8, 40), (2, 3), (1, 1), (1, 2), (0, 3), (1, 2)),
)
CLIPPED = (
    (1, 6, 5, 4),
    (11, 9),
    (1, 1),
    (0, 0),
    (5, 4),
    (5, 4),
)  # windows that all cover src
OTHER_AXES: tuple[Any, ...] = (
    ((2, 9, 37), (4,), (2,), (0,), (1,), (2,), "abc"),
    ((1, 3, 5000), (5,), (1,), (0,), (2,), (2,), "abc"),
    ((2, 9, 37), (4,), (3,), (0,), (0,), (0,), "acb"),
    ((2, 3, 5), (5,), (2,), (0,), (0,), (2,), "abc"),  # both windows cover the whole row
    ((1, 5, 6, 7, 9), (2, 3, 3), (1, 2, 2), (0, 0, 0), (0, 1, 1), (0, 1, 1), "abcde"),
    ((1, 5, 6, 7, 9), (2, 3, 3), (2, 1, 1), (0, 0, 0), (1, 1, 1), (0, 1, 1), "acdeb"),
)


def numbers(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-4, 4, dims).astype(np.float32)


def described(alg: PoolingAlgorithm, problem: Any, tag: str, indices: bool = False) -> dnn.PoolingForward:
    dims, kernel, strides, dilations, before, behind = problem
    sizes = zip(dims[2:], kernel, strides, dilations, before, behind, strict=True)
    result = (*dims[:2], *((i + b + e - (k - 1) * (d + 1) - 1) // s + 1 for i, k, s, d, b, e in sizes))
    src, dst = dnn.MemoryDesc(dims, dnn.f32, tag), dnn.MemoryDesc(result, dnn.f32, tag)
    places = dnn.MemoryDesc(result, dnn.s32, tag) if indices else None
    return dnn.PoolingForward(alg, src, dst, kernel, strides, dilations, before, behind, places)


def window_of(problem: Any) -> SlidingWindow:
    _, kernel, strides, dilations, before, behind = problem
    return SlidingWindow(kernel, strides, tuple(d + 1 for d in dilations), before, behind)


def expected(alg: PoolingAlgorithm, x: Any, problem: Any) -> Any:
    x, window = x.astype(np.float64), window_of(problem)
    return largest(x, window, x)[0] if alg == "max" else window_means(x, window, alg == "avg_include_padding")[0]


def bound(alg: PoolingAlgorithm, problem: Any) -> float:
    """Roundings of the partial sums of numbers up to 4, and of the quotient."""
    return 0.0 if alg == "max" else 4 * (np.prod(problem[1]) + 1) * 2.0**-24


SHORT = (
    ((2, 200, 4, 4), (3, 3), (1, 1), (0, 0), (1, 1), (1, 1)),
    ((3, 64, 7, 4), (3, 2), (2, 1), (0, 0), (1, 1), (0, 0)),
    ((1, 333, 3, 3), (2, 2), (1, 1), (0, 0), (1, 0), (0, 1)),
)


def strategy_of(problem: Any, tag: str) -> str:
    """Of f32 without indices."""
    if tag in ("abcd", "bacd"):
        return "planes" if problem is PROBLEMS[3] else "rows"
    return "two_steps" if problem is PROBLEMS[4] else "pixels"


def test_every_strategy_is_a_plan_or_a_reason() -> None:
    names = [
        "bytes_in_two_steps", "bytes", "narrow_pixels", "narrow_planes", "narrow_rows", "planes", "near_pixels",
        "typed_near_pixels", "typed_near_two_steps", "rows", "two_steps", "pixels", "indexed_two_steps", "indexed",
    ]  # fmt: skip
    answers = dnn.implementations(described("max", PROBLEMS[4], "abcd"), engine=dnn.Engine(isa="avx2", threads=1))
    reasons = {x.implementation.removesuffix(":avx2"): x.reason for x in answers if isinstance(x, dnn.Refusal)}
    taken = [x.implementation for x in answers if isinstance(x, dnn.PrimitiveDesc)]
    assert [x.implementation.removeprefix("reorder+").removesuffix(":avx2") for x in answers] == names
    assert taken == ["rows:avx2", "reorder+two_steps:avx2", "reorder+pixels:avx2"]
    assert reasons["planes"] == "windows are no whole planes"
    assert reasons["bytes"] == "it finds maxima of s8 and u8"
    assert reasons["indexed"] == "there are no indices"


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize("tag", TAGS)
def test_layouts(planned_isa: str, alg: PoolingAlgorithm, tag: str) -> None:
    for problem in PROBLEMS:
        pd = proved_desc(described(alg, problem, tag), engine=dnn.Engine(isa=planned_isa, threads=2))
        assert pd.implementation == f"{strategy_of(problem, tag)}:{planned_isa}"


@pytest.mark.parametrize(
    ("machine", "size", "kernel", "stride", "edge", "name"),
    [
        ("zen5", 7, 3, 2, 1, "near_pixels"),
        ("zen5", 15, 3, 2, 1, "near_pixels"),
        ("zen5", 17, 3, 2, 1, "rows"),
        ("zen5", 14, 3, 1, 1, "near_pixels"),
        ("zen5", 15, 3, 1, 1, "rows"),
        ("zen5", 8, 2, 2, 0, "near_pixels"),
        ("zen5", 10, 2, 2, 0, "rows"),
        ("zen5", 13, 13, 1, 6, "rows"),
        ("zen5", 21, 3, 3, 0, "rows"),
        ("zen5", 12, 3, 3, 0, "near_pixels"),
        ("zen3", 7, 3, 2, 1, "near_pixels"),
        ("zen3", 9, 3, 2, 1, "rows"),
        ("zen3", 14, 3, 1, 1, "rows"),
        ("zen3", 21, 3, 3, 0, "rows"),
    ],
)
def test_few_windows(machine: str, size: int, kernel: int, stride: int, edge: int, name: str) -> None:
    """Windows with strides, or beyond edges, are so dear that few of them go by dense channels."""
    problem = ((2, 64, size, size), (kernel,) * 2, (stride,) * 2, (0, 0), (edge,) * 2, (edge,) * 2)
    engine = dnn.Engine(isa="avx2", threads=1, machine=machine)
    for alg in ("max", "avg_exclude_padding"):
        pd = proved_desc(described(alg, problem, "abcd"), engine=engine)  # type: ignore[arg-type]
        assert pd.implementation == f"{name}:avx2"
        x = numbers(*problem[0])
        memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.dst_desc)}
        dnn.Primitive(pd).execute(**memories)
        np.testing.assert_allclose(memories["dst"].numpy(), expected(alg, x, problem), rtol=0, atol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("isa", "channels", "size", "kernel", "name"),
    [
        ("avx512_core", 64, 8, 3, "near_pixels"),
        ("avx512_core", 64, 9, 3, "rows"),
        ("avx512_core", 63, 8, 3, "rows"),
        ("avx512_core", 64, 8, 1, "rows"),
        ("avx2", 64, 4, 3, "near_pixels"),
        ("avx2", 16384, 4, 3, "near_pixels"),
        ("avx2", 40000, 4, 3, "rows"),  # from beyond an eighth of L3
        ("avx2", 64, 5, 3, "rows"),
    ],
)
def test_short_rows(isa: str, channels: int, size: int, kernel: int, name: str) -> None:
    """Vectors that are half empty are slower than copies with dense channels."""
    edge = (kernel // 2, kernel // 2)
    problem = ((1, channels, size, size), (kernel, kernel), (1, 1), (0, 0), edge, edge)
    engine = dnn.Engine(isa=isa, threads=1, l2_bytes=1 << 20, machine="zen4")
    pd = proved_desc(described("max", problem, "abcd"), engine=engine)
    assert pd.implementation == f"{name}:{isa}"
    if isa == "avx2":
        x = numbers(*problem[0])
        memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.dst_desc)}
        dnn.Primitive(pd).execute(**memories)
        np.testing.assert_array_equal(memories["dst"].numpy(), expected("max", x, problem))


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize("problem", OTHER_AXES, ids=str)
def test_one_and_three_axes(isa: str, alg: PoolingAlgorithm, problem: Any) -> None:
    *problem, tag = problem
    desc, x = described(alg, problem, tag), numbers(*problem[0])
    pd = proved_desc(desc, engine=dnn.Engine(isa=isa))
    dst = dnn.Memory(desc.dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst)
    assert np.abs(dst.numpy() - expected(alg, x, problem)).max() <= bound(alg, problem)


@pytest.mark.parametrize("places", [dnn.s32, dnn.u8], ids=str)
@pytest.mark.parametrize("tag", TAGS)
def test_indices_are_of_the_first_maximum(isa: str, tag: str, places: dnn.DataType) -> None:
    """s32 ones count elements of the plane, u8 ones positions of the window."""
    for problem in (*PROBLEMS, CLIPPED):
        desc = described("max", problem, tag, indices=True)
        desc = replace(desc, indices=dnn.MemoryDesc(desc.dst.dims, places, tag))
        x = np.random.default_rng(3).integers(0, 3, problem[0]).astype(np.float32)  # many are equal
        pd = proved_desc(desc, engine=dnn.Engine(isa=isa))
        memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items() if name != "src"}
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), **memories)
        assert np.array_equal(memories["dst"].numpy(), expected("max", x, problem))
        plane = np.arange(np.prod(problem[0][2:]), dtype=np.float64).reshape(1, 1, *problem[0][2:])
        wanted = largest(x.astype(np.float64), window_of(problem), plane)[1]
        if places == dnn.u8:
            wanted = positions_of(wanted, window_of(problem), problem[0][2:])
        assert np.array_equal(memories["indices"].numpy(), wanted)
        assert memories["indices"].padding_is_zero()


def test_indices_of_large_windows_are_found_one_axis_after_the_other(isa: str) -> None:
    """Ties in volumes; of NaN alone the first position counts, and a number beside it otherwise."""
    x = np.random.default_rng(4).integers(0, 2, (1, 8, 4, 6, 7)).astype(np.float32)
    x[0, 1], x[0, 2], x[0, 2, 3, 5, 6] = np.nan, np.nan, -np.inf
    dims = (1, 8, 2, 4, 5)
    src, dst, places = (
        dnn.MemoryDesc(n, t, "acdeb") for n, t in ((x.shape, dnn.f32), (dims, dnn.f32), (dims, dnn.s32))
    )
    desc = dnn.PoolingForward("max", src, dst, (3, 3, 3), indices=places)
    found = {"dst": dnn.Memory(dst), "indices": dnn.Memory(places)}
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
    assert len(pd.plan.phases) == 2 and pd.plan.specs[-1].frame[-1] == "carried"
    pd.plan.check()
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), **found)
    numbers_of = np.arange(x[0, 0].size).reshape(x.shape[2:])
    for at in np.ndindex(dims):
        cut = tuple(slice(i, i + 3) for i in at[2:])
        window = np.where(np.isnan(x[at[:2]][cut]), -np.inf, x[at[:2]][cut])
        assert found["dst"].numpy()[at] == window.max()
        assert found["indices"].numpy()[at] == numbers_of[cut].ravel()[window.argmax()]


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.s8, dnn.u8], ids=str)
@pytest.mark.parametrize("tag", ["acdb", "aBcd8b"])
def test_types_in_registers(isa: str, dtype: dnn.DataType, tag: str) -> None:
    """Means are rounded once from f32; a large window, and channels that are not dense, go by reorders."""
    for alg, at in (("max", 0), ("avg_include_padding", 0), ("avg_exclude_padding", 1), ("max", 4)):
        problem = ((2, 21, *PROBLEMS[at][0][2:]), *PROBLEMS[at][1:])
        x = np.random.default_rng(6).integers(-100 if dtype != dnn.u8 else 0, 100, problem[0])
        model = described(alg, problem, tag)  # type: ignore[arg-type]
        src, dst = (dnn.MemoryDesc(t.dims, dtype, tag) for t in (model.src, model.dst))
        pd = proved_desc(replace(model, src=src, dst=dst), engine=dnn.Engine(isa=isa, threads=2))
        is_native = at < 4 or (tag == "aBcd8b" and dtype in (dnn.s8, dnn.u8))
        of_bytes = alg == "max" and tag == "aBcd8b" and dtype in (dnn.s8, dnn.u8)
        native = f"bytes{'_in_two_steps' * (at == 4)}" if of_bytes else "narrow_pixels"
        assert pd.implementation == f"{native if is_native else 'reorder+two_steps'}:{isa}"
        found = dnn.Memory(dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(encoded(x.astype(np.float32), dtype), src), dst=found)
        wanted = rounded(expected(alg, x.astype(np.float32), problem).astype(np.float32), dtype)
        assert np.array_equal(decoded(found.numpy(), dtype), wanted) and found.padding_is_zero()


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.s8, dnn.u8], ids=str)
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_rows_of_types(isa: str, dtype: dnn.DataType, stride: int) -> None:
    """Lanes are pixels of rows longer than a vector; means are rounded once from f32."""
    for alg, width in product(ALGS, (17, 40, 67)):
        problem = ((2, 5, 7, width), (3, 3), (stride, stride), (0, 0), (1, 1), (1, 1))
        x = np.random.default_rng(7).integers(-100 if dtype != dnn.u8 else 0, 100, problem[0])
        model = described(alg, problem, "abcd")
        src, dst = (dnn.MemoryDesc(t.dims, dtype, "abcd") for t in (model.src, model.dst))
        pd = proved_desc(replace(model, src=src, dst=dst), engine=dnn.Engine(isa=isa, threads=2))
        assert pd.implementation == f"narrow_rows:{isa}"
        found = dnn.Memory(dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(encoded(x.astype(np.float32), dtype), src), dst=found)
        wanted = rounded(expected(alg, x.astype(np.float32), problem).astype(np.float32), dtype)
        assert np.array_equal(decoded(found.numpy(), dtype), wanted)


PLANES: tuple[tuple[Any, str], ...] = (
    (((2, 70, 7, 7), (7, 7), (1, 1), (0, 0), (0, 0), (0, 0)), "narrow_planes"),
    (((3, 5, 24, 29), (24, 29), (1, 1), (0, 0), (0, 0), (0, 0)), "narrow_planes"),
    (((2, 150, 7, 8), (3, 3), (1, 1), (0, 0), (1, 1), (1, 0)), "typed_near_pixels"),
    (((1, 21, 9, 60), (2, 2), (1, 17), (0, 0), (0, 0), (0, 1)), "typed_near_pixels"),  # a stride beyond registers
    (((1, 20, 19, 8), (17, 4), (1, 1), (0, 0), (8, 0), (8, 0)), "typed_near_two_steps"),
)


@pytest.mark.parametrize(("src", "dst"), [*product((dnn.bf16, dnn.f16, dnn.s8, dnn.u8), (None,)), (dnn.s32, dnn.bf16)])
@pytest.mark.parametrize(("problem", "way"), PLANES, ids=str)
def test_planes_of_types(isa: str, problem: Any, way: str, src: dnn.DataType, dst: dnn.DataType | None) -> None:
    """Whole planes; short rows, which become f32 with dense channels, some at a time; images and channels beyond it."""
    to = dst or src
    x = np.random.default_rng(8).integers(-100 if src != dnn.u8 else 0, 100, problem[0]).astype(np.float32)
    for alg in ALGS[:2]:
        model = described(alg, problem, "abcd")
        read, made = dnn.MemoryDesc(model.src.dims, src, "abcd"), dnn.MemoryDesc(model.dst.dims, to, "abcd")
        desc = replace(model, src=read, dst=made)
        pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=3))
        assert pd.implementation == f"{'typed_near_pixels' if dst and way == 'narrow_planes' else way}:{isa}"
        found = dnn.Memory(desc.dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(encoded(x, src), desc.src), dst=found)
        wanted = rounded(expected(alg, x, problem).astype(np.float32), to)
        assert np.array_equal(decoded(found.numpy(), to), wanted)


@pytest.mark.parametrize("stride", [*range(1, 10), 16, 17])
def test_strides_along_rows(isa: str, stride: int) -> None:
    """Windows that touch, share and leave out; results that end in each of a stride's vectors."""
    most = 8 if isa == "avx2" else 16
    for width, kernel, edge in product((31, 67, 200), (1, 2, stride, stride + 2), (0, 1)):
        edge = min(edge, kernel - 1)
        problem = ((2, 5, 9, width), (2, kernel), (2, stride), (0, 0), (0, edge), (1, edge))
        x = numbers(*problem[0])
        for alg in ALGS[:2]:
            desc = described(alg, problem, "abcd")
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
            assert pd.implementation == f"{'rows' if stride <= most else 'reorder+pixels'}:{isa}"
            memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.dst_desc)}
            dnn.Primitive(pd).execute(**memories)
            assert np.abs(memories["dst"].numpy() - expected(alg, x, problem)).max() <= bound(alg, problem)


@pytest.mark.parametrize("dtype", [dnn.s8, dnn.u8], ids=str)
@pytest.mark.parametrize("tag", ["acdb", "aBcd8b", "aBcd16b"])
def test_maxima_of_bytes(isa: str, dtype: dnn.DataType, tag: str) -> None:
    """Where channels are dense, four in a lane, also of the padding; else by reorders."""
    for channels in (40, 5):
        for problem in (((2, channels, 9, 15), *PROBLEMS[0][1:]), ((1, channels, 11, 12), *PROBLEMS[4][1:])):
            limits = np.iinfo(dtype.numpy)
            x = np.random.default_rng(5).integers(limits.min, limits.max, problem[0], endpoint=True).astype(dtype.numpy)
            model = described("max", problem, tag)
            src, dst = (dnn.MemoryDesc(t.dims, dtype, tag) for t in (model.src, model.dst))
            desc = replace(model, src=src, dst=dst)
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
            by_reorders = (channels, tag) == (5, "acdb") and problem[1] == (9, 9)
            native = "narrow_pixels" if (channels, tag) == (5, "acdb") else "bytes"
            name = native + "_in_two_steps" * (problem[1] == (9, 9))
            assert pd.implementation == f"{'reorder+two_steps' if by_reorders else name}:{isa}"
            found = dnn.Memory(dst)
            dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, src), dst=found)
            assert np.array_equal(found.numpy(), expected("max", x, problem)) and found.padding_is_zero()


def test_nan_is_passed_over(isa: str) -> None:
    engine = dnn.Engine(isa=isa)
    for x in (numbers(1, 2, 6, 9), numbers(1, 6, 9, 2).transpose(0, 3, 1, 2)):
        x[0, 0, 1, 1], x[0, 1, :2, :2], x[0, 1, 4:, 4:6] = np.nan, np.nan, -np.inf
        found, indices = dnn.ops.max_pool(x, 2, return_indices=True, engine=engine)
        assert np.array_equal(found, dnn.ops.max_pool(x, 2, engine=engine))
        assert found[0, 0, 0, 0] == np.nanmax(x[0, 0, :2, :2])
        assert found[0, 1, 0, 0] == -np.inf
        assert indices[0, 1, 0, 0] == 0
        assert found[0, 1, 2, 2] == -np.inf
        assert np.isnan(dnn.ops.avg_pool(x, 2, engine=engine)[0, 0, 0, 0])


@pytest.mark.parametrize("dtype", [dnn.bf16, dnn.f16, dnn.s8, dnn.u8, dnn.s32], ids=str)
def test_types(isa: str, dtype: dnn.DataType) -> None:
    """What the type holds exactly stays exact; a mean is rounded to the type."""
    x = np.random.default_rng(1).integers(0, 100, (2, 3, 8, 8))
    stored = (
        (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if dtype == dnn.bf16 else x.astype(dtype.numpy)
    )
    src, dst = dnn.MemoryDesc((2, 3, 8, 8), dtype, "acdb"), dnn.MemoryDesc((2, 3, 4, 4), dtype, "acdb")
    for alg, wanted in (("max", x.reshape(2, 3, 4, 2, 4, 2).max((3, 5))), ("avg_include_padding", None)):
        pd = dnn.primitive_desc(dnn.PoolingForward(alg, src, dst, (2, 2), (2, 2)), engine=dnn.Engine(isa=isa))  # type: ignore[arg-type]
        result = dnn.Memory(dst)
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(stored, src), dst=result)
        found = result.numpy()
        found = (found.astype(np.uint32) << 16).view(np.float32) if dtype == dnn.bf16 else found
        if wanted is not None:
            assert np.array_equal(found, wanted)
        else:
            assert np.abs(found - x.reshape(2, 3, 4, 2, 4, 2).mean((3, 5))).max() <= 0.5


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd8b"])
def test_post_ops(isa: str, tag: str) -> None:
    problem = PROBLEMS[0]
    desc, x = described("max", problem, tag), numbers(*problem[0])
    wanted = expected("max", x, problem)
    old, factor = numbers(*wanted.shape, seed=1), numbers(1, 19, 1, 1, seed=2)
    factors = dnn.MemoryDesc(factor.shape, dnn.f32, "abcd")
    for attr, result in (
        (dnn.Attr([dnn.Sum(0.5), dnn.Eltwise("relu")]), np.maximum(wanted + 0.5 * old, 0)),
        (dnn.Attr([dnn.Eltwise("linear", 2.0, 1.0)]), 2 * wanted + 1),
        (dnn.Attr([dnn.Binary("mul", factors), dnn.Sum()]), wanted * factor + old),
    ):
        pd = proved_desc(desc, attr, dnn.Engine(isa=isa))
        dst = dnn.Memory.from_numpy(old, desc.dst)
        more = {name: dnn.Memory.from_numpy(factor, factors) for name in pd.plan.tensors if name.startswith("post_op")}
        more |= {name: dnn.Memory.from_numpy(factor, factors) for name in pd.plan.tensors if name not in ("src", "dst")}
        dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), dst=dst, **more)
        np.testing.assert_allclose(dst.numpy(), result, 1e-6, 1e-5)
        assert dst.padding_is_zero()


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd8b"])
def test_post_ops_in_another_type(isa: str, tag: str) -> None:
    """Which compute in f32, and are rounded once."""
    x = np.random.default_rng(1).integers(0, 100, (2, 3, 8, 8))
    src, dst = dnn.MemoryDesc((2, 3, 8, 8), dnn.u8, tag), dnn.MemoryDesc((2, 3, 4, 4), dnn.u8, tag)
    half = dnn.Attr([dnn.Eltwise("linear", 0.5), dnn.Sum()])
    pd = proved_desc(dnn.PoolingForward("max", src, dst, (2, 2), (2, 2)), half, dnn.Engine(isa=isa))
    result = dnn.Memory.from_numpy(np.full(dst.dims, 3, np.uint8), dst)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x.astype(np.uint8), src), dst=result)
    assert np.array_equal(result.numpy(), np.rint(0.5 * x.reshape(2, 3, 4, 2, 4, 2).max((3, 5)) + 3))
    assert result.padding_is_zero()


def test_streaming_and_threads_give_the_same_bits(isa: str) -> None:
    x = numbers(2, 16, 64, 64)
    for array in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
        for function in (dnn.ops.max_pool, dnn.ops.avg_pool):
            results = [
                function(array, 3, stride=2, padding=1, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)
            ]
            assert np.array_equal(results[0], results[1])
            assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize(
    ("size", "wide_row", "level"),
    [(17, 18, "avx2"), (16, 18, "avx512_core"), (17, 17, "avx512_core"), (17, 1, "avx512_core")],
)
def test_rows_that_fill_no_zmm_registers(size: int, wide_row: int, level: str) -> None:
    """A class may want ymm registers for them; what they compute is the same."""
    problem = ((1, 16, size, size), (3, 3), (1, 1), (0, 0), (1, 1), (1, 1))
    tuning = with_numbers(DEFAULT, "pooling", wide_row=wide_row)
    desc = described("max", problem, "abcd")
    pd = proved_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, tuning=tuning))
    assert pd.implementation == "rows:avx512_core"
    assert {spec.isa for spec in pd.plan.specs} == {level}  # type: ignore[attr-defined]
    if level == "avx2" and AVX512_CORE in executable_isas():  # which the engine asks for
        x = numbers(*problem[0])
        memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.dst_desc)}
        dnn.Primitive(pd).execute(**memories)
        np.testing.assert_array_equal(memories["dst"].numpy(), expected("max", x, problem))


@pytest.mark.parametrize(("channels", "vectors"), [(256, 2), (512, 8), (520, 2), (2048, 8), (2064, 2)])
def test_pixels_whose_lines_conflict_are_taken_in_long_stretches(channels: int, vectors: int) -> None:
    """Pixels 2 KiB apart, or a multiple of it, fall into so few sets of L1 that what comes ahead is lost."""
    src = dnn.MemoryDesc((1, channels, 14, 14), dnn.f32, "nhwc")
    desc = dnn.PoolingForward("avg_exclude_padding", src, src, (3, 3), padding_l=(1, 1), padding_r=(1, 1))
    plan = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen4")).plan
    inside = max(plan.specs, key=lambda spec: prod(taps.positions for taps in spec.window))
    assert inside.vectors == vectors


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize("tag", ["abcd", "bacd"])
@pytest.mark.parametrize("problem", SHORT, ids=str)
def test_some_channels_of_short_rows_at_a_time(isa: str, alg: PoolingAlgorithm, tag: str, problem: Any) -> None:
    """Also the rest of the channels, with other rows on either side, and post-ops."""
    x, results = numbers(*problem[0]), []
    attr = dnn.Attr(post_ops=("relu",))
    for threads in (1, 2, 3, 7):
        pd = proved_desc(described(alg, problem, tag), attr, engine=dnn.Engine(isa=isa, threads=threads))
        assert pd.implementation == f"near_pixels:{isa}"
        memories = {"src": dnn.Memory.from_numpy(x, pd.src_desc), "dst": dnn.Memory(pd.dst_desc)}
        dnn.Primitive(pd).execute(**memories)
        results.append(memories["dst"].numpy())
    assert np.abs(results[0] - np.maximum(expected(alg, x, problem), 0)).max() <= bound(alg, problem)
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize(("size", "level"), [(8, "avx2"), (20, "avx512_core")])
def test_short_rows_on_zen_5(size: int, level: str) -> None:
    src = dnn.MemoryDesc((1, 48, size, size), dnn.f32, "nchw")
    desc = dnn.PoolingForward("avg_exclude_padding", src, src, (3, 3), padding_l=(1, 1), padding_r=(1, 1))
    pd = proved_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen5"))
    assert pd.implementation == "rows:avx512_core"
    assert {spec.isa for spec in pd.plan.specs} == {level}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("size", "level"), [(7, "avx2"), (10, "avx2"), (11, "avx512_core")])
def test_small_planes_on_zen_4(size: int, level: str) -> None:
    alg, problem = "avg_exclude_padding", ((2, 40, size, size), (size, size), (1, 1), (0, 0), (0, 0), (0, 0))
    desc = described(alg, problem, "abcd")
    pd = proved_desc(desc, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen4"))
    assert pd.implementation == "planes:avx512_core"
    assert {spec.isa for spec in pd.plan.specs} == {level}  # type: ignore[attr-defined]
    if AVX512_CORE in executable_isas():
        x = numbers(*problem[0])
        memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.dst_desc)}
        dnn.Primitive(pd).execute(**memories)
        found = memories["dst"].numpy()
        assert np.abs(found - expected(alg, x, problem)).max() <= bound(alg, problem)


def test_rows_past_the_caches_are_wide() -> None:
    """Only planned."""
    problem = ((32, 64, 60, 60), (3, 3), (1, 1), (0, 0), (1, 1), (1, 1))
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen4")
    pd = dnn.primitive_desc(described("max", problem, "abcd"), engine=engine)
    assert {spec.isa for spec in pd.plan.specs} == {"avx512_core"}  # type: ignore[attr-defined]


def test_large_tensors_are_streamed() -> None:
    """Only planned: 64 MB, of which the result is not read from a cache."""
    for tag in ("abcd", "acdb", "aBcd8b"):
        desc = described("max", ((32, 64, 64, 64), (2, 2), (2, 2), (0, 0), (0, 0), (0, 0)), tag)
        engine = dnn.Engine(isa="avx2", threads=1, machine="zen3")
        assert all(spec.streaming for spec in dnn.primitive_desc(desc, engine=engine).plan.specs)  # type: ignore[attr-defined]


def test_adaptive(isa: str) -> None:
    x, engine = numbers(2, 19, 10, 13), dnn.Engine(isa=isa)
    edges = [[(o * size // made, -(-(o + 1) * size // made)) for o in range(made)] for size, made in ((10, 4), (13, 5))]
    cells = [[x[:, :, a:b, c:d] for c, d in edges[1]] for a, b in edges[0]]
    wanted = np.array([[cell.max((2, 3)) for cell in row] for row in cells]).transpose(2, 3, 0, 1)
    found, indices = dnn.ops.adaptive_max_pool(x, (4, 5), return_indices=True, engine=engine)
    assert np.array_equal(found, wanted)
    assert np.array_equal(
        np.take_along_axis(x.reshape(2, 19, -1), indices.reshape(2, 19, -1), -1), found.reshape(2, 19, -1)
    )
    wanted = np.array([[cell.mean((2, 3)) for cell in row] for row in cells]).transpose(2, 3, 0, 1)
    np.testing.assert_allclose(dnn.ops.adaptive_avg_pool(x, (4, 5), engine=engine), wanted, 1e-5, 1e-5)
    np.testing.assert_allclose(
        dnn.ops.adaptive_avg_pool(x, 1, engine=engine), x.mean((2, 3), keepdims=True), 1e-5, 1e-5
    )


def test_ceil_mode_drops_windows_that_begin_after_the_padding() -> None:
    x = numbers(1, 2, 5, 7)
    assert dnn.ops.max_pool(x, 2, stride=3, ceil_mode=True).shape == (1, 2, 2, 3)
    assert dnn.ops.max_pool(x, 2, stride=3).shape == (1, 2, 2, 2)
    assert dnn.ops.avg_pool(x, 1, stride=4, ceil_mode=True).shape == (1, 2, 2, 2)
    mean = dnn.ops.avg_pool(
        x, (2, 2), stride=2, padding=(1, 0), ceil_mode=True
    )  # 7 columns, of which the last is alone
    np.testing.assert_allclose(mean[0, 0, 1, 3], x[0, 0, 1:3, 6].mean(), 1e-6)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_torch(isa: str, ceil_mode: bool) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    x = numbers(2, 5, 11, 13)
    for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (5, 3, 2), ((3, 2), (1, 2), (1, 0))):
        arguments = {"stride": stride, "padding": padding, "ceil_mode": ceil_mode}
        wanted, places = torch.nn.functional.max_pool2d(torch.from_numpy(x), kernel, return_indices=True, **arguments)
        found, indices = dnn.ops.max_pool(x, kernel, return_indices=True, engine=dnn.Engine(isa=isa), **arguments)
        assert np.array_equal(found, wanted.numpy())
        assert np.array_equal(indices, places.numpy())
        for included in (True, False):
            mean = torch.nn.functional.avg_pool2d(torch.from_numpy(x), kernel, count_include_pad=included, **arguments)
            ours = dnn.ops.avg_pool(x, kernel, count_include_pad=included, engine=dnn.Engine(isa=isa), **arguments)
            np.testing.assert_allclose(ours, mean.numpy(), 1e-5, 1e-6)


def test_bad_input() -> None:
    src, dst = dnn.MemoryDesc((1, 2, 4, 4), dnn.f32, "abcd"), dnn.MemoryDesc((1, 2, 2, 2), dnn.f32, "abcd")
    places, wide, bytewise = (
        dnn.MemoryDesc(dims, dtype, "abcd")
        for dims, dtype in (((1, 2, 2, 2), dnn.s32), ((1, 2, 4, 4), dnn.f32), ((1, 2, 4, 4), dnn.u8))
    )
    for arguments, says in (
        (("min", src, dst, (2, 2), (2, 2)), "must be one of max, avg_include_padding"),
        (("max", src, None, (2, 2), (2, 2)), "dst must be a MemoryDesc"),
        (("max", src, dst, (2,), (2, 2)), "kernel must be two integers from 1"),
        (("max", src, dst, (2, 2), (0, 2)), "strides must be two integers from 1"),
        (("max", src, dst, (2, 2), (1, 2)), "dst's height is 2, src, kernel, strides and padding make it 3"),
        (("max", src, dst, (9, 2), (1, 2)), "the kernel exceeds the padded src"),
        (
            ("avg_exclude_padding", src, dst, (2, 2), (4, 2), (), (2, 0), (0, 0)),
            "height 0 lies in padding alone, its mean",
        ),
        (
            ("max", src, dst, (2, 2), (4, 2), (), (2, 0), (0, 0), places),
            "lies in padding alone, its maximum has no place",
        ),
        (("avg_include_padding", src, dst, (2, 2), (2, 2), (), (), (), places), "indices are of max pooling"),
        (("max", src, dst, (2, 2), (2, 2), (), (), (), dst), "it must be s32 or u8"),
        (
            ("max", wide, wide, (17, 17), (1, 1), (), (8, 8), (8, 8), bytewise),
            "more than 256 positions: indices must",
        ),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.PoolingForward(*arguments)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="indices is u8, windows of different sizes have s32 ones"):
        dnn.AdaptivePooling("max", wide, wide, bytewise)
    with pytest.raises(dnn.InvalidArguments, match="both must be at least 1"):
        dnn.AdaptivePooling("max", dnn.MemoryDesc((1, 2, 0, 4), dnn.f32, "abcd"), dst)
    x = np.zeros((1, 2, 4, 4), np.float32)
    for call, says in (
        (lambda: dnn.ops.max_pool(x[0, 0], 2), "x must be"),
        (lambda: dnn.ops.max_pool(x, (2, 2, 2)), "kernel must be an integer of at least 1, or 2 of them"),
        (lambda: dnn.ops.max_pool(x, 5), "exceeds the padded sizes"),
        (lambda: dnn.ops.adaptive_avg_pool(x, 0), "size must be an integer of at least 1"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            call()
    with pytest.raises(dnn.Unimplemented, match="scales and zero points"):
        dnn.primitive_desc(dnn.PoolingForward("max", src, dst, (2, 2), (2, 2)), dnn.Attr(scales={"src": 0}))


@pytest.mark.parametrize("tag", ["abcd", "acdb", "aBcd8b"])
def test_rounds(isa: str, tag: str) -> None:
    """As if few records were many: the same bits, places of maxima, too."""
    for alg in ALGS:
        for problem in (PROBLEMS[0], PROBLEMS[1], ((3, 9, 11, 700), *PROBLEMS[0][1:])):
            desc, x = described(alg, problem, tag, indices=alg == "max"), numbers(*problem[0])
            results = []
            for most in (1 << 14, 1):
                with tuned("phases", written_out=most, round_records=1), tuned("pooling", record_cycles=300):
                    pd = proved_desc(desc, engine=dnn.Engine(isa=isa, threads=2))
                memories = {name: dnn.Memory(tensor) for name, tensor in pd.plan.tensors.items() if name != "src"}
                dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(x, desc.src), **memories)
                results.append((pd.plan.phases, memories))
            (_, whole), (phases, rounds) = results
            assert any(phase.repeats for phase in phases)
            assert all(np.array_equal(whole[name].array, rounds[name].array) for name in whole)


@pytest.mark.parametrize("level", ["avx2", "avx512_core"])
@pytest.mark.parametrize("tag", ["abc", "acb"])
def test_every_window_of_a_small_row(level: str, tag: str) -> None:
    """Also where each of several windows covers the whole row, as one of 5 does twice in a row of 5 with padding."""
    for size, kernel, stride, before, behind in product(range(1, 6), (1, 2, 3, 5), (1, 2), range(3), range(3)):
        if before < kernel > behind and size + before + behind >= kernel:
            problem = ((1, 3, size), (kernel,), (stride,), (0,), (before,), (behind,))
            desc = described("max", problem, tag)
            dnn.primitive_desc(desc, engine=dnn.Engine(isa=level, threads=1)).plan.check()


@pytest.mark.parametrize("dtype", [dnn.f32, dnn.bf16, dnn.s8], ids=str)
@pytest.mark.parametrize("tag", TAGS[:3])
def test_windows_in_padding_alone(isa: str, tag: str, dtype: dnn.DataType) -> None:
    """Along either axis, at both ends; the mean is 0, the maximum what is less than all numbers."""
    for kernel, before, behind in (((2, 2), (3, 2), (0, 4)), ((2, 9), (4, 3), (2, 9)), ((9, 9), (9, 3), (9, 12))):
        problem = ((2, 19, 5, 6), kernel, (1, 2), (0, 0), before, behind)
        for alg in ALGS[:2]:
            plain, x = described(alg, problem, tag), np.rint(numbers(*problem[0]))
            src, dst = (dnn.MemoryDesc(desc.dims, dtype, tag) for desc in (plain.src, plain.dst))
            desc = replace(plain, src=src, dst=dst)
            pd = proved_desc(desc, engine=dnn.Engine(isa=isa))
            result = dnn.Memory(dst)
            dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(encoded(x, dtype), src), dst=result)
            least = -128 if dtype == dnn.s8 else -np.inf
            wanted = np.maximum(expected(alg, x, problem), least).astype(np.float32)
            most = bound(alg, problem) if dtype == dnn.f32 else 0.0
            assert np.allclose(decoded(result.numpy(), dtype), rounded(wanted, dtype), rtol=0, atol=most)
            assert (alg == "max") == (result.numpy() == encoded(np.float32(least), dtype)).any()
