"""The page of a layout: what it says lies at an offset lies there, nothing is missing, and what is left out is said."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.show.captions import formula_of, summary_of, title_of
from asmdnn.show.walk import Limits, Page, element_at, page_of
from asmdnn.types import bf16, f32, s8

ALL = Limits(columns=10**6, rows=10**6, panels=10**6)
FEW = Limits(columns=8, rows=8, panels=4)


def shown(page: Page) -> dict[tuple[int, ...], int]:
    """The offset of every index on the page, counted along its row."""
    found = {}
    for panel in filter(None, page.panels):
        for row in filter(None, panel.rows):
            for i, index in enumerate(row.indices):
                if index is not None:
                    position = i if None not in row.indices[:i] else page.column.size - len(row.indices) + i
                    assert index not in found
                    found[index] = row.offset + position * page.column.stride
    return found


@st.composite
def descs(draw: st.DrawFn) -> MemoryDesc:
    ndims = draw(st.integers(1, 4))
    letters = "abcd"[:ndims]
    blocks = draw(st.lists(st.tuples(st.sampled_from(letters), st.integers(1, 4)), max_size=3))
    blocked = {letter for letter, _ in blocks}
    outer = "".join(c.upper() if c in blocked else c for c in draw(st.permutations(letters)))
    dims = draw(st.lists(st.integers(1, 5), min_size=ndims, max_size=ndims))
    desc = MemoryDesc(dims, s8, outer + "".join(f"{n}{c}" for c, n in blocks))
    apart, offset0 = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    strides = [stride * apart for stride in desc.strides]
    return MemoryDesc(dims, s8, strides=strides, inner_blocks=desc.inner_blocks, offset0=offset0)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(descs())
def test_every_element_is_shown_where_it_lies(desc: MemoryDesc) -> None:
    page = page_of(desc, ALL)
    offsets = desc.offsets(with_padding=True)
    assert shown(page) == {index: int(offset) for index, offset in np.ndenumerate(offsets)}
    assert not page.is_abbreviated
    for index, offset in np.ndenumerate(offsets):
        assert element_at(page, int(offset)) == index
    taken = set(offsets.ravel().tolist())
    size = desc.offset0 + int(offsets.max()) + 2
    assert all(element_at(page, offset) is None for offset in range(size) if offset not in taken)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(descs())
def test_rows_and_gaps_cover_the_storage(desc: MemoryDesc) -> None:
    page = page_of(desc, ALL)
    rows = [row for panel in page.panels if panel for row in panel.rows if row]
    span = page.column.size * max(1, page.column.stride)
    for row, after in pairwise(rows):
        assert row.offset + span + row.gap == after.offset
    assert rows[-1].gap == 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(descs())
def test_the_formula_is_right(desc: MemoryDesc) -> None:
    page = page_of(desc, ALL)
    head, formula = formula_of(page).split(" = ")
    assert head == f"offset({', '.join('abcd' if page.names[0] == 'a' else page.names)[: 3 * desc.ndims - 2]})"
    code = compile(formula.replace("/", "//"), "formula", "eval")
    for index, offset in np.ndenumerate(desc.offsets(with_padding=True)):
        assert eval(code, dict(zip(page.names, index, strict=True))) == offset


@pytest.mark.parametrize("tag", ["nchw", "nhwc", "nChw16c", "NChw16n16c"])
def test_abbreviation(tag: str) -> None:
    desc = MemoryDesc((33, 100, 20, 30), f32, tag)
    page = page_of(desc, FEW)
    found = shown(page)
    assert all(offset == desc.offset(index) for index, offset in found.items())
    assert page.is_abbreviated
    assert len(found) <= 8 * 8 * 4
    assert (0, 0, 0, 0) in found
    assert tuple(n - 1 for n in desc.padded_dims) in found  # the end, where the padding is
    assert summary_of(page)[-1] == "large: only the beginning and the end are shown"


def test_summary_and_titles() -> None:
    page = page_of(MemoryDesc((2, 17, 5, 4), f32, "nChw8c"), ALL)
    assert summary_of(page) == (
        "f32 2x17x5x4 nChw8c = aBcd8b",
        "offset(n, c, h, w) = n*480 + c/8*160 + h*32 + w*8 + c%8",
        "3840 bytes; padded to 2x24x5x4: 280 of 960 elements are padding, which is zero",
    )
    titles = [title_of(page, panel) for panel in page.panels if panel]
    assert titles == [f"n={n}, c={c}..{c + 7}" for n in (0, 1) for c in (0, 8, 16)]


def test_the_formula_of_nested_blocks() -> None:
    page = page_of(MemoryDesc((32, 40, 3, 3), bf16, "OIhw8i16o2i"), FEW)
    assert formula_of(page).endswith(" = o/16*6912 + i/16*2304 + h*768 + w*256 + i/2%8*32 + o%16*2 + i%2")


def test_dims_of_one_and_names() -> None:
    page = page_of(MemoryDesc((1, 1), f32, "ab"), ALL, "tn")
    assert shown(page) == {(0, 0): 0}
    assert formula_of(page) == "offset(t, n) = n"


@pytest.mark.parametrize(
    ("desc", "names", "message"),
    [
        (MemoryDesc((2, 3), f32, "any"), None, "f32 2x3 any has nothing to show: it has no layout"),
        (MemoryDesc((2, 0), f32, "ab"), None, "nothing to show: it has no elements"),
        (MemoryDesc((2, 3), f32, "ab"), "nchw", "names 'nchw' must have a letter for each of the 2 dims"),
        (MemoryDesc((2, 3), f32, "ab"), "n,", "names 'n,' must have a letter"),
        (MemoryDesc((2, 3), f32, "ab"), 2, "names 2 must have a letter"),
        ((2, 3), None, "desc must be a MemoryDesc, not tuple"),
    ],
)
def test_nothing_to_show(desc: MemoryDesc, names: str | None, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        page_of(desc, ALL, names)
