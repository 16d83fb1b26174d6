"""Strides, padding and extent of a tensor from the words of its constructor; sizes and strides are in elements."""

from collections.abc import Iterable, Sequence
from math import prod
from operator import index as as_index
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory.sequences import items
from asmdnn.memory.tags import MAX_INNER_BLOCKS, parse_tag
from asmdnn.memory.traced import is_integer
from asmdnn.types import DataType

MAX_NATURAL = 2**63 - 1
MAX_BYTES = 1 << 46  # a tensor beyond half of the address space is a mistake, and offsets below it cannot overflow
Blocks = tuple[tuple[int, int], ...]  # (dim, block size), outermost first

Index = TypeVar("Index", int, NDArray[np.int64])


class Placement(NamedTuple):
    """Where the elements of a tensor lie, counted from offset0."""

    strides: tuple[int, ...]  # of the outer (block) index of each dim
    live: tuple[int, ...]  # the same, with 0 for a dim of a single block, whose stride does not matter
    inner_blocks: Blocks
    padded_dims: tuple[int, ...]
    extent: int  # up to the end of the furthest element; a dim of 0 counts as one block


def place_by_tag(dims: tuple[int, ...], tag: str) -> Placement:
    """The dense layout that a tag spells.  Raises InvalidArguments."""
    layout = parse_tag(tag, len(dims))
    strides, live, padded = [0] * len(dims), [0] * len(dims), list(dims)
    extent = layout.block_nelems
    for dim in reversed(layout.order):
        block = layout.blocks[dim]
        count = -(-dims[dim] // block)
        padded[dim] = count * block
        strides[dim] = extent
        if count > 1:
            live[dim] = extent
            extent *= count
    return Placement(tuple(strides), tuple(live), layout.inner_blocks, tuple(padded), extent)


def place_by_strides(dims: tuple[int, ...], strides: Sequence[int], blocks: Blocks) -> Placement:
    """The layout with these strides between blocks, or between elements of dims without blocks."""
    strides = naturals("strides", strides)
    if len(strides) != len(dims):
        raise InvalidArguments(f"strides {strides} has {counted(len(strides), 'entry')}: dims {dims} needs {len(dims)}")
    if not blocks:  # by far the most frequent, so it has a short way
        live = (
            strides
            if 0 not in dims and 1 not in dims
            else tuple(s if n > 1 else 0 for n, s in zip(dims, strides, strict=True))
        )
        return Placement(strides, live, (), dims, 1 + sum((n - 1) * s for n, s in zip(dims, live, strict=True) if n))
    sizes = [1] * len(dims)
    for dim, size in blocks:
        sizes[dim] *= size
    counts = [-(-n // size) for n, size in zip(dims, sizes, strict=True)]
    padded = tuple(count * size for count, size in zip(counts, sizes, strict=True))
    live = tuple(stride if count > 1 else 0 for count, stride in zip(counts, strides, strict=True))
    extent = prod(sizes) + sum((count - 1) * stride for count, stride in zip(counts, live, strict=True) if stride)
    return Placement(strides, live, blocks, padded, extent)


def place_anywhere(dims: tuple[int, ...]) -> Placement:
    """`any`: no strides yet; the extent is that of a dense tensor."""
    return Placement((), (), (), dims, prod(n or 1 for n in dims))


def check_reach(dims: tuple[int, ...], dtype: DataType, place: Placement, offset0: int) -> None:
    """Raise InvalidArguments for a tensor that is too large."""
    most = MAX_BYTES // dtype.size_bytes - offset0
    if place.extent > most or any(stride > most for stride in place.strides):
        reach_bytes = (max(place.extent, max(place.strides, default=0)) + offset0) * dtype.size_bytes
        raise InvalidArguments(f"dims {dims} of {dtype} reach {reach_bytes} bytes: the largest tensor has 2**46")


def naturals(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """`values` as a tuple of Python ints >= 0; numpy's integers are welcome, bools are not."""
    try:
        given = items(values)
    except Exception:  # whatever the caller's object does when it is iterated over
        raise InvalidArguments(f"{name} {shown(values)} must be a sequence of integers") from None
    for value in given:
        if not is_integer(value):
            return naturals(name, tuple(_integer(name, given, value) for value in given))
        if value < 0:
            raise InvalidArguments(f"{name} {shown(given)} has {shown(value)}: must be 0 or more")
        if value > MAX_NATURAL:
            raise InvalidArguments(f"{name} {shown(given)} has {shown(value)}: the largest tensor has 2**46 bytes")
    return given


def _integer(name: str, given: tuple[object, ...], value: object) -> int:
    if is_integer(value):
        return value  # type: ignore[return-value]
    if not isinstance(value, (bool, np.bool_)):
        try:
            return int(as_index(value))  # type: ignore[arg-type]
        except Exception:  # whatever the caller's object does
            pass
    raise InvalidArguments(f"{name} {shown(given)} has {shown(value)}: must be integers")


def checked_blocks(given: Sequence[Sequence[int]], ndims: int) -> Blocks:
    """`given` as pairs of Python ints: dims of the tensor and positive sizes.  Raises InvalidArguments."""
    try:
        pairs = [naturals("inner_blocks", pair) for pair in items(given)]
    except InvalidArguments:
        raise
    except Exception:
        raise InvalidArguments(f"inner_blocks {shown(given)} must be pairs of dim and size: such as [(1, 8)]") from None
    if len(pairs) > MAX_INNER_BLOCKS:
        raise InvalidArguments(f"inner_blocks has {counted(len(pairs), 'entry')}: use at most {MAX_INNER_BLOCKS}")
    blocks = []
    for pair in pairs:
        if len(pair) != 2:
            raise InvalidArguments(f"inner_blocks has {pair}: each is a pair of a dim and a size, such as (1, 8)")
        dim, size = pair
        if dim >= ndims:
            raise InvalidArguments(
                f"inner_blocks has {pair}, a block of dim {dim}: the tensor has dims 0 to {ndims - 1}"
            )
        if size == 0:
            raise InvalidArguments(f"inner_blocks has {pair}, a block of size 0: sizes must be positive")
        blocks.append((dim, size))
    return tuple(blocks)


def steps_meet(block: int, steps: Iterable[tuple[int, int]]) -> bool:
    """Whether one of the (stride, count) does not pass over a block of so many elements and all smaller strides."""
    reached = block - 1
    for stride, count in sorted(pair for pair in steps if pair[1] > 1):
        if stride <= reached:
            return True
        reached += (count - 1) * stride
    return False


def place_along(dim: int, index: Index, inner_blocks: Sequence[tuple[int, int]], stride: int) -> Index:
    """What an index of one dim adds to the offset of an element."""
    within, inner_stride = index * 0, 1
    for blocked, size in reversed(inner_blocks):
        if blocked == dim:
            within = within + index % size * inner_stride
            index = index // size
        inner_stride *= size
    return within + index * stride
