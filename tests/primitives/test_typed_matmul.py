"""Matrix products of bf16, f16 and bytes: levels, types of dst, bias and sum, tails, zero points, saturation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory.summed import SummedDesc
from tests.primitives.typed_case import TypedCase, at_levels, check, compare, memories_of
from tests.support.plans import emulate_plan

C = TypedCase
FLOATS = ("bf16:bf16:f32", "bf16:bf16:bf16", "f16:f16:f32", "f16:f16:f16", "f32:bf16:f32", "bf16:s8:bf16", "f32:u8:f32")
BYTES = tuple(f"{src}:s8:{dst}" for src, dst in product(("u8", "s8"), ("s32", "f32", "bf16", "f16", "s8", "u8")))
FROM_F32 = tuple(f"f32:f32:{dst}" for dst in ("bf16", "f16", "s32", "s8", "u8"))
DTYPES = {"u8": np.uint8, "s8": np.int8}
SIZES = ((1, 1, 1), (1, 33, 7), (5, 17, 9), (14, 32, 64), (3, 100, 130), (41, 65, 31), (1, 300, 257))


@at_levels()
@pytest.mark.parametrize("types", (*FLOATS, *BYTES, *FROM_F32))
def test_types(level: str, types: str) -> None:
    for i, (m, n, k) in enumerate(SIZES):
        check(C(m, n, k, types, ("any", "ab", "ba")[i % 3]), level)


@at_levels()
@pytest.mark.parametrize("types", ["u8:s8:s32", "s8:s8:s32", "bf16:bf16:f32", "f16:f16:f32"])
def test_tails(level: str, types: str) -> None:
    """Of k over two groups, of m and n over a block and more."""
    for k in range(1, 10):
        check(C(3, 18, k, types, "any" if k % 2 else "ab"), level)
    for m in (*range(1, 8), 13, 14, 15, 24, 25):
        check(C(m, 35, 12, types), level)
    for n in (*range(1, 18), 31, 32, 33, 63, 65):
        check(C(4, n, 11, types), level)


@at_levels()
@pytest.mark.parametrize(("x", "y", "k"), [("u8", "s8", 65_794), ("s8", "s8", 131_072), ("u8", "u8", 33_026)])
def test_sums_of_bytes_are_modulo_2_to_the_32(level: str, x: str, y: str, k: int) -> None:
    """They pass 2^31 from this k on, which docs/low-precision.md says; with one product less they do not."""
    most = {"u8": 255, "s8": -128}
    product_of_two = most[x] * most[y]
    for depth, wraps in ((k - 1, 0), (k, 2**32 if product_of_two > 0 else -(2**32))):
        src, weights = (np.full(dims, 255 if kind == "u8" else 128, np.uint8) for kind, dims in (
            (x, (3, depth)), (y, (depth, 33)),
        ))  # fmt: skip
        src, weights = src.view(DTYPES[x]), weights.view(DTYPES[y])
        exact = product_of_two * depth
        assert (wraps == 0) == (-(2**31) <= exact < 2**31)
        assert (dnn.ops.matmul(src, weights, engine=dnn.Engine(isa=level)) == exact - wraps).all()


@at_levels()
@pytest.mark.parametrize("src", ["u8", "s8"])
def test_sums_of_bytes_are_exact(level: str, src: str) -> None:
    """Extreme bytes, for which instructions that add in 16 bits saturate, in sums of every length."""
    for k in (1, 2, 3, 4, 5, 64, 1000, 4100):
        check(C(6, 40, k, f"{src}:s8:s32", extreme=True), level, seed=k)
    for k in (8, 511, 1024):
        least = TypedCase(6, 64, k, f"{src}:s8:s32", "ab").planned(level)
        data = {"src": np.full((6, k), 127), "weights": np.full((k, 64), -128), "dst": np.zeros((6, 64))}
        memories = memories_of(least, data)
        dnn.Primitive(least).execute(**memories)
        assert (memories["dst"].array == -128 * 127 * k).all()
    ones = TypedCase(2, 16, 64, f"{src}:s8:s32").planned(level)
    data = {
        "src": np.full((2, 64), np.iinfo(ones.plan.tensors["src"].dtype.numpy).max),
        "weights": np.full((64, 16), 127),
    }
    memories = memories_of(ones, data | {"dst": np.zeros((2, 16))})
    dnn.Primitive(ones).execute(**memories)
    assert (memories["dst"].array == int(data["src"][0, 0]) * 127 * 64).all()


@at_levels()
@pytest.mark.parametrize("types", ["u8:s8:s32", "s8:s8:u8", "u8:s8:bf16", "bf16:bf16:bf16", "f16:f16:f16"])
@pytest.mark.parametrize("bias", ["f32", "bf16", "f16", "s8", "u8", "s32"])
@pytest.mark.one_in(2)
def test_bias_and_sum_of_any_type(level: str, types: str, bias: str) -> None:
    for m, n, k in SIZES[1:4]:
        check(C(m, n, k, types, bias=bias), level)
        check(C(m, n, k, types, bias=bias, sum_scale=0.5, scaled=True), level)


@at_levels()
@pytest.mark.parametrize("src", ["u8", "s8"])
@pytest.mark.parametrize("zero_points", [(3, None), (-77, -5), (255, 128), (100_000, None), (None, 7)])
def test_zero_points(level: str, src: str, zero_points: tuple[int | None, int | None]) -> None:
    for i, (m, n, k) in enumerate(SIZES):
        wtag = ("any", "ab", "ba")[i % 3]
        if zero_points[1] is None:
            check(C(m, n, k, f"{src}:s8:s32", wtag, zero_points=zero_points), level)
        check(C(m, n, k, f"{src}:s8:u8", wtag, "f32", zero_points, scaled=True), level)
        check(C(m, n, k, f"{src}:s8:bf16", wtag, "f32", zero_points, scaled=True), level)  # as oneDNN adds them


@at_levels()
@pytest.mark.parametrize(("types", "ends"), [("u8:s8:u8", (0, 255)), ("s8:s8:s8", (-128, 127))])
def test_both_ends_saturate(level: str, types: str, ends: tuple[int, int]) -> None:
    """What is far beyond 2^31 as f32, too: it must not wrap to the least integer."""
    pd = replace(C(2, 20, 256, types), scaled=True).planned(level)
    data = replace(C(2, 20, 256, types), scaled=True).data()
    data["src"] = np.full((2, 256), 127)
    data["weights"] = np.repeat(np.where(np.arange(20) % 2, 127, -128)[None], 256, 0)
    data["weights_scales"] = np.full(20, 1e6, np.float32)
    memories = memories_of(pd, data)
    dnn.Primitive(pd).execute(**memories)
    assert (memories["dst"].array.reshape(2, 20) == np.where(np.arange(20) % 2, ends[1], ends[0])).all()


@at_levels()
@pytest.mark.parametrize(("dst", "ends"), [("u8", (0, 255)), ("s8", (-128, 127))])
def test_what_is_no_number_of_the_type_saturates(level: str, dst: str, ends: tuple[int, int]) -> None:
    """NaN, infinities, and what words hold and bytes do not, in vectors that are packed alone, two at once, and cut."""
    case = C(7, 37, 9, f"u8:s8:{dst}", bias="f32")
    data = case.data()
    odd = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 3e9, -3e9, 40_000, -40_000, 70_000, 300, -300, 0.5, 1.5])
    data |= {"src": np.zeros((7, 9)), "bias": np.resize(odd, data["bias"].shape)}
    memories = memories_of(pd := case.planned(level), data)
    dnn.Primitive(pd).execute(**memories)
    rounded = np.rint(np.nan_to_num(np.clip(data["bias"], *ends), nan=ends[0]))
    assert (memories["dst"].array.reshape(7, 37) == rounded).all()


@at_levels(("avx2", "avx512_core_bf16"))
def test_several_ranges_of_k_and_rounds(level: str) -> None:
    """Sums that fit dst lie there between ranges of k, others take all of k at once."""
    for types in ("bf16:bf16:f32", "bf16:bf16:bf16", "u8:s8:s32", "u8:s8:u8", "f16:f16:f32"):
        check(C(30, 70, 603, types, l2_bytes=1 << 14), level)
        check(C(1, 24, 9000, types, l2_bytes=1 << 14), level)


@at_levels(("avx2", "avx512_core_bf16"))
def test_tiles_copy_rows_that_alias(level: str) -> None:
    """Rows of src that are a page apart, in several ranges of k, by tiles with and without a tail of columns."""
    for types, k in (("bf16:bf16:f32", 2048), ("u8:s8:s32", 4096), ("s8:s8:u8", 4096)):
        case = C(17, 523, k, types, l2_bytes=1 << 18)
        if types != "bf16:bf16:f32" or level == "avx512_core_bf16":
            assert "copying_tiles" in case.planned(level).implementation
        check(case, level)


@at_levels(("avx2", "avx512_core_bf16"))
def test_the_last_of_many_ranges_ends_with_src(level: str) -> None:
    """Where ranges share their records, its last group of k has fewer elements all the same."""
    bytes_, halves = ("u8:s8:s32", 20, 40, 34_001), ("bf16:bf16:f32", 130, 64, 17_999)
    for types, m, n, k in (bytes_, halves) if level == "avx512_core_bf16" else (bytes_,):
        case = C(m, n, k, types, l2_bytes=1 << 14)
        assert len(case.planned(level).plan.phases) > 64
        check(case, level)


@at_levels(("avx512_core_vnni", "avx512_core_bf16"))
def test_every_thread_count_gives_the_same_bytes(level: str) -> None:
    for types in ("bf16:bf16:bf16", "s8:s8:u8"):
        case = C(65, 130, 300, types)
        data, results = case.data(), set()
        for threads in (1, 2, 3):
            pd = case.planned(level, threads)
            memories = memories_of(pd, data)
            dnn.Primitive(pd).execute(**memories)
            results.add(memories["dst"].array.tobytes())
        assert len(results) == 1


EMULATED = [
    pytest.param(
        C(3, 11, 9, types, zero_points=points), marks=pytest.mark.emulated(isa), id=f"{types}-{isa}-{points[0]}"
    )
    for isa in ("avx2_vnni", "avx512_core_vnni", "avx512_core_bf16")
    for types, points in (("u8:s8:s32", (None, None)), ("s8:s8:s32", (5, None)), ("s8:s8:u8", (None, 9)))
]


@pytest.mark.parametrize("case", EMULATED)
def test_levels_emulated(case: TypedCase, request: pytest.FixtureRequest) -> None:
    mark = request.node.get_closest_marker("emulated")
    assert mark is not None
    pd = case.planned(mark.args[0])
    data = case.data()
    memories = memories_of(pd, data)
    wanted, tolerance = case.expected(data, mark.args[0])
    emulate_plan(pd.plan, memories)
    compare(memories["dst"], case, wanted, tolerance)


@pytest.mark.parametrize("types", ["bf16:bf16:bf16", "u8:s8:u8", "s8:s8:s32", "f16:f16:f32"])
@pytest.mark.parametrize("isa", ["avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni", "avx512_core_amx"])
def test_every_level_plans_every_type(isa: str, types: str) -> None:
    """And reads packed weights where they lie."""
    pd = C(30, 50, 70, types).planned(isa)
    assert "pack_weights" not in pd.implementation
    assert C(30, 50, 70, types, "ab").planned(isa).implementation


def test_sums_of_columns_are_packed_with_the_weights() -> None:
    """A shift needs no phase then, and a zero point one that multiplies; u8 without a zero point does without sums."""
    for m in (1, 2, 50):
        pd = C(m, 64, 96, "s8:s8:s32").planned("avx512_core_vnni")
        assert pd.implementation == "tiles:avx512_core_vnni" and len(pd.plan.phases) == 1
        assert str(pd.weights_desc) == "s8 96x64 sums:BA32b4a"
        pd = C(m, 64, 96, "u8:s8:s32", zero_points=(3, None)).planned("avx512_core_vnni")
        assert len(pd.plan.phases) == 2 and isinstance(pd.weights_desc, SummedDesc)
        assert not isinstance(C(m, 64, 96, "u8:s8:s32").planned("avx512_core_vnni").weights_desc, SummedDesc)
    plain = C(1, 64, 96, "s8:s8:s32", "ab").planned("avx512_core_vnni")
    assert plain.implementation.endswith("avx512_core")  # as words, without a shift: weights are read once


@at_levels()
def test_weights_with_sums_serve_every_src(level: str) -> None:
    """Packed once, for s8, u8, f32, with and without a zero point, by every level."""
    packed = C(5, 70, 50, "s8:s8:s32").planned("avx512_core_vnni").weights_desc
    engine = dnn.Engine(isa=level, machine="zen3")
    random = np.random.default_rng(1)
    b = random.integers(-128, 128, (50, 70)).astype(np.int8)
    weights = dnn.Memory.from_numpy(b, packed)
    for kind, points in product(("s8", "u8", "f32"), ({}, {"src": 0})):
        if kind == "f32" and points:
            continue
        a = random.integers(0, 127, (5, 50)).astype(
            kind.replace("s8", "int8").replace("u8", "uint8").replace("f32", "f4")
        )
        dst = dnn.MemoryDesc((5, 70), dnn.f32 if kind == "f32" else dnn.s32, "ab")
        src = dnn.Memory.from_array(a)
        pd = dnn.primitive_desc(dnn.MatMul(src.desc, packed, dst), dnn.Attr(zero_points=points), engine)
        pd.plan.check()
        given = {"src_zero_points": dnn.Memory.from_array(np.array([9], np.int32))} if points else {}
        result = dnn.Memory(dst)
        dnn.Primitive(pd).execute(src=src, weights=weights, dst=result, **given)
        assert (result.numpy() == (a.astype(int) - 9 * bool(points)) @ b.astype(int)).all()


REFUSED = [
    (C(2, 3, 4, "s8:f32:s32"), "does not multiply s8 by f32"),
    (C(2, 3, 4, "f32:f32:f32", zero_points=(1, None)), "zero points are for integers, and src is f32: leave them out"),
    (C(2, 3, 4, "f32:f32:f32", zero_points=(None, 1)), "zero points are for integers, and dst is f32: leave them out"),
]


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=str)
def test_bad_input(case: TypedCase, message: str) -> None:
    with pytest.raises(dnn.Unimplemented, match=message):
        case.planned("avx2")


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({"weights": 0}, "zero points of weights are not implemented"),
        ({"src": 2}, "zero points of src have the mask 2"),
    ],
)
def test_zero_points_that_tiles_of_bytes_leave_to_others(points: dict[str, int], message: str) -> None:
    a, b, c = (dnn.MemoryDesc((4, 4), kind, "ab") for kind in (dnn.u8, dnn.s8, dnn.s32))
    pd = dnn.primitive_desc(dnn.MatMul(a, b, c), dnn.Attr(zero_points=points), dnn.Engine(isa="avx2"))
    assert pd.implementation == "integers+tiles:avx2" and message in pd.refusals[0].reason
