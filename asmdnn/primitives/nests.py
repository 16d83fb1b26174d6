"""Tensors of one shape as two nests of loops: the dims that a primitive reduces, and those that it keeps.

The tensors are dense views of whatever layout: a blocked dim is several loops.  A dim that a tensor has not (1 where
others have more) does not move it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import tag_of
from asmdnn.primitives.elementwise.loops import Box, Loop, common_units, merge
from asmdnn.primitives.reorder.loops import Digits, digits, runs, stride_of


@dataclass(frozen=True, slots=True)
class Nest:
    """starts: of each tensor, in elements.  kept, reduced: loops by falling stride in the model."""

    starts: tuple[int, ...]
    kept: tuple[Loop, ...]
    reduced: tuple[Loop, ...]

    @property
    def box(self) -> Box:
        """Of the loops that are kept."""
        return Box(self.starts, self.kept, padding=False)


def nest_of(
    tensors: Sequence[MemoryDesc], dims: Sequence[int], reduced: Collection[int], model: int = 0
) -> Nest | None:
    """The loops over all of `dims`; None if some blocks do not nest, or a tensor has padding."""
    found: dict[bool, list[Loop]] = {True: [], False: []}
    for dim, size in enumerate(dims):
        if size > 1:
            loops = _loops_of(tensors, dim, size)
            if loops is None:
                return None
            found[dim in reduced] += loops
    kept, inner = (tuple(merge(found[is_reduced], model)) for is_reduced in (False, True))
    return Nest(tuple(tensor.offset0 for tensor in tensors), kept, inner)


def _loops_of(tensors: Sequence[MemoryDesc], dim: int, size: int) -> list[Loop] | None:
    """Those of one dim, which fills whole blocks."""
    places: list[Digits] = [[(1, 0)] if t.dims[dim] < size else digits(t, dim) for t in tensors]
    units = common_units(places)
    if units is None or any(t.dims[dim] == size != t.padded_dims[dim] for t in tensors):
        return None
    (piece, *more) = runs(0, size, units)
    if more:
        return None
    _, count, level = piece
    extents = [count, *(a // b for a, b in pairwise(units[level:]))]
    return [
        Loop(extent, tuple(stride_of(units[k], place) for place in places))
        for k, extent in enumerate(extents, level)
        if extent > 1
    ]


def with_last(desc: MemoryDesc, dims: Sequence[int]) -> MemoryDesc:
    """A plain format for the tensor with these dims innermost, in their order, the others as they lie."""
    others = sorted(set(range(desc.ndims)) - set(dims), key=lambda dim: (-desc.strides[dim], dim))
    return MemoryDesc(desc.dims, desc.dtype, tag_of((*others, *dims), ()))
