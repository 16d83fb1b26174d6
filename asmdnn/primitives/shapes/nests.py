"""Tensors of one shape as two nests of loops: the dims that a primitive reduces, and those that it keeps.

The tensors are dense views of whatever layout: a blocked dim is several loops.  A dim that a tensor has not (1 where
others have more) does not move it.
"""

from collections.abc import Callable, Collection, Sequence

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import tag_of
from asmdnn.planning.loops import Box, Digits, Loop, digits, merge, pieces_of, units_of
from asmdnn.planning.refusal import Refused
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Nest:
    """starts: of each tensor, in elements.  kept, reduced: loops by falling stride in the model."""

    starts: tuple[int, ...]
    kept: tuple[Loop, ...]
    reduced: tuple[Loop, ...]

    @property
    def row(self) -> Loop:
        """What is reduced, as one loop; `is_row` says whether it is dense in the first two tensors."""
        return self.reduced[0] if self.reduced else Loop(1, (1,) * len(self.starts))

    @property
    def is_row(self) -> bool:
        return len(self.reduced) <= 1 and is_dense(self.row)

    @property
    def box(self) -> Box:
        """Of the loops that are kept."""
        return Box(self.starts, self.kept, padding=False)


def is_dense(loop: Loop) -> bool:
    """In the first two tensors, src and dst; others move along with them, or not at all."""
    return loop.strides[0] == loop.strides[1] == 1 and max(loop.strides) == 1


def read_nest(tensors: Sequence[MemoryDesc], dims: Sequence[int], reduced: Collection[int], model: int = 0) -> Nest:
    """As `nest_of`.  Raises Refused, also where there is nothing to walk over."""
    if 0 in dims:
        raise Refused("there are no elements")
    nest = nest_of(tensors, dims, reduced, model)
    if nest is None:
        raise Refused("blocks do not nest, or have padding")
    return nest


def check_copied(*ways: Callable[[], object]) -> None:
    """Raise Refused where one of the ways, which raise it, takes tensors without copies."""
    for way in ways:
        try:
            way()
        except Refused:
            continue
        raise Refused("kernels take the formats as they are")


def row_in(nest: Nest) -> Loop:
    """What is reduced, if that is a dense row.  Raises Refused."""
    if not nest.is_row:
        raise Refused("elements along the axis do not lie side by side")
    return nest.row


def lanes_in(nest: Nest) -> Loop:
    """The dense loop beside what is reduced, if that is one loop and no dense row.  Raises Refused."""
    if nest.is_row:
        raise Refused("elements along the axis lie side by side")
    if len(nest.reduced) > 1:
        raise Refused("the axis is in blocks")
    lanes = next((loop for loop in nest.kept if is_dense(loop)), None)
    if lanes is None:
        raise Refused("no elements beside the axis lie side by side")
    return lanes


def nest_of(
    tensors: Sequence[MemoryDesc], dims: Sequence[int], reduced: Collection[int], model: int = 0
) -> Nest | None:
    """The loops over all of `dims`; None if some blocks do not nest, or a tensor has padding."""
    found: dict[bool, list[Loop]] = {True: [], False: []}
    for dim, size in enumerate(dims):
        if any(t.dims[dim] == size != t.padded_dims[dim] for t in tensors):
            return None
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
    above, _ = units_of(places)
    if above:
        return None
    (piece, *more) = pieces_of(size, size, places)
    return None if more else list(piece.loops)


def without_axis(desc: MemoryDesc, axis: int) -> MemoryDesc | None:
    """The tensor at the start of an axis, which has 1 element; None if the axis is in blocks."""
    if any(dim == axis for dim, _ in desc.inner_blocks):
        return None
    dims = tuple(1 if dim == axis else n for dim, n in enumerate(desc.dims))
    return MemoryDesc(
        dims, desc.dtype, strides=desc.strides, inner_blocks=desc.inner_blocks, offset0=desc.offset0
    )  # fmt: skip


def with_last(desc: MemoryDesc, dims: Sequence[int]) -> MemoryDesc:
    """A plain format for the tensor with these dims innermost, in their order, the others as they lie."""
    others = sorted(set(range(desc.ndims)) - set(dims), key=lambda dim: (-desc.strides[dim], dim))
    return MemoryDesc(desc.dims, desc.dtype, tag_of((*others, *dims), ()))


def without_last(desc: MemoryDesc) -> MemoryDesc | None:
    """A tensor with a last dim of 1 more; None if it is blocked."""
    if desc.inner_blocks:
        return None
    return MemoryDesc((*desc.dims, 1), desc.dtype, strides=(*desc.strides, 0), offset0=desc.offset0)


def as_row_of(desc: MemoryDesc, ndims: int, dim: int = -1) -> MemoryDesc | None:
    """A vector as a tensor of so many dims, along one of them; None if it is blocked."""
    if desc.inner_blocks:
        return None
    dims, strides = [1] * ndims, [0] * ndims
    dims[dim], strides[dim] = desc.dims[0], desc.strides[0]
    return MemoryDesc(dims, desc.dtype, strides=strides, offset0=desc.offset0)
