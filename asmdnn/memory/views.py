"""Other descriptors of the same storage: sub-memory, permuted axes, other dims; nothing is ever copied.

A dim is a mixed-radix number: its block index, then its inner blocks, outermost first.  Each digit is a *level*: a size
and a stride.  Views cut, drop, merge and regroup levels.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, Protocol

from asmdnn.errors import InvalidArguments
from asmdnn.memory.layout import Blocks, naturals
from asmdnn.memory.tags import LETTERS
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


def levels_of(desc: Described) -> list[list[Level]]:
    """The levels of each dim, outermost first; the first one counts blocks."""
    levels = [
        [Level(padded // block, stride, False)]
        for padded, block, stride in zip(desc.padded_dims, desc.blocks, desc.strides, strict=True)
    ]
    for (dim, size), stride in zip(desc.inner_blocks, desc.inner_strides, strict=True):
        levels[dim].append(Level(size, stride, True))
    return levels


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


def reshaped(desc: Described, dims: tuple[int, ...]) -> tuple[tuple[int, ...], Blocks]:
    """Strides and inner blocks that give `dims` the same elements in the same (row-major) order at the same places.

    Raises InvalidArguments if there are none.
    """
    if prod(dims) != desc.nelems():
        raise InvalidArguments(
            f"dims {dims} has {prod(dims)} elements, but {desc} has {desc.nelems()}: make them equal"
        )
    if 0 in dims:
        return tuple(prod(n or 1 for n in dims[dim + 1 :]) for dim in range(len(dims))), ()
    levels = levels_of(desc)
    regrouped = _regrouped(desc, levels, dims)
    if regrouped is None and desc.inner_blocks and (strides := plain_strides(desc)) is not None:
        levels = [[Level(n, stride, False)] for n, stride in zip(desc.dims, strides, strict=True)]
        regrouped = _regrouped(desc, levels, dims)
    if regrouped is None:
        raise InvalidArguments(
            f"dims {dims} cannot be a view of {desc}: reorder to the plain format first, "
            f"asmdnn.reorder(memory, MemoryDesc({desc.dims}, {desc.dtype}, '{LETTERS[: desc.ndims]}'))"
        )
    unit = prod(level.size for dim in levels for level in dim if level.inner)
    return _fill_in(regrouped, dims, unit)


def _regrouped(desc: Described, levels: list[list[Level]], dims: tuple[int, ...]) -> list[list[Level]] | None:
    """The levels of each of the new dims; None if they cannot be had.

    Old and new dims are paired into the smallest groups of equally many elements.  A padded dim has no other digits
    than its own, so it must be a group by itself on both sides.
    """
    padded = [n != most for n, most in zip(desc.dims, desc.padded_dims, strict=True)]
    old = [dim for dim in range(desc.ndims) if padded[dim] or desc.dims[dim] > 1]
    result: list[list[Level]] = [[] for _ in dims]
    new = 0
    while old or new < len(dims):
        if old and padded[old[0]] and new < len(dims) and dims[new] == desc.dims[old[0]]:
            result[new] = levels[old.pop(0)]
            new += 1
            continue
        if new < len(dims) and dims[new] == 1:
            new += 1  # a new axis of one element: its stride has no say
            continue
        first, have, want, digits = new, 1, 1, list[Level]()
        while have != want or want == 1:
            if have <= want:
                if not old or padded[old[0]]:
                    return None
                have *= desc.dims[old[0]]
                digits += levels[old.pop(0)]
            else:
                want *= dims[new]
                new += 1
        taken = _dealt(_merged(digits), dims[first:new])
        if taken is None:
            return None
        result[first:new] = taken
    return result


def _merged(levels: list[Level]) -> list[Level]:
    """The same digits with neighbours that count on from each other made one, and without those of a single value."""
    merged: list[Level] = []
    for level in levels:
        if level.size == 1:
            continue
        if merged and merged[-1].stride == level.size * level.stride and merged[-1].inner == level.inner:
            level = Level(merged.pop().size * level.size, level.stride, level.inner)
        merged.append(level)
    return merged


def _dealt(levels: list[Level], dims: tuple[int, ...]) -> list[list[Level]] | None:
    """The digits dealt out to `dims`, whose product is theirs, from the innermost on; levels are cut where needed."""
    result: list[list[Level]] = []
    for n in reversed(dims):
        taken: list[Level] = []
        while n > 1:
            size, stride, inner = levels.pop()
            if size % n and n % size:
                return None
            use = min(n, size)
            if size > use:
                levels.append(Level(size // use, stride * use, inner))
            taken.insert(0, Level(use, stride, inner))
            n //= use
        blocks = taken[1:] if taken and not taken[0].inner else taken
        # A desc counts blocks with one stride, and then goes through the inner blocks in the order of the storage.
        if not all(level.inner for level in blocks) or blocks != sorted(blocks, key=lambda level: -level.stride):
            return None
        result.insert(0, taken)
    return result


def _fill_in(levels: list[list[Level]], dims: tuple[int, ...], unit: int) -> tuple[tuple[int, ...], Blocks]:
    """Strides, for a single block the one it would have in a dense tensor, and inner blocks in the order of storage."""
    strides, dense = [0] * len(dims), unit
    for dim in reversed(range(len(dims))):
        outer = [level for level in levels[dim] if not level.inner]
        strides[dim] = outer[0].stride if outer and outer[0].size > 1 else dense
        dense = strides[dim] * (outer[0].size if outer else 1)
    inner = [(level, dim) for dim, of_dim in enumerate(levels) for level in of_dim if level.inner]
    inner.sort(key=lambda pair: -pair[0].stride)
    return tuple(strides), tuple((dim, level.size) for level, dim in inner)
