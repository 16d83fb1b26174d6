"""Views: the element at an index of the view is the element it stands for, or there is one clear error."""

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.types import f32, s8

BLOCKED = MemoryDesc((2, 17, 5, 4), f32, "nChw8c")


def places(desc: MemoryDesc) -> Any:
    return desc.offsets()


@pytest.mark.parametrize(
    ("desc", "dims", "offsets"),
    [
        (MemoryDesc((2, 17, 5, 4), f32, "nchw"), (1, 3, 2, 1), (1, 5, 3, 2)),
        (MemoryDesc((2, 17, 5, 4), f32, "chwn"), (2, 17, 5, 4), (0, 0, 0, 0)),
        (MemoryDesc((6, 8), f32, strides=(20, 2), offset0=3), (3, 4), (2, 1)),
        (BLOCKED, (2, 8, 5, 4), (0, 8, 0, 0)),
        (BLOCKED, (1, 9, 2, 2), (1, 8, 2, 1)),
        (BLOCKED, (2, 1, 5, 4), (0, 16, 0, 0)),
        (MemoryDesc((40, 33, 3, 3), f32, "OIhw4i16o4i"), (24, 17, 1, 3), (16, 16, 1, 0)),
        (MemoryDesc((64, 64), f32, "AB4b16a4b"), (16, 32), (32, 16)),
    ],
)  # fmt: skip
def test_submemory_is_a_slice(desc: MemoryDesc, dims: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    view = desc.submemory(dims, offsets)
    box = tuple(slice(start, start + n) for start, n in zip(offsets, dims, strict=True))
    assert view.dims == dims
    assert np.array_equal(places(view), places(desc)[box])
    assert view.size_bytes <= desc.size_bytes


def test_submemory_shares_storage_and_padding() -> None:
    memory = Memory.from_numpy(np.arange(1, 681, dtype=np.float32).reshape(2, 17, 5, 4), BLOCKED)
    part = Memory(BLOCKED.submemory((2, 9, 5, 4), (0, 8, 0, 0)), memory.array)
    assert np.array_equal(part.numpy(), memory.numpy()[:, 8:])
    assert part.padding_is_zero()
    part.array[part.desc.offset((1, 8, 4, 3))] = -1
    assert memory.numpy()[1, 16, 4, 3] == -1
    memory.array[BLOCKED.offset((0, 17, 0, 0))] = 1
    assert not part.padding_is_zero()


def test_a_view_that_ends_at_a_block_has_no_padding() -> None:
    assert not BLOCKED.submemory((2, 16, 5, 4), (0, 0, 0, 0)).has_padding


@pytest.mark.parametrize(
    ("dims", "offsets", "message"),
    [
        ((2, 8, 5, 4), (0, 4, 0, 0), "offsets has 4 for dim 1, which is in blocks of 8: start at a multiple of 8"),
        ((2, 4, 5, 4), (0, 8, 0, 0), "dims has 4 for dim 1, .* end at a multiple of 8 or at the dim's end, 17"),
        ((2, 18, 5, 4), (0, 0, 0, 0), "takes 0 to 18 of dim 1, which has 17"),
        ((2, 8, 5, 4), (1, 0, 0, 0), "takes 1 to 3 of dim 0"),
        ((2, 8, 5), (0, 0, 0), "needs 4 dims and offsets"),
        ((2, 8, 5, 4), (0, 0, 0), "needs 4 dims and offsets"),
        ((2, 8, 5, 4), (0, 0, 0, -1), "offsets .* has -1"),
        ((2, 8, 5, 4.0), (0, 0, 0, 0), "dims .* must be integers"),
    ],
)
def test_submemory_errors(dims: Any, offsets: Any, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        BLOCKED.submemory(dims, offsets)


@pytest.mark.parametrize("permutation", [(0, 2, 3, 1), (3, 0, 1, 2), (0, 1, 2, 3), (1, 0, 3, 2)])
@pytest.mark.parametrize("tag", ["nchw", "nhwc", "nChw8c", "ABcd4b16a4b"])
def test_permuted_axes(tag: str, permutation: tuple[int, ...]) -> None:
    desc = MemoryDesc((2, 17, 5, 4), f32, tag)
    permuted = desc.permute_axes(permutation)
    for axis, to in enumerate(permutation):
        assert permuted.dims[to] == desc.dims[axis]
    assert np.array_equal(places(permuted), places(desc).transpose(np.argsort(permutation)))
    assert permuted.permute_axes(np.argsort(permutation)) == desc


def test_permuted_axes_have_tags() -> None:
    assert MemoryDesc((2, 17, 5, 4), f32, "nchw").permute_axes((0, 3, 1, 2)).tag == "adbc"
    assert BLOCKED.permute_axes((1, 0, 2, 3)).tag == "bAcd8a"
    assert MemoryDesc((2, 3), f32, "any").permute_axes((1, 0)) == MemoryDesc((3, 2), f32, "any")


@pytest.mark.parametrize("permutation", [(0, 1, 2), (0, 1, 2, 4), (0, 0, 1, 2), (0, 1, 2, -1), 3])
def test_permutation_errors(permutation: Any) -> None:
    with pytest.raises(InvalidArguments, match="permutation"):
        BLOCKED.permute_axes(permutation)


@pytest.mark.parametrize(
    ("desc", "dims", "expected"),
    [
        (MemoryDesc((2, 3, 4, 5), f32, "abcd"), (6, 20), "ab"),
        (MemoryDesc((2, 3, 4, 5), f32, "abcd"), (2, 3, 2, 2, 5), "abcde"),
        (MemoryDesc((2, 3, 4, 5), f32, "abcd"), (120,), "a"),
        (MemoryDesc((2, 3, 4, 5), f32, "acdb"), (2, 3, 20), "acb"),
        (MemoryDesc((3, 4, 5), f32, "abc"), (1, 3, 4, 5), "abcd"),
        (MemoryDesc((3, 4, 5), f32, "abc"), (3, 4, 1, 5, 1), "abcde"),
        (MemoryDesc((1, 64, 1, 1), f32, "nChw16c"), (1, 64), "aB16b"),
        (MemoryDesc((2, 64, 1, 1), f32, "nChw16c"), (2, 4, 16), "abC16c"),
        (MemoryDesc((2, 64, 5, 4), f32, "nChw16c"), (2, 64, 20), "aBc16b"),
        (MemoryDesc((2, 17, 5, 4), f32, "nChw8c"), (2, 17, 20), "aBc8b"),
        (MemoryDesc((2, 17, 5, 4), f32, "nChw8c"), (1, 2, 17, 5, 4), "abCde8c"),
        (MemoryDesc((3, 17, 5, 4), f32, "nChw8c"), (3, 17, 5, 2, 2), "aBcde8b"),
        (MemoryDesc((1, 17, 5), f32, "ABc16a8b"), (1, 17, 5, 1), "ABcd16a8b"),
        (MemoryDesc((64, 32, 3, 3), f32, "OIhw16i16o"), (1, 64, 32, 3, 3), "aBCde16c16b"),
        (MemoryDesc((64, 32, 3, 3), f32, "OIhw16i16o"), (4, 16, 32, 9), "aBCd16c16b"),
        (MemoryDesc((8, 8, 1), f32, "aBc8b"), (64, 1), "Ab8a"),
        (MemoryDesc((24,), f32, "A8a"), (8, 3), "ab"),  # blocks one after the other are no blocks
        (MemoryDesc((2, 0, 5), f32, "aBc8b"), (5, 0), "ab"),
    ],
)  # fmt: skip
def test_reshape(desc: MemoryDesc, dims: tuple[int, ...], expected: str) -> None:
    view = desc.reshape(dims)
    assert np.array_equal(places(view), places(desc).reshape(dims))
    assert view == MemoryDesc(dims, f32, expected)
    assert view.tag == expected


@pytest.mark.parametrize(
    ("desc", "dims"),
    [
        (MemoryDesc((2, 3, 4, 5), f32, "acdb"), (6, 20)),
        (MemoryDesc((4, 6), f32, strides=(8, 1)), (24,)),
        (MemoryDesc((2, 16, 5, 4), f32, "nChw8c"), (2, 320)),
        (MemoryDesc((2, 17, 5, 4), f32, "nChw8c"), (34, 20)),
        (MemoryDesc((24, 5), f32, "Ab8a"), (8, 3, 5)),
        (MemoryDesc((2, 1, 5), f32, "aBc8b"), (2, 5)),
    ],
)  # fmt: skip
def test_reshape_that_needs_a_copy(desc: MemoryDesc, dims: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArguments, match=r"cannot be a view .* asmdnn.reorder\(memory, MemoryDesc\(\(.*'ab"):
        desc.reshape(dims)


@pytest.mark.parametrize("dims", [(2, 17, 5), (2, 17, 5, 5), (), (-2, -340)])
def test_reshape_errors(dims: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArguments, match="dims"):
        BLOCKED.reshape(dims)


def test_reshape_of_any() -> None:
    free = MemoryDesc((2, 3), f32, "any")
    assert free.reshape((6,)) == MemoryDesc((6,), f32, "any")
    for ask in (lambda: free.reshape((5,)), lambda: free.submemory((1, 1), (0, 0))):
        with pytest.raises(InvalidArguments, match="f32 2x3 any has no"):
            ask()


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[MemoryDesc, tuple[int, ...]]:
    """A desc of small factors in some blocking, and other dims of as many elements."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3]), min_size=1, max_size=6))
    cuts = [sorted(draw(st.lists(st.integers(0, len(factors)), max_size=3))) for _ in range(2)]
    old, new = (tuple(prod(factors[a:b]) for a, b in zip([0, *cut], [*cut, len(factors)], strict=True)) for cut in cuts)
    letters = "abcdef"[: len(old)]
    blocks = draw(st.lists(st.tuples(st.sampled_from(letters), st.integers(1, 3)), max_size=3))
    blocked = {letter for letter, _ in blocks}
    outer = "".join(c.upper() if c in blocked else c for c in draw(st.permutations(letters)))
    return MemoryDesc(old, s8, outer + "".join(f"{n}{c}" for c, n in blocks)), new


@settings(max_examples=300, deadline=None, derandomize=True)
@given(reshapes())
def test_any_reshape_is_right_or_refused(case: tuple[MemoryDesc, tuple[int, ...]]) -> None:
    desc, dims = case
    wanted = places(desc).reshape(dims)
    try:
        view = desc.reshape(dims)
    except InvalidArguments:
        # A plain dense tensor in row-major order is never refused, nor is a mere change of dims of 1.
        assert desc.tag != "abcdef"[: desc.ndims]
        assert desc.has_padding or [n for n in dims if n > 1] != [n for n in desc.dims if n > 1]
    else:
        assert np.array_equal(places(view), wanted)
        assert sum(view.padded_dims) - sum(dims) == sum(desc.padded_dims) - sum(desc.dims)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), min_size=1, max_size=4), st.data())
def test_a_plain_reshape_is_refused_exactly_when_numpy_copies(axes: list[tuple[int, int]], data: st.DataObject) -> None:
    dims, strides = zip(*axes, strict=True)
    desc = MemoryDesc(dims, s8, strides=strides)
    new = tuple(data.draw(st.permutations([n for n in dims if n > 1]))) or (1,)
    storage = np.zeros(desc.size_bytes, np.int8)
    view = np.ndarray(dims, np.int8, storage, 0, strides)
    try:
        found: MemoryDesc | None = desc.reshape(new)
    except InvalidArguments:
        found = None
    assert (found is not None) == np.may_share_memory(view.reshape(new), storage)


def test_every_index_of_a_nested_view() -> None:
    whole = MemoryDesc((32, 32, 3, 3), f32, "OIhw8i16o2i")
    part = whole.submemory((16, 16, 2, 3), (16, 16, 1, 0)).permute_axes((1, 0, 2, 3))
    for i, o, h, w in product(range(16), range(16), range(2), range(3)):
        assert part.offset((i, o, h, w)) == whole.offset((o + 16, i + 16, h + 1, w))
