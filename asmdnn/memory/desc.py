"""MemoryDesc: how an n-dimensional tensor lies in linear memory."""

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, counted, not_one_of, shown
from asmdnn.memory.allocation import allocated
from asmdnn.memory.formats import desc_words
from asmdnn.memory.layout import (
    check_reach,
    checked_blocks,
    naturals,
    place_along,
    place_anywhere,
    place_by_strides,
    place_by_tag,
    steps_meet,
)
from asmdnn.memory.packed import check_packed
from asmdnn.memory.reshaping import reshaped
from asmdnn.memory.tags import MAX_NDIMS, alias_of, tag_of
from asmdnn.memory.views import inverse_permutation, submemory_offset
from asmdnn.notebook import html_of
from asmdnn.records import dataclass, field
from asmdnn.types import DATA_TYPES, DataType, FormatTag, u8


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class MemoryDesc:
    """The shape, element type and layout of a tensor; a hashable value.  Sizes and strides are in elements.

    MemoryDesc((1, 64, 56, 56), f32, "nChw16c")                 a tag, in names or letters ("aBcd16b"): see tags.py
    MemoryDesc((1, 64, 56, 56), f32, strides=(...))             plain strides, one per dim, >= 0
    MemoryDesc((1, 64, 56, 56), f32, strides=(...), inner_blocks=[(1, 16)])     blocks of 16 of dim 1, and the strides
                                                                between blocks: the general form, all else is short for
    MemoryDesc((1, 64, 56, 56), f32, "any")                     left to the primitive: no strides, no size

    With B[d] the product of the inner blocks of dim d, element i lies at

        offset(i) = offset0 + sum over d of (i[d] // B[d]) * strides[d] + (position within the inner blocks)

    where the inner blocks of all dims together are dense and the last one is innermost.  Blocked dims are padded up to
    whole blocks (`padded_dims`); the elements of the padding are zero in every valid memory.

    Two descs are equal when dims, dtype and inner blocks are the same and every element has the same place: the stride
    of a dim with a single block does not matter.
    Raises InvalidArguments.  Model: oneDNN's blocked memory descriptor.
    """

    dims: tuple[int, ...]
    dtype: DataType
    strides: tuple[int, ...]  # of the outer (block) index of each dim
    inner_blocks: tuple[tuple[int, int], ...]  # (dim, block size), outermost first
    padded_dims: tuple[int, ...]
    offset0: int
    is_any: bool
    holds_elements: ClassVar[bool] = True  # as they are, in `storage`
    _extent: int = field(repr=False)  # elements from the base to the end of the furthest one
    _key: tuple[object, ...] = field(repr=False)

    def __init__(
        self,
        dims: Sequence[int],
        dtype: DataType,
        tag: FormatTag | None = None,
        *,
        strides: Sequence[int] | None = None,
        inner_blocks: Sequence[Sequence[int]] = (),
        offset0: int = 0,
    ) -> None:
        dims = naturals("dims", dims)
        ndims = len(dims)
        if not 1 <= ndims <= MAX_NDIMS:
            raise InvalidArguments(f"dims {dims} has {counted(ndims, 'dim')}: a tensor has 1 to {MAX_NDIMS}")
        if not isinstance(dtype, DataType):
            raise InvalidArguments(not_one_of("dtype, such as asmdnn.f32,", dtype, DATA_TYPES))
        if (tag is None) == (strides is None):
            raise InvalidArguments(f"tag {shown(tag)} and strides {shown(strides)}: give exactly one of the two")
        if type(offset0) is not int or offset0:
            (offset0,) = naturals("offset0", (offset0,))
        if not isinstance(inner_blocks, tuple) or inner_blocks:
            inner_blocks = checked_blocks(inner_blocks, ndims)

        if tag is not None and not isinstance(tag, str):
            raise InvalidArguments(f"tag {shown(tag)} is not a string: use a tag such as 'nchw', 'aBcd8b' or 'any'")
        if strides is not None:
            place = place_by_strides(dims, strides, inner_blocks)
        elif inner_blocks:
            raise InvalidArguments(f"inner_blocks {shown(inner_blocks)} needs strides: or use a tag, such as 'aBcd8b'")
        elif tag == "any":
            place = place_anywhere(dims)
        else:
            place = place_by_tag(dims, tag or "")

        check_reach(dims, dtype, place, offset0)
        if dtype.in_a_byte > 1:
            check_packed(dims, dtype, place, offset0)
        put = object.__setattr__
        put(self, "dims", dims)
        put(self, "dtype", dtype)
        put(self, "strides", place.strides)
        put(self, "inner_blocks", place.inner_blocks)
        put(self, "padded_dims", place.padded_dims)
        put(self, "offset0", offset0)
        put(self, "is_any", tag == "any")
        put(self, "_extent", 0 if 0 in dims else offset0 + place.extent)
        put(self, "_key", (dims, dtype.name, place.live, place.inner_blocks, offset0, self.is_any))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, MemoryDesc):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        """For example "f32 1x64x56x56 nChw16c"; strides, then blocks, where no tag says it all."""
        return desc_words(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def ndims(self) -> int:
        return len(self.dims)

    @property
    def size_bytes(self) -> int:
        """Bytes from the base to the end of the furthest element, padding and offset0 included; 0 if a dim is 0."""
        self._require_layout("size")
        return -(-self._extent * self.dtype.size_bytes // self.dtype.in_a_byte)

    @property
    def offset0_bytes(self) -> int:
        return self.offset0 * self.dtype.size_bytes

    @property
    def strides_bytes(self) -> tuple[int, ...]:
        """From an index of each dim, of blocks if it is blocked, to the next one."""
        return tuple(stride * self.dtype.size_bytes for stride in self.strides)

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
    def inner_strides(self) -> tuple[int, ...]:
        """The stride within each of `inner_blocks`: (64, 4, 1) for "OIhw4i16o4i"; `strides` is between blocks."""
        strides, reach = list[int](), 1
        for _, size in reversed(self.inner_blocks):
            strides.insert(0, reach)
            reach *= size
        return tuple(strides)

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

        Judged by whether each stride passes over all that inner blocks and smaller strides reach, as in every practical
        layout; telling exactly is a knapsack problem.
        """
        if self.is_any or 0 in self.dims:
            return False
        counts = (n // block for n, block in zip(self.padded_dims, self.blocks, strict=True))
        return steps_meet(prod(size for _, size in self.inner_blocks), zip(self.strides, counts, strict=True))

    @property
    def storage(self) -> "MemoryDesc":
        """These very elements, but where a format transforms them (winograd.py) or has more beside them (summed.py);
        or the bytes of those that share them."""
        return self if self.dtype.in_a_byte == 1 else MemoryDesc((-(-self._extent // 2),), u8, "a")

    def complete(self, array: NDArray[Any], storage: NDArray[Any]) -> None:
        """Write what a format holds beside the elements `array`, shaped dims."""

    def _stored(self, array: NDArray[Any]) -> NDArray[Any]:
        """What `storage` holds of a tensor: `array` itself, unless the format transforms it."""
        return array

    def nelems(self, with_padding: bool = False) -> int:
        if not isinstance(with_padding, bool):
            raise InvalidArguments(f"with_padding must be True or False, not {shown(with_padding)}")
        return prod(self.padded_dims if with_padding else self.dims)

    def offset(self, index: Sequence[int]) -> int:
        """Elements from the base to the element at `index`, which may lie in the padding."""
        self._require_layout("offset")
        index = naturals("index", index)
        if len(index) != self.ndims or any(i >= n for i, n in zip(index, self.padded_dims, strict=True)):
            raise InvalidArguments(f"index {index} is outside the padded dims {self.padded_dims}")
        blocks, steps = self.inner_blocks, self.strides
        return self.offset0 + sum(place_along(dim, i, blocks, steps[dim]) for dim, i in enumerate(index))

    def offsets(self, with_padding: bool = False) -> NDArray[np.int64]:
        """`offset` of every element: int64 shaped `dims`, or `padded_dims` with the padding."""
        self._require_layout("offset")
        self.nelems(with_padding)  # refuses what is no bool
        tables = [self.dim_offsets(dim)[:n] for dim, n in enumerate(self.padded_dims if with_padding else self.dims)]
        tables[0] += self.offset0
        return allocated(reduce, np.add.outer, tables)

    def dim_offsets(self, dim: int) -> NDArray[np.int64]:
        """int64[padded_dims[dim]], what each index of a dim adds: offset(i) = offset0 + sum of dim_offsets(d)[i[d]]."""
        self._require_layout("offset")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or not 0 <= dim < self.ndims:
            raise InvalidArguments(f"dim must be a dim of {self}, from 0 to {self.ndims - 1}, not {shown(dim)}")
        blocks, stride, size = self.inner_blocks, self.strides[dim], self.padded_dims[dim]
        return allocated(lambda: place_along(dim, np.arange(size, dtype=np.int64), blocks, stride))

    def submemory(self, dims: Sequence[int], offsets: Sequence[int]) -> "MemoryDesc":
        """The `dims` elements from index `offsets` on, in the storage of this desc.

        A blocked dim is cut at blocks only: its offset is a multiple of the block, and its size too unless the view
        goes to the end of the dim, whose padding it then shares.  Raises InvalidArguments.  Use it as
        Memory(desc.submemory(dims, offsets), memory.array, padding_is_zero=True).
        """
        self._require_layout("sub-memory")
        dims = naturals("dims", dims)
        offset0 = submemory_offset(self, dims, naturals("offsets", offsets))
        return MemoryDesc(dims, self.dtype, strides=self.strides, inner_blocks=self.inner_blocks, offset0=offset0)

    def permute_axes(self, permutation: Sequence[int]) -> "MemoryDesc":
        """The same storage with axis i named permutation[i], as in oneDNN: new.dims[permutation[i]] = dims[i].

        numpy.transpose takes the inverse of this permutation.  Raises InvalidArguments.
        """
        origin = inverse_permutation(permutation, self.ndims)
        dims = [self.dims[axis] for axis in origin]
        if self.is_any:
            return MemoryDesc(dims, self.dtype, "any", offset0=self.offset0)
        strides = [self.strides[axis] for axis in origin]
        inner_blocks = [(permutation[dim], size) for dim, size in self.inner_blocks]
        return MemoryDesc(dims, self.dtype, strides=strides, inner_blocks=inner_blocks, offset0=self.offset0)

    def reshape(self, dims: Sequence[int]) -> "MemoryDesc":
        """The same elements, in the same row-major order of their indices, as a tensor of other dims; no copy.

        Dims of 1 come and go; dims split and merge where strides and blocks allow it; a padded dim must stay as it is.
        Raises InvalidArguments, naming the reorder to use, where only a copy can do it.
        """
        dims = naturals("dims", dims)
        if dims == self.dims:
            return self
        if not 1 <= len(dims) <= MAX_NDIMS:
            raise InvalidArguments(f"dims {shown(dims)} has {counted(len(dims), 'dim')}: a tensor has 1 to {MAX_NDIMS}")
        if self.is_any and prod(dims) == self.nelems():
            return MemoryDesc(dims, self.dtype, "any", offset0=self.offset0)
        self._require_layout("other dims of as many elements")
        strides, inner_blocks = reshaped(self, dims)
        return MemoryDesc(dims, self.dtype, strides=strides, inner_blocks=inner_blocks, offset0=self.offset0)

    def widened(self, new: int) -> "MemoryDesc":
        """The same storage with so many dims of size 1 in front.  Raises InvalidArguments."""
        self._require_layout("dims in front")
        new = min(*naturals("new", (new,)), MAX_NDIMS)  # more are refused all the same
        blocks = [(dim + new, size) for dim, size in self.inner_blocks]
        dims, strides = (1,) * new + self.dims, (0,) * new + self.strides
        return MemoryDesc(dims, self.dtype, strides=strides, inner_blocks=blocks, offset0=self.offset0)

    def _require_layout(self, what: str) -> None:
        if self.is_any:
            raise InvalidArguments(f"desc {self} has no {what}: take the desc that a primitive descriptor chose for it")
