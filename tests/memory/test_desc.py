"""MemoryDesc against the textbook: offsets, padding, sizes, equality, and every error of its constructor."""

import pickle
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.types import DATA_TYPES, bf16, f32, s8

N, C, H, W = 2, 17, 5, 4  # 17 channels are 24 in blocks of 8, 32 in blocks of 16
C8, C16 = 24, 32

# The offset formulas as the literature writes them.
ACTIVATIONS: dict[str, Callable[[int, int, int, int], int]] = {
    "nchw": lambda n, c, h, w: n * C * H * W + c * H * W + h * W + w,
    "nhwc": lambda n, c, h, w: n * H * W * C + h * W * C + w * C + c,
    "chwn": lambda n, c, h, w: c * H * W * N + h * W * N + w * N + n,
    "nChw8c": lambda n, c, h, w: n * C8 * H * W + c // 8 * H * W * 8 + h * W * 8 + w * 8 + c % 8,
    "nChw16c": lambda n, c, h, w: n * C16 * H * W + c // 16 * H * W * 16 + h * W * 16 + w * 16 + c % 16,
    "nhwC8c": lambda n, c, h, w: n * H * W * C8 + h * W * C8 + w * C8 + c // 8 * 8 + c % 8,
    "NChw16n16c": lambda n, c, h, w: c // 16 * H * W * 256 + h * W * 256 + w * 256 + n % 16 * 16 + c % 16,
}

OUT, IN, KH, KW = 18, 20, 3, 2  # two blocks of 16 of each
WEIGHTS: dict[str, Callable[[int, int, int, int], int]] = {
    "oihw": lambda o, i, h, w: ((o * IN + i) * KH + h) * KW + w,
    "hwio": lambda o, i, h, w: ((h * KW + w) * IN + i) * OUT + o,
    "ihwo": lambda o, i, h, w: ((i * KH + h) * KW + w) * OUT + o,
    "OIhw16i16o": lambda o, i, h, w: (((o // 16 * 2 + i // 16) * KH + h) * KW + w) * 256 + i % 16 * 16 + o % 16,
    "OIhw16o16i": lambda o, i, h, w: (((o // 16 * 2 + i // 16) * KH + h) * KW + w) * 256 + o % 16 * 16 + i % 16,
    "OIhw8i8o": lambda o, i, h, w: (((o // 8 * 3 + i // 8) * KH + h) * KW + w) * 64 + i % 8 * 8 + o % 8,
    "OIhw8i24o": lambda o, i, h, w: ((i // 8 * KH + h) * KW + w) * 192 + i % 8 * 24 + o,
    "IOhw16i16o": lambda o, i, h, w: (((i // 16 * 2 + o // 16) * KH + h) * KW + w) * 256 + i % 16 * 16 + o % 16,
    "OIhw4i16o4i": lambda o, i, h, w: (
        (((o // 16 * 2 + i // 16) * KH + h) * KW + w) * 256 + i % 16 // 4 * 64 + o % 16 * 4 + i % 4
    ),
    "OIhw8i16o2i": lambda o, i, h, w: (
        (((o // 16 * 2 + i // 16) * KH + h) * KW + w) * 256 + i % 16 // 2 * 32 + o % 16 * 2 + i % 2
    ),
    "ABcd2b3a2b2a4b": lambda o, i, h, w: (
        (((o // 6 * 2 + i // 16) * KH + h) * KW + w) * 96
        + i % 16 // 8 * 48 + o % 6 // 2 * 16 + i % 8 // 4 * 8 + o % 2 * 4 + i % 4
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("dims", "tag", "formula"),
    [((N, C, H, W), *item) for item in ACTIVATIONS.items()] + [((OUT, IN, KH, KW), *item) for item in WEIGHTS.items()],
    ids=[*ACTIVATIONS, *WEIGHTS],
)
def test_textbook_offsets(dims: tuple[int, ...], tag: str, formula: Callable[..., int]) -> None:
    desc = MemoryDesc(dims, f32, tag)
    expected = {i: formula(*i) for i in product(*map(range, dims))}
    assert {i: desc.offset(i) for i in expected} == expected
    assert desc.offsets().dtype == np.int64
    assert {i: int(desc.offsets()[i]) for i in expected} == expected


def test_padding_of_the_channel_tail() -> None:
    desc = MemoryDesc((N, C, H, W), f32, "nChw8c")
    assert desc.padded_dims == (N, C8, H, W)
    assert desc.strides == (C8 * H * W, H * W * 8, W * 8, 8)
    assert desc.inner_blocks == ((1, 8),)
    assert desc.blocks == (1, 8, 1, 1)
    assert desc.size_bytes == N * C8 * H * W * 4
    assert (desc.nelems(), desc.nelems(with_padding=True)) == (N * C * H * W, N * C8 * H * W)
    assert desc.has_padding
    assert desc.offset((1, 23, 4, 3)) == N * C8 * H * W - 1


def all_offsets(desc: MemoryDesc) -> list[int]:
    return [desc.offset(i) for i in product(*map(range, desc.padded_dims))]


@st.composite
def tagged(draw: st.DrawFn) -> tuple[tuple[int, ...], str]:
    ndims = draw(st.integers(1, 6))
    letters = "abcdef"[:ndims]
    blocks = draw(st.lists(st.tuples(st.sampled_from(letters), st.integers(1, 4)), max_size=4))
    blocked = {letter for letter, _ in blocks}
    outer = "".join(c.upper() if c in blocked else c for c in draw(st.permutations(letters)))
    dims = tuple(draw(st.lists(st.integers(0, 5), min_size=ndims, max_size=ndims)))
    return dims, outer + "".join(f"{size}{letter}" for letter, size in blocks)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(tagged())
def test_any_blocking_is_a_bijection_onto_the_padded_box(case: tuple[tuple[int, ...], str]) -> None:
    dims, tag = case
    desc = MemoryDesc(dims, f32, tag)
    offsets = all_offsets(desc)
    assert sorted(offsets) == list(range(desc.nelems(with_padding=True)))
    assert desc.size_bytes == 4 * len(offsets)
    assert desc.offsets(with_padding=True).ravel().tolist() == offsets
    assert desc.offsets(with_padding=True).shape == desc.padded_dims
    box = tuple(map(slice, dims))
    assert np.array_equal(desc.offsets(), desc.offsets(with_padding=True)[box])
    tables = [desc.dim_offsets(d) for d in range(desc.ndims)]
    assert offsets == [sum(int(t[i]) for t, i in zip(tables, index, strict=True))
                       for index in product(*map(range, desc.padded_dims))]  # fmt: skip
    # The tag found from the strides spells the same places, also where single blocks leave it a choice.
    assert desc.tag is not None
    assert MemoryDesc(dims, f32, desc.tag) == desc


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=4), st.integers(0, 7))
def test_any_strides(axes: list[tuple[int, int]], offset0: int) -> None:
    dims, strides = zip(*axes, strict=True)
    desc = MemoryDesc(dims, s8, strides=strides, offset0=offset0)
    indices = product(*map(range, dims))
    offsets = [offset0 + sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]
    assert desc.offsets().ravel().tolist() == offsets
    assert all_offsets(desc) == offsets
    assert desc.size_bytes == max(offsets) + 1
    assert desc.may_overlap or len(set(offsets)) == len(offsets)  # may err, but never in this direction
    assert desc.is_dense == (sorted(offsets) == list(range(len(offsets))))


@pytest.mark.parametrize(
    ("dims", "strides", "expected"),
    [
        ((2, 3), (3, 1), False), ((2, 3), (1, 2), False), ((2, 3), (2, 1), True), ((2, 3), (0, 1), True),
        ((1, 3), (0, 1), False), ((0, 3), (0, 0), False), ((4, 4), (5, 5), True),
    ],
)  # fmt: skip
def test_may_overlap(dims: tuple[int, ...], strides: tuple[int, ...], expected: bool) -> None:
    assert MemoryDesc(dims, f32, strides=strides).may_overlap is expected


@pytest.mark.parametrize("tag", ["".join(p) for p in permutations("abcd")] + ["aBcd8b", "ABcd16b16a", "ABcd4b16a4b"])
@pytest.mark.parametrize("dims", [(2, 17, 5, 4), (33, 3, 7, 7), (1, 64, 56, 56), (2, 2, 2, 2)])
def test_tag_is_found_again(tag: str, dims: tuple[int, ...]) -> None:
    desc = MemoryDesc(dims, f32, tag)
    assert desc.tag == tag
    if not desc.inner_blocks:
        assert MemoryDesc(dims, f32, strides=desc.strides).tag == tag


@pytest.mark.parametrize(
    ("dims", "tag"),
    [((1, 1, 5, 5), "abcd"), ((2, 1, 5, 5), "acdb"), ((1, 16, 1, 1), "acdb"), ((64, 64, 1, 1), "cdba"),
     ((1, 16, 1, 1), "abcd"), ((2, 3, 1, 1), "bcda"), ((1, 8, 1, 1), "aBcd8b"), ((0, 3, 4, 5), "acdb")],
)  # fmt: skip
def test_tag_is_found_again_among_dims_of_one(dims: tuple[int, ...], tag: str) -> None:
    assert MemoryDesc(dims, f32, tag).tag == tag


@pytest.mark.parametrize(
    ("desc", "text"),
    [
        (MemoryDesc((1, 64, 56, 56), f32, "aBcd16b"), "f32 1x64x56x56 nChw16c"),
        (MemoryDesc((64, 32, 3, 3), bf16, "ABcd8b24a"), "bf16 64x32x3x3 OIhw8i24o"),
        (MemoryDesc((2, 3, 4), f32, "bca"), "f32 2x3x4 cwn"),
        (MemoryDesc((2, 3, 4, 5), f32, "acbd"), "f32 2x3x4x5 acbd"),
        (MemoryDesc((2, 3), f32, "any"), "f32 2x3 any"),
        (MemoryDesc((2, 3), f32, strides=(8, 1)), "f32 2x3 strides 8x1"),
        (MemoryDesc((2, 3), f32, "nc", offset0=7), "f32 2x3 ab offset 7"),
    ],
)
def test_text(desc: MemoryDesc, text: str) -> None:
    assert str(desc) == repr(desc) == text


def test_tag_of_strides_with_gaps_is_none() -> None:
    desc = MemoryDesc((2, 3), f32, strides=(8, 1))
    assert (desc.tag, desc.alias, desc.is_dense, desc.size_bytes) == (None, None, False, 11 * 4)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(tagged(), st.lists(st.integers(0, 3), min_size=6, max_size=6), st.integers(0, 5))
def test_any_blocking_by_strides(case: tuple[tuple[int, ...], str], gaps: list[int], offset0: int) -> None:
    dims, tag = case
    dense = MemoryDesc(dims, f32, tag)
    same = MemoryDesc(dims, f32, strides=dense.strides, inner_blocks=list(map(list, dense.inner_blocks)))
    assert same == dense
    assert (same.tag, same.padded_dims, same.size_bytes) == (dense.tag, dense.padded_dims, dense.size_bytes)
    # The same blocks further apart: the textbook's formula.
    unit = int(np.prod([size for _, size in dense.inner_blocks], dtype=int))
    wide = MemoryDesc(
        dims, f32, inner_blocks=dense.inner_blocks, offset0=offset0,
        strides=[stride + gap * unit * 7 for stride, gap in zip(dense.strides, gaps, strict=False)],
    )  # fmt: skip
    for index in product(*map(range, wide.padded_dims)):
        block = [i // b for i, b in zip(index, wide.blocks, strict=True)]
        within = dense.offset([i % b for i, b in zip(index, wide.blocks, strict=True)])
        assert wide.offset(index) == offset0 + sum(map(int.__mul__, block, wide.strides)) + within
    offsets = all_offsets(wide)
    assert wide.size_bytes == 4 * (max(offsets) + 1 if offsets else 0)
    assert wide.may_overlap or len(set(offsets)) == len(offsets)
    assert wide.is_dense == (sorted(offsets) == list(range(wide.nelems())))


def test_strides_between_and_within_blocks() -> None:
    desc = MemoryDesc((32, 32, 3, 3), f32, "OIhw4i16o4i")
    assert desc.inner_blocks == ((1, 4), (0, 16), (1, 4))
    assert desc.inner_strides == (64, 4, 1)
    assert desc.strides == (2 * 9 * 256, 9 * 256, 3 * 256, 256)
    assert MemoryDesc((2, 3), f32, "ab").inner_strides == ()


def test_blocks_apart() -> None:
    desc = MemoryDesc((2, 17, 5, 4), f32, strides=(600, 200, 40, 8), inner_blocks=[(1, 8)])
    assert (desc.tag, desc.alias, desc.may_overlap, desc.has_padding) == (None, None, False, True)
    assert str(desc) == "f32 2x17x5x4 strides 600x200x40x8 blocks 8b"
    assert desc.padded_dims == (2, 24, 5, 4)
    assert desc.size_bytes == desc.offset((1, 23, 4, 3)) * 4 + 4
    assert MemoryDesc((16, 2), f32, strides=(4, 32), inner_blocks=[(0, 8)]).may_overlap
    blocks: Any = np.array([[1, 8]])
    assert MemoryDesc((2, 17, 5, 4), f32, strides=(480, 160, 32, 8), inner_blocks=blocks).alias == "nChw8c"


@pytest.mark.parametrize(
    ("desc", "dense"),
    [
        (MemoryDesc((2, 16, 3, 3), f32, "nChw8c"), True),
        (MemoryDesc((2, 17, 3, 3), f32, "nChw8c"), False),
        (MemoryDesc((2, 3), f32, strides=(1, 2)), True),
        (MemoryDesc((2, 3), f32, strides=(5, 0)), False),
        (MemoryDesc((2, 3), f32, "ab", offset0=1), False),
        (MemoryDesc((2, 0), f32, "ab"), True),
        (MemoryDesc((2, 3), f32, "any"), False),
    ],
)
def test_is_dense(desc: MemoryDesc, dense: bool) -> None:
    assert desc.is_dense is dense


def test_equality_is_about_places() -> None:
    dims = (2, 16, 3, 3)
    assert MemoryDesc(dims, f32, "nChw8c") == MemoryDesc(list(dims), f32, "aBcd8b")
    assert MemoryDesc(dims, f32, "nchw") == MemoryDesc(dims, f32, strides=(144, 9, 3, 1))
    single = [MemoryDesc((4, 16, 1, 1), f32, tag) for tag in ("nchw", "nhwc")]
    assert single[0] == single[1]
    assert hash(single[0]) == hash(single[1])
    assert MemoryDesc((1, 5), f32, strides=(0, 1)) == MemoryDesc((1, 5), f32, "ab")


def test_inequality() -> None:
    different = [
        MemoryDesc((2, 16, 3, 3), f32, "nchw"), MemoryDesc((2, 16, 3, 3), f32, "nhwc"),
        MemoryDesc((2, 16, 3, 3), f32, "nChw8c"), MemoryDesc((2, 15, 3, 3), f32, "nChw8c"),
        MemoryDesc((2, 16, 3, 3), f32, "nChw16c"), MemoryDesc((2, 16, 3, 3), f32, "any"),
        MemoryDesc((2, 16, 3, 3), bf16, "nchw"), MemoryDesc((2, 16, 3, 3), f32, "nchw", offset0=1),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    assert different[0] != "f32 2x16x3x3 nchw"


def test_value() -> None:
    desc = MemoryDesc((2, 17, 3, 3), f32, "nChw8c")
    assert pickle.loads(pickle.dumps(desc)) == desc
    with pytest.raises(AttributeError):
        desc.dims = (1,)  # type: ignore[misc]


def test_numpy_integers_become_python_ones() -> None:
    desc = MemoryDesc(np.array([2, 3]), f32, strides=np.array([3, 1]))  # type: ignore[arg-type]
    assert [type(v) for v in desc.dims + desc.strides] == [int] * 4


def test_zero_dims_are_legal() -> None:
    desc = MemoryDesc((2, 0, 3, 3), f32, "nChw8c")
    assert (desc.size_bytes, desc.nelems(), desc.padded_dims) == (0, 0, (2, 0, 3, 3))
    assert desc.offsets().shape == (2, 0, 3, 3)


@pytest.mark.parametrize("dtype", DATA_TYPES.values(), ids=str)
def test_size_in_every_type(dtype: Any) -> None:
    assert MemoryDesc((3, 5), dtype, "Ab4a").size_bytes == 4 * 5 * dtype.size_bytes


def test_any_has_dims_and_nothing_else() -> None:
    desc = MemoryDesc((2, 3), f32, "any")
    assert (desc.is_any, desc.strides, desc.padded_dims, desc.tag, desc.alias) == (True, (), (2, 3), "any", None)
    for ask in (lambda: desc.size_bytes, lambda: desc.offset((0, 0)), desc.offsets, lambda: desc.dim_offsets(0)):
        with pytest.raises(InvalidArguments, match="f32 2x3 any has no"):
            ask()


@pytest.mark.parametrize("index", [(0,), (0, 0, 0), (2, 0), (0, 8), (-1, 0), (0.0, 0)])
def test_index_outside(index: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArguments, match="index"):
        MemoryDesc((2, 5), f32, "aB8b").offset(index)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (((), f32, "a"), {}, "dims .* has 0 dims"),
        (((1,) * 13, f32, "any"), {}, "13 dims: a tensor has 1 to 12"),
        ((5, f32, "a"), {}, "dims 5 must be a sequence"),
        (("22", f32, "ab"), {}, "dims .* must be integers"),
        (((2, -3), f32, "ab"), {}, "dims .* has -3: must be 0 or more"),
        (((2, -3), f32, "any"), {}, "dims .* has -3"),
        (((np.int64(-3),), f32, "a"), {}, "dims .* has -3"),
        (((2, 3.0), f32, "ab"), {}, "dims .* has 3.0: must be integers"),
        (((2, True), f32, "ab"), {}, "dims .* has True: must be integers"),
        (((2, np.True_), f32, "ab"), {}, "dims .* must be integers"),
        (((2, None), f32, "ab"), {}, "dims .* has None"),
        (((2, 3), "f32", "ab"), {}, "dtype, such as asmdnn.f32, must be one of"),
        (((2, 3), np.float32, "ab"), {}, "dtype, such as asmdnn.f32, must be one of"),
        (((2, 3), f32), {}, "give exactly one"),
        (((2, 3), f32, "ab"), {"strides": (3, 1)}, "give exactly one"),
        (((2, 3), f32, 7), {}, "tag 7 is not a string"),
        (((2, 3), f32, ["a"]), {}, "tag .* is not a string"),
        (((2, 3), f32, "abc"), {}, "tag 'abc' has 3 dims, but dims has 2"),
        (((2, 3), f32, "nhwz"), {}, "tag 'nhwz' has the unknown letter"),
        (((2, 3), f32), {"strides": (3, 1, 1)}, "strides .* has 3 entries"),
        (((2, 3), f32), {"strides": (-3, 1)}, "strides .* has -3"),
        (((2, 3), f32), {"strides": (3.0, 1)}, "strides .* must be integers"),
        (((2, 3), f32), {"strides": 3}, "strides 3 must be a sequence"),
        (((2, 3), f32), {"inner_blocks": [(1, 8)]}, "give exactly one"),
        (((2, 3), f32, "ab"), {"inner_blocks": [(1, 8)]}, "inner_blocks .* needs strides"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(2, 8)]}, "a block of dim 2: the tensor has dims 0 to 1"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(1, 0)]}, "a block of size 0"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(1, -8)]}, "inner_blocks .* has -8"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(1, 8.0)]}, "inner_blocks .* must be integers"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [8]}, "inner_blocks 8 must be"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": 8}, "inner_blocks 8 must be pairs"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(1, 8, 1)]}, "a pair of a dim and a size"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(1, 2)] * 13}, "at most 12"),
        (((2, 3), f32), {"strides": (8, 1), "inner_blocks": [(1, 1 << 60)]}, "the largest tensor has"),
        (((2, 3), f32, "ab"), {"offset0": -1}, "offset0 .* has -1"),
        (((2, 3), f32, "ab"), {"offset0": 1.5}, "offset0 .* must be integers"),
        (((2, 3), f32, "ab"), {"offset0": 1 << 60}, "the largest tensor has"),
        (((1 << 23, 1 << 23), f32, "ab"), {}, "the largest tensor has"),
        (((1 << 62, 1 << 62), f32, "any"), {}, "the largest tensor has"),
        (((0, 1 << 62), f32, "ab"), {}, "the largest tensor has"),
        (((2, 2), f32), {"strides": (1 << 61, 1)}, "the largest tensor has"),
        (((1, 2), f32), {"strides": (1 << 63, 1)}, "the largest tensor has"),
        (((2, 3), f32, "aB999999999999999b"), {}, "the largest tensor has"),
    ],
)
def test_errors(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        MemoryDesc(*arguments, **options)


def test_the_largest_tensor_is_legal() -> None:
    assert MemoryDesc((1 << 22, 1 << 22), f32, "ab").size_bytes == 1 << 46
