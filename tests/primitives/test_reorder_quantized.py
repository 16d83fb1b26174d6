"""Scales with every mask, zero points and sum, alone and together, against float64; and what is refused."""

from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from tests.primitives.raw import Bits
from tests.primitives.reorder_case import TYPES, Numbers, prepared, run
from tests.primitives.reorder_numbers import bits, decoded, encoded

ROUNDINGS = 8  # src in f32, its zero point, a quotient, a product; sum / scale, a product, a sum; a zero point
UNIT_ROUNDOFF = 2.0**-24
DIMS = (3, 17, 5)
LAYOUTS = (("abc", "abc"), ("abc", "cba"), ("aBc8b", "acb"), ("acb", "aBc16b"), ("cab", "ABc4b8a"))
PAIRS = tuple(product(TYPES.values(), repeat=2))
SCALED = ("", "src", "dst", "both", "src, one of dst", "one of src, dst")
TERMS = tuple(product((False, True), (False, True), (0.0, 1.0, -0.7)))  # zero points of src, dst; sum


def attr_of(which: str, mask: int, zero_points: tuple[bool, bool], total: float) -> dnn.Attr:
    scales = {
        "": {}, "src": {"src": mask}, "dst": {"dst": mask}, "both": {"src": mask, "dst": mask},
        "src, one of dst": {"src": mask, "dst": 0}, "one of src, dst": {"src": 0, "dst": mask},
    }[which]  # fmt: skip
    points = {name: 0 for name, used in zip(("src", "dst"), zero_points, strict=True) if used}
    return dnn.Attr([dnn.Sum(total)] if total else [], scales=scales, zero_points=points)


def numbers_for(attr: dnn.Attr, dims: tuple[int, ...]) -> Numbers:
    """In the shape that broadcasts to the tensor."""
    random = np.random.default_rng(2)
    made: dict[str, Any] = {}
    for name, mask in attr.scales:
        shape = tuple(n if mask >> d & 1 else 1 for d, n in enumerate(dims))
        signs = np.where(random.random(shape) < 0.1, -1, 1)  # negative scales are numbers too
        made[f"{name}_scales"] = (random.uniform(0.2, 3, shape) * signs).astype(np.float32)
    for name, _ in attr.zero_points:
        made[f"{name}_zero_points"] = random.integers(-9, 9, 1, np.int32)
    return made


def some(dtype: dnn.DataType, dims: tuple[int, ...], seed: int) -> Bits:
    return encoded(np.random.default_rng(seed).uniform(-150, 200, dims), dtype)


def limits(
    attr: dnn.Attr, numbers: Numbers, src: np.ndarray, old: np.ndarray, ddt: dnn.DataType
) -> tuple[np.ndarray, np.ndarray]:
    """Between which numbers of dst's type the result lies, in float64 from the formula, where f32 may round."""

    def of(name: str, default: float) -> Any:
        return np.asarray(numbers.get(name, default), np.float64)

    total = sum(op.scale for op in attr.post_ops if isinstance(op, dnn.Sum))
    terms = [of("src_scales", 1) * src, -of("src_scales", 1) * of("src_zero_points", 0), total * old]
    terms = [term / of("dst_scales", 1) for term in terms] + [of("dst_zero_points", 0)]
    value, size = sum(terms, np.zeros(())), sum(map(np.abs, terms), np.zeros(()))
    error = size * ROUNDINGS * UNIT_ROUNDOFF
    low, high = (decoded(encoded(value + side * error, ddt), ddt).astype(np.float64) for side in (-1, 1))
    return low, high


def check(src: dnn.MemoryDesc, dst: dnn.MemoryDesc, attr: dnn.Attr, threads: int = 1) -> Bits:
    numbers = numbers_for(attr, src.dims)
    values, old = some(src.dtype, src.dims, 4), some(dst.dtype, dst.dims, 5)
    found = run(prepared(dnn.Reorder(src, dst), attr, threads), values, old, numbers)
    low, high = limits(attr, numbers, decoded(values, src.dtype), decoded(old, dst.dtype), dst.dtype)
    result = decoded(found, dst.dtype)
    overflows = np.isnan(result) & (np.isnan(low) | np.isnan(high))  # of types without infinity
    assert (overflows | ((low <= result) & (result <= high))).all(), (result, low, high)
    return found


CASES = [
    pytest.param(which, mask, *pair, *tags, id=f"{which or 'none'} {mask}, {pair[0]} {tags[0]} {pair[1]} {tags[1]}")
    for (which, mask), pair, tags in zip(product(SCALED, range(8)), cycle(PAIRS), cycle(LAYOUTS), strict=False)
    if which or not mask
]  # fmt: skip


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("which", "mask", "sdt", "ddt", "stag", "dtag"), CASES)
@pytest.mark.one_in(2)
def test_every_mask(which: str, mask: int, sdt: dnn.DataType, ddt: dnn.DataType, stag: str, dtag: str) -> None:
    """With three of all choices of further terms, others in each case."""
    src, dst = dnn.MemoryDesc(DIMS, sdt, stag), dnn.MemoryDesc(DIMS, ddt, dtag)
    first = (SCALED.index(which) + mask) % 4
    for src_point, dst_point, total in TERMS[first::4]:
        check(src, dst, attr_of(which, mask, (src_point, dst_point), total))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("sdt", TYPES.values(), ids=str)
@pytest.mark.parametrize("ddt", TYPES.values(), ids=str)
def test_every_mask_of_every_pair(sdt: dnn.DataType, ddt: dnn.DataType) -> None:
    """A third of the choices of further terms for each, in turn."""
    for i, (which, mask) in enumerate(product(SCALED, range(8))):
        stag, dtag = LAYOUTS[i % len(LAYOUTS)]
        src, dst = dnn.MemoryDesc(DIMS, sdt, stag), dnn.MemoryDesc(DIMS, ddt, dtag)
        for src_point, dst_point, total in TERMS[i % 3 :: 3]:
            check(src, dst, attr_of(which, mask, (src_point, dst_point), total))


@st.composite
def quantized(draw: st.DrawFn) -> tuple[dnn.MemoryDesc, dnn.MemoryDesc, dnn.Attr]:
    dims = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 8, 9, 17)), min_size=1, max_size=4)))
    letters = "abcd"[: len(dims)]
    descs = []
    for _ in range(2):
        order = draw(st.permutations(letters))
        blocks = draw(st.lists(st.tuples(st.sampled_from(letters), st.sampled_from((2, 3, 4, 8, 16))), max_size=2))
        blocked = {letter for letter, _ in blocks}
        tag = "".join(c.upper() if c in blocked else c for c in order) + "".join(f"{n}{c}" for c, n in blocks)
        descs.append(dnn.MemoryDesc(dims, draw(st.sampled_from(list(TYPES.values()))), tag))
    mask = draw(st.integers(0, (1 << len(dims)) - 1))
    points = draw(st.tuples(st.booleans(), st.booleans()))
    attr = attr_of(draw(st.sampled_from(SCALED)), mask, points, draw(st.sampled_from((0.0, 1.0, 0.3))))
    return descs[0], descs[1], attr


@pytest.mark.isa("avx2")
@settings(max_examples=30, deadline=None, derandomize=True)
@given(quantized())
def test_any_format(case: tuple[dnn.MemoryDesc, dnn.MemoryDesc, dnn.Attr]) -> None:
    check(*case)


@pytest.mark.slow
@pytest.mark.isa("avx2")
@settings(max_examples=1000, deadline=None, derandomize=True)
@given(quantized())
def test_many_formats(case: tuple[dnn.MemoryDesc, dnn.MemoryDesc, dnn.Attr]) -> None:
    check(*case)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("which", ["src", "dst", "both"])
def test_threads_agree_bit_by_bit(which: str) -> None:
    dims = (4, 67, 26, 17)
    src, dst = dnn.MemoryDesc(dims, dnn.f32, "nchw"), dnn.MemoryDesc(dims, dnn.s8, "nChw16c")
    attr = attr_of(which, 2, (True, True), 0.4)
    pd = prepared(dnn.Reorder(src, dst), attr, 2).pd
    assert pd.plan.parts(pd.threads) == 2
    assert np.array_equal(check(src, dst, attr, 1), check(src, dst, attr, 2))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("which", SCALED)
@pytest.mark.parametrize("dims", [(0, 3, 4), (2, 0, 5), (0, 0, 0)], ids=str)
def test_nothing_to_do(dims: tuple[int, ...], which: str) -> None:
    for mask in range(8):
        src, dst = dnn.MemoryDesc(dims, dnn.f32, "abc"), dnn.MemoryDesc(dims, dnn.u8, "aBc8b")
        check(src, dst, attr_of(which, mask, (True, True), 0.5))


INF, NAN = float("inf"), float("nan")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("ddt", "side", "scale", "wanted"),
    [
        (dnn.f32, "src", -2.0, [-4, 0, 6]),
        (dnn.f32, "dst", -0.5, [-4, 0, 6]),
        (dnn.f32, "src", 0.0, [0, 0, 0]),
        (dnn.f32, "dst", 0.0, [INF, NAN, -INF]),
        (dnn.f32, "dst", NAN, [NAN, NAN, NAN]),
        (dnn.s8, "dst", 0.0, [127, -128, -128]),
        (dnn.u8, "dst", 0.0, [255, 0, 0]),
        (dnn.s8, "src", INF, [127, -128, -128]),
        (dnn.s8, "src", NAN, [-128, -128, -128]),
        (dnn.s32, "dst", 0.0, [2147483520, -(2**31), -(2**31)]),
    ],
)  # fmt: skip
def test_scales_are_used_as_they_are(ddt: dnn.DataType, side: str, scale: float, wanted: list[float]) -> None:
    src, dst = dnn.MemoryDesc((3,), dnn.f32, "a"), dnn.MemoryDesc((3,), ddt, "a")
    numbers = {f"{side}_scales": np.float32([scale])}
    found = run(
        prepared(dnn.Reorder(src, dst), dnn.Attr(scales={side: 0})), bits(np.float32([2, 0, -3])), None, numbers
    )
    assert np.array_equal(found.view(ddt.numpy), np.array(wanted, np.float64), equal_nan=True)


@pytest.mark.isa("avx2")
def test_a_sum_of_nothing_leaves_dst_unread() -> None:
    desc = dnn.MemoryDesc((9,), dnn.f32, "a")
    values, nan = bits(np.arange(9, dtype=np.float32)), bits(np.full(9, np.nan, np.float32))
    assert np.array_equal(run(prepared(dnn.Reorder(desc, desc), dnn.Attr([dnn.Sum(0.0)])), values, nan), values)


def test_arguments_that_are_wrong() -> None:
    src, dst = dnn.MemoryDesc((2, 17), dnn.f32, "ab"), dnn.MemoryDesc((2, 17), dnn.s8, "ab")
    primitive = prepared(dnn.Reorder(src, dst), dnn.Attr(scales={"src": 2}, zero_points={"dst": 0}))

    def of(dims: tuple[int, ...], dtype: dnn.DataType) -> dnn.Memory:
        return dnn.Memory(dnn.MemoryDesc(dims, dtype, "ab"[: len(dims)]))

    right = {"src": of((2, 17), dnn.f32), "dst": of((2, 17), dnn.s8), "src_scales": of((17,), dnn.f32)}
    right["dst_zero_points"] = of((1,), dnn.s32)
    primitive.execute(**right)
    for name, wrong in (
        ("src_scales", of((16,), dnn.f32)), ("src_scales", of((1,), dnn.f32)), ("src_scales", of((1, 17), dnn.f32)),
        ("src_scales", of((17,), dnn.s32)),
        ("dst_zero_points", of((1,), dnn.f32)), ("dst_zero_points", of((2,), dnn.s32)),
    ):  # fmt: skip
        with pytest.raises(dnn.InvalidArguments, match=f"{name} is .*, this primitive takes .*"):
            primitive.execute(**{**right, name: wrong})
    for name in right:
        rest = {other: memory for other, memory in right.items() if other != name}
        with pytest.raises(dnn.InvalidArguments, match="arguments must be src, dst, src_scales, dst_zero_points, not"):
            primitive.execute(**rest)
    with pytest.raises(dnn.InvalidArguments, match="src_scales must be a Memory, not float"):
        primitive.execute(**{**right, "src_scales": 2.0})  # type: ignore[dict-item]
    shared = np.zeros(2 * 17 * 5, np.uint8)
    overlapping = {"src": dnn.Memory(src, shared[: 2 * 17 * 4]), "dst": dnn.Memory(dst, shared[4 : 4 + 2 * 17])}
    with pytest.raises(dnn.InvalidArguments, match="dst overlaps src"):
        primitive.execute(**{**right, **overlapping})
    frozen = np.zeros(2 * 17, np.int8)
    frozen.flags.writeable = False
    with pytest.raises(dnn.InvalidArguments, match="dst is read-only"):
        primitive.execute(**{**right, "dst": dnn.Memory(dst, frozen)})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scales": {"src": 8}}, "the mask 8, which is for more than 3 dims"),
        ({"scales": {"dst": 1 << 40}}, "for more than 3 dims"),
        ({"scales": {"src": 1, "dst": 2}}, "masks 1 and 2: they must agree"),
        ({"scales": {"weights": 0}}, "no weights to scale"),
        ({"zero_points": {"src": 1}}, "zero points can only be common"),
    ],
)  # fmt: skip
def test_refusals(change: dict[str, Any], reason: str) -> None:
    desc = dnn.MemoryDesc(DIMS, dnn.f32, "abc")
    with pytest.raises(dnn.Unimplemented, match=reason):
        dnn.primitive_desc(dnn.Reorder(desc, desc), dnn.Attr(**change))


@pytest.mark.parametrize(
    "change", [{"scales": {"src": -1}}, {"scales": {"src": 0.5}}, {"scales": {"src": True}}, {"zero_points": [0]}]
)
def test_masks_that_are_none(change: dict[str, Any]) -> None:
    with pytest.raises(dnn.InvalidArguments, match="mask"):
        dnn.Attr(**change)


def test_too_many_scales() -> None:
    desc = dnn.MemoryDesc((1 << 15, 1 << 14), dnn.s8, "ab")
    with pytest.raises(dnn.Unimplemented, match="at most 268435456 scales"):
        dnn.primitive_desc(dnn.Reorder(desc, desc), dnn.Attr(scales={"src": 3}))
