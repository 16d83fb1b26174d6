"""The format of weights of f32 that are sums of two bf16: what three products of bf16 read in place of one of f32."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.transformed import GROUPS, TransformedDesc
from asmdnn.records import dataclass

PARTS: Final = 3
HIGH, LOW = (0, 1), 2  # which parts of the depth are which


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class SplitDesc(TransformedDesc):
    """Weights w as sums of two bf16, high = bf16(w) and low = bf16(w - high): high, high and low parts one after
    another along the dim `depth`, over which a product sums.

    `storage` is what lies in memory: bf16 with three times as many elements in that dim, in any format.  A reorder
    makes it of any format of floats, none brings it back; elements are not viewed or copied.  dtype is that of the
    parts, so arrays that fill one have bf16, and low parts of zero.  Raises InvalidArguments.
    """

    depth: int

    def __init__(self, storage: MemoryDesc, depth: int) -> None:
        has_depth = type(depth) is int and type(storage) is MemoryDesc and 0 <= depth < storage.ndims
        if not has_depth or storage.is_any or GROUPS.get(storage.dtype, 1) == 1 or storage.dims[depth] % PARTS:
            raise InvalidArguments(
                f"weights {shown(storage)} have no {PARTS} parts along dim {shown(depth)}: bf16 have, in any format, "
                f"where that dim is a multiple of {PARTS}"
            )
        size = storage.dims[depth] // PARTS
        padding = storage.padded_dims[depth] - storage.dims[depth]
        put = object.__setattr__
        for name in ("dtype", "strides", "inner_blocks", "offset0", "is_any", "_extent"):
            put(self, name, getattr(storage, name))
        put(self, "dims", with_size(storage.dims, depth, size))
        put(self, "padded_dims", with_size(storage.padded_dims, depth, size + padding))
        put(self, "depth", depth)
        put(self, "_storage", storage)
        put(self, "_key", ("split", depth, *storage._key))

    why: ClassVar[str] = "its elements are sums of two"

    @property
    def form(self) -> str:
        return "split"

    @property
    def may_overlap(self) -> bool:
        return self.storage.may_overlap

    def permute_axes(self, permutation: Sequence[int]) -> "SplitDesc":
        storage = self.storage.permute_axes(permutation)
        return SplitDesc(storage, permutation[self.depth])

    def widened(self, new: int) -> "SplitDesc":
        """With so many dims of size 1 in front."""
        return SplitDesc(self.storage.widened(new), self.depth + new)

    def _stored(self, array: NDArray[Any]) -> NDArray[Any]:
        """Of elements that are bf16, which leave nothing to low parts."""
        return np.concatenate((array, array, np.zeros_like(array)), self.depth)


def with_size(dims: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*dims[:dim], size, *dims[dim + 1 :])
