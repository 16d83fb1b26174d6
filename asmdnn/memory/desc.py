"""MemoryDesc: how an n-dimensional tensor lies in linear memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from operator import index as as_index
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments
from asmdnn.memory.tags import MAX_NDIMS, alias_of, parse_tag, tag_of
from asmdnn.types import DataType

MAX_BYTES = 1 << 46  # a tensor beyond half of the address space is a mistake, and offsets below it cannot overflow

Index = TypeVar("Index", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class MemoryDesc:
    """The shape, element type and layout of a tensor; a hashable value.  Sizes and strides are in elements.

    MemoryDesc((1, 64, 56, 56), f32, "nChw16c")                 a tag, in names or letters ("aBcd16b"): see tags.py
    MemoryDesc((1, 64, 56, 56), f32, strides=(...))             plain strides, one per dim, >= 0
    MemoryDesc((1, 64, 56, 56), f32, "any")                     left to the primitive: no strides, no size

    With B[d] the product of the inner blocks of dim d, element i lies at

        offset(i) = offset0 + sum over d of (i[d] // B[d]) * strides[d] + (position within the inner blocks)

    where the inner blocks of all dims together are dense and the last one is innermost.  Blocked dims are padded up to
    whole blocks (`padded_dims`); the elements of the padding are zero in every valid memory.

    Two descs are equal when every element has the same place: the stride of a dim with a single block has no say.
    Raises InvalidArguments.  Model: oneDNN's blocked memory descriptor.
    """

    dims: tuple[int, ...]
    dtype: DataType
    strides: tuple[int, ...]  # of the outer (block) index of each dim
    inner_blocks: tuple[tuple[int, int], ...]  # (dim, block size), outermost first
    padded_dims: tuple[int, ...]
    offset0: int
    is_any: bool
    _extent: int = field(repr=False)  # elements from the base to the end of the furthest one
    _key: tuple[object, ...] = field(repr=False)

    def __init__(
        self,
        dims: Sequence[int],
        dtype: DataType,
        tag: str | None = None,
        *,
        strides: Sequence[int] | None = None,
        offset0: int = 0,
    ) -> None:
        dims = _naturals("dims", dims)
        ndims = len(dims)
        if not 1 <= ndims <= MAX_NDIMS:
            raise InvalidArguments(f"dims {dims} has {ndims} dims: a tensor has 1 to {MAX_NDIMS}")
        if not isinstance(dtype, DataType):
            raise InvalidArguments(f"dtype {dtype!r} is not a DataType: use one of asmdnn.types, such as f32")
        if (tag is None) == (strides is None):
            raise InvalidArguments(f"tag {tag!r} and strides {strides!r}: give exactly one of the two")
        if offset0:
            (offset0,) = _naturals("offset0", (offset0,))

        padded = dims
        inner_blocks: tuple[tuple[int, int], ...] = ()
        if strides is not None:
            strides = live = _naturals("strides", strides)
            if len(strides) != ndims:
                raise InvalidArguments(f"strides {strides} has {len(strides)} entries: dims {dims} needs {ndims}")
            extent = 1 + sum((n - 1) * stride for n, stride in zip(dims, strides, strict=True) if n > 1)
            if min(dims) <= 1:
                live = tuple(stride if n > 1 else 0 for n, stride in zip(dims, strides, strict=True))
        elif tag == "any":
            strides = live = ()
            extent = prod(n or 1 for n in dims)
        else:
            if not isinstance(tag, str):
                raise InvalidArguments(f"tag {tag!r} is not a string: use a tag such as 'nchw', 'aBcd8b' or 'any'")
            layout = parse_tag(tag, ndims)
            inner_blocks = layout.inner_blocks
            strides, live, padded, extent = _lay_out(dims, layout.order, layout.blocks, layout.block_nelems)

        reach = max(extent, max(strides, default=0)) + offset0
        if reach * dtype.size_bytes > MAX_BYTES:
            raise InvalidArguments(
                f"dims {dims} of {dtype} reach {reach * dtype.size_bytes} bytes: the largest tensor has 2**46"
            )
        is_any = tag == "any"
        put = object.__setattr__
        put(self, "dims", dims)
        put(self, "dtype", dtype)
        put(self, "strides", strides)
        put(self, "inner_blocks", inner_blocks)
        put(self, "padded_dims", padded)
        put(self, "offset0", offset0)
        put(self, "is_any", is_any)
        put(self, "_extent", 0 if 0 in dims else offset0 + extent)
        put(self, "_key", (dims, dtype.name, live, inner_blocks, offset0, is_any))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, MemoryDesc):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        """For example "f32 1x64x56x56 nChw16c"; strides where no tag says it all."""
        tag = self.tag
        layout = "strides " + "x".join(map(str, self.strides)) if tag is None else self.alias or tag
        offset = f" offset {self.offset0}" if self.offset0 else ""
        return f"{self.dtype} {'x'.join(map(str, self.dims))} {layout}{offset}"

    @property
    def ndims(self) -> int:
        return len(self.dims)

    @property
    def size_bytes(self) -> int:
        """Bytes from the base to the end of the furthest element, padding and offset0 included; 0 if a dim is 0."""
        self._require_layout("size")
        return self._extent * self.dtype.size_bytes

    @property
    def has_padding(self) -> bool:
        return self.padded_dims != self.dims

    @property
    def blocks(self) -> tuple[int, ...]:
        """The product of the inner blocks of each dim: 1 for a dim that is not blocked."""
        blocks = [1] * len(self.dims)
        for dim, size in self.inner_blocks:
            blocks[dim] *= size
        return tuple(blocks)

    @property
    def tag(self) -> str | None:
        """The letters that spell this layout, "any", or None when strides leave gaps or overlap."""
        if self.is_any:
            return "any"
        # Of equal strides, the dim with several blocks is the outer one: a tag gives single ones its stride times 1.
        single = [n <= block for n, block in zip(self.padded_dims, self.blocks, strict=True)]
        order = sorted(range(self.ndims), key=lambda dim: (-self.strides[dim], single[dim], dim))
        tag = tag_of(tuple(order), self.inner_blocks)
        return tag if MemoryDesc(self.dims, self.dtype, tag, offset0=self.offset0) == self else None

    @property
    def alias(self) -> str | None:
        """The usual name of `tag`, such as "nChw16c" or "hwio"; None if there is none."""
        tag = self.tag
        return None if tag is None or tag == "any" else alias_of(tag)

    @property
    def is_dense(self) -> bool:
        """Whether the storage is the elements alone: no padding, no gaps, no overlap."""
        return not self.is_any and self._extent == self.nelems() and not self.may_overlap

    @property
    def may_overlap(self) -> bool:
        """Whether two elements may share a place, which a destination must not allow (only strides can do this).

        Judged by whether each stride passes over everything that the smaller strides reach, as every practical layout
        does; telling exactly is a knapsack problem.
        """
        if self.inner_blocks or self.is_any or 0 in self.dims:
            return False
        reached = 0
        for stride, n in sorted(pair for pair in zip(self.strides, self.dims, strict=True) if pair[1] > 1):
            if stride <= reached:
                return True
            reached += (n - 1) * stride
        return False

    def nelems(self, with_padding: bool = False) -> int:
        return prod(self.padded_dims if with_padding else self.dims)

    def offset(self, index: Sequence[int]) -> int:
        """Elements from the base to the element at `index`, which may lie in the padding."""
        self._require_layout("offset")
        index = _naturals("index", index)
        if len(index) != self.ndims or any(i >= n for i, n in zip(index, self.padded_dims, strict=True)):
            raise InvalidArguments(f"index {index} is outside the padded dims {self.padded_dims}")
        return self.offset0 + sum(self._along(dim, i) for dim, i in enumerate(index))

    def offsets(self, with_padding: bool = False) -> NDArray[np.int64]:
        """`offset` of every element: int64 shaped `dims`, or `padded_dims` with the padding."""
        self._require_layout("offset")
        shape = self.padded_dims if with_padding else self.dims
        tables = [self.dim_offsets(dim)[:n] for dim, n in enumerate(shape)]
        tables[0] += self.offset0
        return reduce(np.add.outer, tables)

    def dim_offsets(self, dim: int) -> NDArray[np.int64]:
        """The part of the offset that each index of one dim adds: offset(i) = offset0 + sum of dim_offsets(d)[i[d]].

        int64[padded_dims[dim]]: what schedules broadcast.
        """
        self._require_layout("offset")
        return self._along(dim, np.arange(self.padded_dims[dim], dtype=np.int64))

    def _along(self, dim: int, index: Index) -> Index:
        within, inner_stride = index * 0, 1
        for blocked, size in reversed(self.inner_blocks):
            if blocked == dim:
                within = within + index % size * inner_stride
                index = index // size
            inner_stride *= size
        return within + index * self.strides[dim]

    def _require_layout(self, what: str) -> None:
        if self.is_any:
            raise InvalidArguments(f"desc {self} has no {what}: take the desc that a primitive descriptor chose for it")


def _lay_out(
    dims: tuple[int, ...], order: tuple[int, ...], blocks: tuple[int, ...], block_nelems: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
    """Strides, strides that matter (0 for a single block), padded dims and extent of a dense layout."""
    strides, live, padded = [0] * len(dims), [0] * len(dims), list(dims)
    extent = block_nelems
    for dim in reversed(order):
        block = blocks[dim]
        count = -(-dims[dim] // block)
        padded[dim] = count * block
        strides[dim] = extent
        if count > 1:
            live[dim] = extent
            extent *= count
    return tuple(strides), tuple(live), tuple(padded), extent


def _naturals(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """`values` as a tuple of Python ints >= 0; numpy's integers are welcome, bools are not."""
    try:
        given = tuple(values)
    except TypeError:
        raise InvalidArguments(f"{name} {values!r} must be a sequence of integers") from None
    for value in given:
        if type(value) is not int:
            return _naturals(name, tuple(_integer(name, given, value) for value in given))
        if value < 0:
            raise InvalidArguments(f"{name} {given} has {value}: must be 0 or more")
    return given


def _integer(name: str, given: tuple[object, ...], value: object) -> int:
    if not isinstance(value, (bool, np.bool_)):
        try:
            return int(as_index(value))  # type: ignore[arg-type]
        except TypeError:
            pass
    raise InvalidArguments(f"{name} {given!r} has {value!r}: must be integers")
