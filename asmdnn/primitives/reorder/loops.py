"""Two descriptors of one shape as loops: a few boxes of (extent, src stride, dst stride) that cover every element once.

Every dim is a number in a mixed radix whose digits are the blocks of both descriptors.  Ranges of a dim that do not
fill whole blocks become boxes of their own, and so does the zero padding of the destination.  Where blocks do not
nest, such as 16 and 24, the dim is cut wherever a block of either begins, and equal pieces of every 48 form a loop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import lcm

from asmdnn.memory import MemoryDesc


@dataclass(frozen=True, slots=True)
class Loop:
    """`extent` steps, each `src` elements further in the source, `dst` in the destination, `scale` in the scales."""

    extent: int
    src: int
    dst: int
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A nest of loops from start offsets, in elements; padding boxes are to be filled with zeros.

    zeros: how many steps of the loop that is dense in dst follow it in padding, which belongs to this box then.
    """

    src: int
    dst: int
    loops: tuple[Loop, ...]
    padding: bool
    scale: int = 0
    zeros: int = 0


Digits = list[tuple[int, int]]  # (unit, stride), largest unit first


def digits(desc: MemoryDesc, dim: int) -> Digits:
    """(unit, stride) of every digit of an index of `dim`, which steps by `unit` elements; largest unit first."""
    block = inner = 1
    found = []
    for d, size in reversed(desc.inner_blocks):
        if d == dim:
            found.append((block, inner))
            block *= size
        inner *= size
    return [(block, desc.strides[dim]), *reversed(found)]


def stride_of(unit: int, places: Digits) -> int:
    """How far one step of `unit` goes: the digit with the largest unit that divides into it."""
    base, stride = next((u, s) for u, s in places if u <= unit)
    return unit // base * stride


def offset_of(index: int, places: Digits) -> int:
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


def nested_units(units: list[int]) -> tuple[list[int], list[int]]:
    """The units, largest first, as those that do not nest and those below, which divide all the others."""
    units = sorted(units, reverse=True)
    first = next(
        k
        for k in range(len(units))
        if all(a % b == 0 for a, b in pairwise(units[k:])) and all(unit % units[k] == 0 for unit in units[:k])
    )
    return units[:first], units[first:]


def cut_at(begin: int, end: int, units: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """[begin, end) cut where a block of any unit begins: (start, length, count, step), equal pieces at equal steps."""
    step = lcm(*units)
    edges = sorted({begin, end} | {edge for unit in units for edge in range(begin + -begin % unit, end, unit)})
    found: dict[tuple[int, int], list[int]] = {}
    for start, stop in pairwise(edges):
        found.setdefault((start % step, stop - start), []).append(start)
    for (_, length), starts in found.items():
        yield starts[0], length, len(starts), step


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of one dim: start offsets in src, dst and scales, and the loops from there."""

    src: int
    dst: int
    scale: int
    loops: tuple[Loop, ...]
    padding: bool


def pieces_of(size: int, padded: int, src: Digits, dst: Digits, scale: int) -> Iterator[Piece]:
    """All pieces of a dim whose index steps by `scale` in the scales."""
    above, units = nested_units(list({unit for unit, _ in src + dst} | {1}))
    scales = [(1, scale)]

    def loop(extent: int, unit: int) -> Loop:
        return Loop(extent, stride_of(unit, src), stride_of(unit, dst), unit * scale)

    for begin, end, padding in ((0, size, False), (size, padded, True)):
        stretches = cut_at(begin, end, above) if above else [(begin, end - begin, 1, 1)]
        for first, length, repeats, step in stretches if begin < end else ():
            outer = (loop(repeats, step),) if repeats > 1 else ()
            for start, count, level in runs(first, first + length, units):
                extents = [count] + [a // b for a, b in pairwise(units[level:])]
                nest = tuple(loop(extent, units[k]) for k, extent in enumerate(extents, level))
                at = [offset_of(start, digits) for digits in (src, dst, scales)]
                yield Piece(at[0], at[1], at[2], (*outer, *nest), padding)


def boxes(src: MemoryDesc, dst: MemoryDesc, scales: Sequence[int] | None = None) -> list[Box]:
    """All boxes of a reorder.  scales: the stride of every dim in the scales, 0 where all its indices share them."""
    choices = [
        list(pieces_of(size, dst.padded_dims[dim], digits(src, dim), digits(dst, dim), scales[dim] if scales else 0))
        for dim, size in enumerate(src.dims)
    ]
    return [make_box(src.offset0, dst.offset0, pieces) for pieces in product(*choices)]


def make_box(src_start: int, dst_start: int, pieces: tuple[Piece, ...]) -> Box:
    padding = any(piece.padding for piece in pieces)
    loops = [x for piece in pieces for x in piece.loops if x.extent > 1]
    dst = dst_start + sum(piece.dst for piece in pieces)
    if padding:
        return Box(0, dst, tuple(merge([Loop(x.extent, 0, x.dst) for x in loops])), padding)
    src = src_start + sum(piece.src for piece in pieces)
    return Box(src, dst, tuple(merge(loops)), padding, sum(piece.scale for piece in pieces))


def merge(loops: list[Loop]) -> list[Loop]:
    """Loops by falling dst stride; a loop that continues where an inner one ends becomes one with it."""
    merged: list[Loop] = []
    for loop in sorted(loops, key=lambda x: (-x.dst, -x.src)):
        outer = merged[-1] if merged else None
        ends = tuple(loop.extent * step for step in (loop.src, loop.dst, loop.scale))
        if outer and (outer.src, outer.dst, outer.scale) == ends:
            merged[-1] = Loop(outer.extent * loop.extent, loop.src, loop.dst, loop.scale)
        else:
            merged.append(loop)
    return merged
