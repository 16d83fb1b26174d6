"""Reorders among formats of 1 to 12 dims, of elements of 1, 2 and 4 bytes: every bit, padding, gaps, guard pages."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from tests.primitives.guarded import in_child
from tests.primitives.reorder_case import TYPES, check_copy

# Of as many dims as there are letters, whatever they mean: goihw is ncdhw.
TAGS = {
    1: ("a", "A4a", "A16a"),
    2: ("ab", "ba", "aB8b", "Ab16a", "AB16b16a", "AB8a8b", "BA16a16b4b"),
    3: ("abc", "acb", "bac", "cba", "bca", "aBc8b", "aBc16b", "ABc16a16b", "tnc", "Abc32a"),
    4: (
        "nchw", "nhwc", "chwn", "hwio", "ihwo", "nwhc", "nChw8c", "nChw16c", "nChw4c", "aBcd32b", "NChw16n16c",
        "OIhw8i8o", "OIhw8o8i", "OIhw16i16o", "OIhw16o16i", "OIhw4i16o4i", "OIhw8i16o2i", "Oihw16o", "OIhw8i24o",
        "Ohwi8o", "aBcd3b", "aBcd24b", "abCD4c4d", "dcba", "Acdb16a",
    ),
    5: (
        "ncdhw", "ndhwc", "nCdhw8c", "nCdhw16c", "hwigo", "gOIhw16i16o", "gOIhw4i16o4i", "Goihw16g", "Goihw8g",
        "ldigo", "ldgoi", "dhwio", "edcba",
    ),
    6: ("abcdef", "gOIdhw8i8o", "aBCdef16b16c", "fedcba", "abdefc"),
    7: ("abcdefg", "gfedcba", "aBcdefg8b"),
    8: ("abcdefgh", "bdfhaceg"),
    9: ("abcdefghi", "ibcdefgha"),
    10: ("abcdefghij", "aBcdefghij4b"),
    11: ("abcdefghijk", "kabcdefghij"),
    12: ("abcdefghijkl", "lkjihgfedcba", "abcdefghijkL4l"),
}  # fmt: skip
DIMS = {
    1: ((1,), (17,), (33,), (997,)),
    2: ((1, 17), (33, 1), (17, 33), (37, 41)),
    3: ((1, 17, 3), (33, 1, 7), (5, 33, 17), (17, 2, 31)),
    4: ((1, 3, 17, 33), (33, 1, 3, 17), (17, 33, 1, 3), (3, 17, 33, 1), (2, 37, 5, 7)),
    5: ((1, 17, 3, 2, 5), (3, 1, 33, 1, 3), (17, 5, 1, 3, 2)),
    6: ((1, 17, 2, 3, 1, 5), (3, 2, 17, 1, 2, 3)),
    7: ((2, 17, 1, 3, 1, 2, 3), (1, 3, 2, 1, 5, 2, 7)),
    8: ((2, 3, 1, 2, 3, 1, 2, 5),),
    9: ((3, 2, 1, 2, 1, 3, 2, 1, 7),),
    10: ((1, 5, 2, 1, 2, 1, 3, 1, 2, 3),),
    11: ((2, 1, 3, 1, 2, 1, 1, 3, 2, 1, 5),),
    12: ((2, 1, 2, 1, 3, 1, 1, 2, 1, 2, 1, 5), (1, 1, 3, 1, 1, 2, 1, 1, 3, 1, 2, 17)),
}
COUNT = sum(map(len, TAGS.values()))
BY_SIZE = (dnn.u8, dnn.bf16, dnn.f32)
PLACES = [(ndims, tag) for ndims, tags in TAGS.items() for tag in tags]


def test_the_list_is_long() -> None:
    assert COUNT == len(set(PLACES)) >= 60


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("ndims", "tag"), PLACES)
def test_from_one_format_to_the_next(ndims: int, tag: str) -> None:
    """Each is a source once, and a destination; dims and the size of elements are others in turn."""
    tags = TAGS[ndims]
    place = tags.index(tag)
    dims, dtype = DIMS[ndims][place % len(DIMS[ndims])], BY_SIZE[place % 3]
    check_copy(*(dnn.MemoryDesc(dims, dtype, t) for t in (tag, tags[place - 1])))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("ndims", "tag"), PLACES)
def test_to_every_format(ndims: int, tag: str) -> None:
    """In all dims; the size of elements is another one each time."""
    first = TAGS[ndims].index(tag)
    for i, (other, dims) in enumerate(product(TAGS[ndims], DIMS[ndims]), first):
        dtype = BY_SIZE[i % 3]
        check_copy(dnn.MemoryDesc(dims, dtype, tag), dnn.MemoryDesc(dims, dtype, other), threads=2)


@st.composite
def views(draw: st.DrawFn, dims: tuple[int, ...], dtype: dnn.DataType) -> dnn.MemoryDesc:
    """A format of any order and any blocks, of a part of a larger tensor, its axes renamed."""
    ndims = len(dims)
    letters = "abcdefghijkl"[:ndims]
    permutation = tuple(draw(st.permutations(range(ndims))))
    own = tuple(dims[axis] for axis in permutation)  # before the axes are renamed
    blocks = draw(st.lists(st.tuples(st.sampled_from(letters), st.sampled_from((2, 3, 4, 8, 16))), max_size=3))
    blocked = {letter for letter, _ in blocks}
    order = draw(st.permutations(letters))
    tag = "".join(c.upper() if c in blocked else c for c in order) + "".join(f"{size}{c}" for c, size in blocks)
    before = [0 if c in blocked else draw(st.sampled_from((0, 0, 1, 3))) for c in letters]
    behind = [0 if c in blocked else draw(st.sampled_from((0, 0, 1, 5))) for c in letters]
    whole = tuple(a + n + b for a, n, b in zip(before, own, behind, strict=True))
    return dnn.MemoryDesc(whole, dtype, tag).submemory(own, before).permute_axes(permutation)


@st.composite
def copies(draw: st.DrawFn) -> tuple[dnn.MemoryDesc, dnn.MemoryDesc]:
    dims = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 8, 9, 17)), min_size=1, max_size=5)))
    dtype = draw(st.sampled_from(list(TYPES.values())))
    return draw(views(dims, dtype)), draw(views(dims, dtype))


@pytest.mark.isa("avx2")
@settings(max_examples=25, deadline=None, derandomize=True)
@given(copies())
def test_views_of_any_blocking(descs: tuple[dnn.MemoryDesc, dnn.MemoryDesc]) -> None:
    check_copy(*descs)


@pytest.mark.slow
@pytest.mark.isa("avx2")
@settings(max_examples=600, deadline=None, derandomize=True)
@given(copies())
def test_many_views_of_any_blocking(descs: tuple[dnn.MemoryDesc, dnn.MemoryDesc]) -> None:
    check_copy(*descs)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("at_end", (True, False))
@pytest.mark.parametrize("ndims", (1, 2, 3, 4, 5, 12))
def test_nothing_outside_is_touched(ndims: int, at_end: bool) -> None:
    def all_of_them() -> None:
        tags = TAGS[ndims]
        for i, tag in enumerate(tags[::3]):
            dims, dtype = DIMS[ndims][-i % len(DIMS[ndims])], BY_SIZE[i % 3]
            descs = [dnn.MemoryDesc(dims, dtype, t) for t in (tag, tags[3 * i - 1])]
            check_copy(*descs, at_end=at_end)

    assert not in_child(all_of_them)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("tags", [("ab", "ba"), ("ab", "ab")], ids=str)
def test_streaming_stores_of_large_tensors(tags: tuple[str, str]) -> None:
    dims = (1312, 1600)  # 8.4 MB
    check_copy(*(dnn.MemoryDesc(dims, dnn.f32, tag) for tag in tags), threads=2)
