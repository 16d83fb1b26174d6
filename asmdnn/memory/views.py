"""Other descriptors of the same storage: sub-memory, permuted axes, other dims; nothing is ever copied.

A dim is a mixed-radix number: its block index, then its inner blocks, outermost first.  Each digit is a *level*: a size
and a stride.  Views cut, drop, merge and regroup levels.
"""

from collections.abc import Sequence
from typing import Protocol

from asmdnn.errors import InvalidArguments
from asmdnn.memory.layout import Blocks, naturals
from asmdnn.memory.reshaping import Level, _merged, levels_of
from asmdnn.types import DataType


class Described(Protocol):
    """What is read here of a MemoryDesc."""

    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def ndims(self) -> int: ...
    @property
    def dtype(self) -> DataType: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def inner_blocks(self) -> Blocks: ...
    @property
    def blocks(self) -> tuple[int, ...]: ...
    @property
    def offset0(self) -> int: ...
    @property
    def padded_dims(self) -> tuple[int, ...]: ...
    @property
    def has_padding(self) -> bool: ...
    @property
    def inner_strides(self) -> tuple[int, ...]: ...
    def nelems(self) -> int: ...


def submemory_offset(desc: Described, dims: tuple[int, ...], offsets: tuple[int, ...]) -> int:
    """The offset0 of the view of `dims` elements from index `offsets` on.  Raises InvalidArguments."""
    if len(dims) != desc.ndims or len(offsets) != desc.ndims:
        raise InvalidArguments(f"submemory of {desc} needs {desc.ndims} dims and offsets: not {dims} and {offsets}")
    offset0 = desc.offset0
    for dim, (n, start, whole, block) in enumerate(zip(dims, offsets, desc.dims, desc.blocks, strict=True)):
        if start + n > whole:
            raise InvalidArguments(f"submemory takes {start} to {start + n} of dim {dim}, which has {whole} elements")
        if start % block:
            raise InvalidArguments(
                f"offsets has {start} for dim {dim}, which is in blocks of {block}: start at a multiple of {block}, "
                f"or reorder to a format without blocks in dim {dim}"
            )
        if n % block and start + n != whole:
            raise InvalidArguments(
                f"dims has {n} for dim {dim}, which is in blocks of {block}: end at a multiple of {block} or at the "
                f"dim's end, {whole}, or reorder to a format without blocks in dim {dim}"
            )
        offset0 += start // block * desc.strides[dim]
    return offset0


def inverse_permutation(permutation: Sequence[int], ndims: int) -> list[int]:
    """Which axis each new axis comes from.  Raises InvalidArguments."""
    permutation = naturals("permutation", permutation)
    if sorted(permutation) != list(range(ndims)):
        raise InvalidArguments(f"permutation {permutation} must name each axis from 0 to {ndims - 1} once")
    return sorted(range(ndims), key=permutation.__getitem__)


def plain_strides(desc: Described) -> tuple[int, ...] | None:
    """One stride per dim that says where every element lies; None if blocks or padding forbid it."""
    if not desc.inner_blocks:
        return desc.strides
    if desc.has_padding:
        return None
    strides = []
    for first, *inner in levels_of(desc):
        levels = _merged([Level(level.size, level.stride, False) for level in (first, *inner)])
        if len(levels) > 1:
            return None
        strides.append(levels[0].stride if levels else inner[-1].stride if inner else first.stride)
    return tuple(strides)
