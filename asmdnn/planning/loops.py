"""Tensors of one shape as loops: a few boxes of (extent, a stride for each tensor) that cover every element once.

The first tensor is the source, the second the destination, others may follow.  A tensor whose dim is 1 where dst's is
larger does not advance along it.

Every dim is a number in a mixed radix whose digits are the blocks of all descriptors.  Ranges of a dim that do not
fill whole blocks become boxes of their own, and so does the zero padding of the destination.  Where blocks do not
nest, such as 16 and 24, the dim is cut wherever a block of either begins, and equal pieces of every 48 form a loop.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from math import lcm
from typing import Final

import numpy as np

from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

SRC: Final = 0
DST: Final = 1
FEW_SIZES = (512, 64, 8)
MAX_STEP = MAX_OFFSET // f32.size_bytes  # elements: steps in code are 32 bits of bytes
STEPS_AT_ONCE = 16  # that code takes from one pointer, at most
NEAR_STEP = MAX_STEP // STEPS_AT_ONCE


@dataclass(frozen=True, slots=True)
class Loop:
    """`extent` steps, each strides[t] further in tensor t: elements, or bytes after `in_bytes`."""

    extent: int
    strides: tuple[int, ...]

    @property
    def src(self) -> int:
        return self.strides[SRC]

    @property
    def dst(self) -> int:
        return self.strides[DST]

    def strides_bytes(self, dtype: DataType) -> tuple[int, ...]:
        """The loop in bytes, from strides in elements of one type."""
        return self.every(dtype.size_bytes)

    def strides_of(self, dtypes: Sequence[DataType]) -> tuple[int, ...]:
        """The loop in bytes, for the first tensors, of these types."""
        return tuple(dtype.size_bytes * stride for dtype, stride in zip(dtypes, self.strides, strict=False))

    def every(self, steps: int) -> tuple[int, ...]:
        """The strides of so many steps at a time."""
        return tuple(steps * stride for stride in self.strides)


@dataclass(frozen=True, slots=True)
class Box:
    """A nest of loops from a start in each tensor; padding boxes are to be filled with zeros, only dst moves there."""

    starts: tuple[int, ...]
    loops: tuple[Loop, ...]
    padding: bool = False

    @property
    def src(self) -> int:
        return self.starts[SRC]

    @property
    def dst(self) -> int:
        return self.starts[DST]

    def in_bytes(self, sizes: Sequence[int]) -> "Box":
        """The same in bytes of elements of these sizes, one for each tensor."""
        loops = tuple(Loop(x.extent, _times(x.strides, sizes)) for x in self.loops)
        return Box(_times(self.starts, sizes), loops, self.padding)


def _times(numbers: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple([number * size for number, size in zip(numbers, sizes, strict=True)])


def is_near(loop: Loop) -> bool:
    """Whether code reaches the steps that it takes from one pointer."""
    return (min(loop.extent, STEPS_AT_ONCE) - 1) * max(loop.strides) <= MAX_STEP


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


def units_of(places: Iterable[Digits]) -> tuple[list[int], list[int]]:
    """The units of all digits, largest first: those that do not nest, and those below, which divide all the others."""
    units = sorted({unit for one in places for unit, _ in one} | {1}, reverse=True)
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


def pieces_of(size: int, padded: int, places: Sequence[Digits]) -> Iterator[Box]:
    """All parts of one dim, padded to `padded`: where each starts in every tensor, and the loops there."""
    if 0 < size == padded and all(len(one) == 1 for one in places):  # without blocks: one loop
        loops = (Loop(size, tuple([one[0][1] for one in places])),) if size > 1 else ()
        yield Box((0,) * len(places), loops)
        return
    above, units = units_of(places)

    def loop(extent: int, unit: int) -> Loop:
        return Loop(extent, tuple([stride_of(unit, one) for one in places]))

    for begin, end, padding in ((0, size, False), (size, padded, True)):
        stretches = cut_at(begin, end, above) if above else [(begin, end - begin, 1, 1)]
        for first, length, repeats, step in stretches if begin < end else ():
            for start, count, level in runs(first, first + length, units):
                extents = [count] + [a // b for a, b in pairwise(units[level:])]
                nest = [loop(extent, units[k]) for k, extent in enumerate(extents, level) if extent > 1]
                outer = [loop(repeats, step)] if repeats > 1 else []
                yield Box(tuple([offset_of(start, one) for one in places]), (*outer, *nest), padding)


def boxes(tensors: Sequence[MemoryDesc]) -> list[Box]:
    """All boxes of the tensors, padding of dst included."""
    dst = tensors[DST]
    choices = []
    for dim, (size, padded) in enumerate(zip(dst.dims, dst.padded_dims, strict=True)):
        places: list[Digits] = [[(1, 0)] if t.dims[dim] == 1 < size else digits(t, dim) for t in tensors]
        choices.append(list(pieces_of(size, padded, places)))
    origin = [t.offset0 for t in tensors]
    return [together(origin, pieces) for pieces in product(*choices)]


def together(origin: Sequence[int], pieces: Sequence[Box]) -> Box:
    """One part of every dim as a box; in padding only dst advances, as no other tensor has elements there."""
    starts = [sum(at) for at in zip(origin, *(piece.starts for piece in pieces), strict=True)]
    loops = [loop for piece in pieces for loop in piece.loops]
    if not any(piece.padding for piece in pieces):
        return Box(tuple(starts), tuple(merge(loops)))
    only = [int(t == DST) for t in range(len(starts))]
    loops = [Loop(loop.extent, _times(loop.strides, only)) for loop in loops]
    return Box(_times(starts, only), tuple(merge(loops)), True)


def merge(loops: Iterable[Loop], model: int = DST) -> list[Loop]:
    """Loops by falling stride in a tensor; one that continues an inner one in every tensor is merged with it."""
    merged: list[Loop] = []
    for loop in sorted(loops, key=lambda x: (-x.strides[model], *[-stride for stride in x.strides])):
        outer = merged[-1] if merged else None
        if outer and outer.strides == loop.every(loop.extent):
            merged[-1] = Loop(outer.extent * loop.extent, loop.strides)
        else:
            merged.append(loop)
    return merged


def cut_loop(box: Box, loop: Loop, most: int) -> Iterator[tuple[Box, Loop]]:
    """The box with a loop of it in pieces of at most `most` steps, many equal ones and the rest, and that piece."""
    others = tuple(x for x in box.loops if x is not loop)
    size = min(most, loop.extent)
    count, rest = divmod(loop.extent, size)
    outer = (Loop(count, loop.every(size)),) if count > 1 else ()
    inner = Loop(size, loop.strides)
    yield Box(box.starts, (*others, *outer, inner), box.padding), inner
    if rest:
        inner = Loop(rest, loop.strides)
        starts = tuple([at + step for at, step in zip(box.starts, loop.every(count * size), strict=True)])
        yield Box(starts, (*others, inner), box.padding), inner


def cut_in_few_sizes(box: Box, loop: Loop, most: int) -> Iterator[tuple[Box, Loop]]:
    """As `cut_loop`, but what is no whole piece comes in pieces of FEW_SIZES and a rest of less, so that a few kernels
    serve every extent: those of a network whose dims change."""
    size = next((size for size in (most, *FEW_SIZES) if size <= min(most, loop.extent)), loop.extent)
    (whole, inner), *rest = cut_loop(box, loop, size)
    yield whole, inner
    for part, left in rest:
        yield from cut_in_few_sizes(part, left, most)


def grid(starts: Sequence[int], loops: Iterable[Loop]) -> Int64:
    """int64[steps, tensors]: where every step of the loops begins, the first loop being the outermost."""
    found = np.array([starts], np.int64)
    for loop in loops:
        steps = np.arange(loop.extent)[:, None] * np.array(loop.strides, np.int64)
        found = (found[:, None] + steps).reshape(-1, len(starts))
    return found
