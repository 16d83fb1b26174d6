"""Other descriptors of the same storage: sub-memory, permuted axes; nothing is ever copied.

A dim is a mixed-radix number: its block index, then its inner blocks, outermost first.  Each digit is a *level*: a size
and a stride.  Views cut, drop, merge and regroup levels.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from asmdnn.errors import InvalidArguments
from asmdnn.memory.layout import Blocks, naturals
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


class Level(NamedTuple):
    """One digit of an index; `inner` if it is an inner block."""

    size: int
    stride: int
    inner: bool


def levels_of(desc: Described) -> list[list[Level]]:
    """The levels of each dim, outermost first; the first one counts blocks."""
    levels = [
        [Level(padded // block, stride, False)]
        for padded, block, stride in zip(desc.padded_dims, desc.blocks, desc.strides, strict=True)
    ]
    for (dim, size), stride in zip(desc.inner_blocks, desc.inner_strides, strict=True):
        levels[dim].append(Level(size, stride, True))
    return levels


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


def merged_levels(levels: list[Level]) -> list[Level]:
    """The same digits with neighbours that count on from each other made one, and without those of a single value."""
    merged: list[Level] = []
    for level in levels:
        if level.size == 1:
            continue
        if merged and merged[-1].stride == level.size * level.stride and merged[-1].inner == level.inner:
            level = Level(merged.pop().size * level.size, level.stride, level.inner)
        merged.append(level)
    return merged


def plain_strides(desc: Described) -> tuple[int, ...] | None:
    """One stride per dim that says where every element lies; None if blocks or padding forbid it."""
    if not desc.inner_blocks:
        return desc.strides
    if desc.has_padding:
        return None
    strides = []
    for first, *inner in levels_of(desc):
        levels = merged_levels([Level(level.size, level.stride, False) for level in (first, *inner)])
        if len(levels) > 1:
            return None
        strides.append(levels[0].stride if levels else inner[-1].stride if inner else first.stride)
    return tuple(strides)
