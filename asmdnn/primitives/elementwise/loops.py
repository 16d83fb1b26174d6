"""Tensors of one shape as loops: boxes of (extent, a stride for each tensor) that cover every element of dst once.

As reorder/loops.py does it for two tensors.  A tensor whose dim is 1 where dst's is larger does not move along it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.reorder.loops import Digits, digits, offset_of, runs, stride_of


@dataclass(frozen=True, slots=True)
class Loop:
    """`extent` steps, each strides[t] elements further in tensor t."""

    extent: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """A nest of loops from a start in each tensor, in elements; padding boxes of dst are to be filled with zeros."""

    starts: tuple[int, ...]
    loops: tuple[Loop, ...]
    padding: bool


def boxes(tensors: Sequence[MemoryDesc], dst: int) -> list[Box] | None:
    """All boxes, tensors[dst] being the destination; None if the blocks of some dim do not nest."""
    choices = []
    for dim, size in enumerate(tensors[dst].dims):
        places: list[Digits] = [[(1, 0)] if t.dims[dim] == 1 < size else digits(t, dim) for t in tensors]
        units = common_units(places)
        if units is None:
            return None
        steps = [tuple(stride_of(unit, one) for one in places) for unit in units]
        pieces = []
        for begin, end, padding in ((0, size, False), (size, tensors[dst].padded_dims[dim], True)):
            for start, count, level in runs(begin, end, units):
                extents = [count] + [units[k - 1] // units[k] for k in range(level + 1, len(units))]
                loops = [Loop(extent, steps[k]) for k, extent in enumerate(extents, level) if extent > 1]
                pieces.append(([offset_of(start, one) for one in places], loops, padding))
        choices.append(pieces)
    origin = [t.offset0 for t in tensors]
    return [make_box(origin, pieces, dst) for pieces in product(*choices)]


def common_units(places: Sequence[Digits]) -> list[int] | None:
    """The units of the refinement of a dim, largest first; None if blocks do not nest, like 24 and 16."""
    units = sorted({unit for one in places for unit, _ in one} | {1}, reverse=True)
    return units if all(large % small == 0 for large, small in pairwise(units)) else None


def make_box(origin: list[int], pieces: Sequence[tuple[list[int], list[Loop], bool]], dst: int) -> Box:
    """One piece of every dim together; in a padding box only dst moves, what others would be there does not exist."""
    padding = any(is_padding for *_, is_padding in pieces)
    moving = [not padding or t == dst for t in range(len(origin))]
    starts = tuple((begin + sum(at[t] for at, _, _ in pieces)) * moving[t] for t, begin in enumerate(origin))
    loops = [
        Loop(loop.extent, tuple(s * m for s, m in zip(loop.strides, moving, strict=True)))
        for _, some, _ in pieces
        for loop in some
    ]
    return Box(starts, tuple(merge(loops, dst)), padding)


def merge(loops: Sequence[Loop], dst: int) -> list[Loop]:
    """Loops by falling stride in dst; one that continues an inner one, in every tensor, becomes one with it."""
    merged: list[Loop] = []
    for loop in sorted(loops, key=lambda x: (-x.strides[dst], *(-s for s in x.strides))):
        outer = merged[-1] if merged else None
        if outer and outer.strides == tuple(loop.extent * s for s in loop.strides):
            merged[-1] = Loop(outer.extent * loop.extent, loop.strides)
        else:
            merged.append(loop)
    return merged
