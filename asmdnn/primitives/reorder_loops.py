"""Two descriptors of one shape as loops: a few boxes of (extent, src stride, dst stride) that cover every element once.

Every dim is a number in a mixed radix whose digits are the blocks of both descriptors.  Ranges of a dim that do not
fill whole blocks become boxes of their own, and so does the zero padding of the destination.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

from asmdnn.memory import MemoryDesc


@dataclass(frozen=True, slots=True)
class Loop:
    """`extent` steps, each `src` elements further in the source and `dst` in the destination."""

    extent: int
    src: int
    dst: int


@dataclass(frozen=True, slots=True)
class Box:
    """A nest of loops from a pair of start offsets, in elements; padding boxes are to be filled with zeros."""

    src: int
    dst: int
    loops: tuple[Loop, ...]
    padding: bool


def digits(desc: MemoryDesc, dim: int) -> list[tuple[int, int]]:
    """(unit, stride) of every digit of an index of `dim`, which steps by `unit` elements; largest unit first."""
    block = inner = 1
    found = []
    for d, size in reversed(desc.inner_blocks):
        if d == dim:
            found.append((block, inner))
            block *= size
        inner *= size
    return [(block, desc.strides[dim]), *reversed(found)]


def common_units(src: list[tuple[int, int]], dst: list[tuple[int, int]]) -> list[int] | None:
    """The units of the common refinement, largest first; None if blocks do not nest, like 24 and 16."""
    units = sorted({unit for unit, _ in src + dst} | {1}, reverse=True)
    nested = all(large % small == 0 for large, small in pairwise(units))
    return units if nested else None


def stride_of(unit: int, places: list[tuple[int, int]]) -> int:
    """How far one step of `unit` goes: the digit with the largest unit that divides into it."""
    base, stride = next((u, s) for u, s in places if u <= unit)
    return unit // base * stride


def offset_of(index: int, places: list[tuple[int, int]]) -> int:
    offset = 0
    for unit, stride in places:
        offset += index // unit * stride
        index %= unit
    return offset


def runs(begin: int, end: int, units: list[int]) -> Iterator[tuple[int, int, int]]:
    """[begin, end) cut into (start, count, level): count steps of units[level], each a whole block."""
    while begin < end:
        level = next(k for k, unit in enumerate(units) if begin % unit == 0 and begin + unit <= end)
        unit = units[level]
        stop = end if level == 0 else min(end, begin // units[level - 1] * units[level - 1] + units[level - 1])
        count = (stop - begin) // unit
        yield begin, count, level
        begin += count * unit


def boxes(src: MemoryDesc, dst: MemoryDesc) -> list[Box] | None:
    """All boxes of a reorder; None if the blocks of some dim do not nest."""
    choices = []
    for dim, size in enumerate(src.dims):
        places, there = digits(src, dim), digits(dst, dim)
        units = common_units(places, there)
        if units is None:
            return None
        loops = [Loop(0, stride_of(unit, places), stride_of(unit, there)) for unit in units]
        pieces = []
        for begin, end, padding in ((0, size, False), (size, dst.padded_dims[dim], True)):
            for start, count, level in runs(begin, end, units):
                extents = [count] + [units[k - 1] // units[k] for k in range(level + 1, len(units))]
                nest = tuple(Loop(extent, loops[k].src, loops[k].dst) for k, extent in enumerate(extents, level))
                pieces.append((offset_of(start, places), offset_of(start, there), nest, padding))
        choices.append(pieces)
    return [make_box(src.offset0, dst.offset0, pieces) for pieces in product(*choices)]


def make_box(src_start: int, dst_start: int, pieces: tuple[tuple[int, int, tuple[Loop, ...], bool], ...]) -> Box:
    padding = any(piece[3] for piece in pieces)
    loops = [Loop(x.extent, 0 if padding else x.src, x.dst) for piece in pieces for x in piece[2] if x.extent > 1]
    return Box(
        0 if padding else src_start + sum(p[0] for p in pieces),
        dst_start + sum(p[1] for p in pieces),
        tuple(merge(loops)),
        padding,
    )


def merge(loops: list[Loop]) -> list[Loop]:
    """Loops by falling dst stride; a loop that continues where an inner one ends becomes one with it."""
    merged: list[Loop] = []
    for loop in sorted(loops, key=lambda x: (-x.dst, -x.src)):
        outer = merged[-1] if merged else None
        if outer and (outer.src, outer.dst) == (loop.extent * loop.src, loop.extent * loop.dst):
            merged[-1] = Loop(outer.extent * loop.extent, loop.src, loop.dst)
        else:
            merged.append(loop)
    return merged
