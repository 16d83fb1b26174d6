"""The format of weights of bytes with the sums of their columns after them: what sums of shifted src start from."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.allocation import within_memory
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.storage import ALIGNMENT_BYTES
from asmdnn.memory.tags import LETTERS
from asmdnn.records import dataclass
from asmdnn.types import s8, s32

SHIFT: Final = 128  # from s8 to u8


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class SummedDesc(MemoryDesc):
    """Weights of s8 as `storage` says, and after them, from the next line of 64 bytes on, two vectors s32 over the
    dims of a mask, dense and row-major: -128 times the sums over all other dims, then -1 times, modulo 2^32.

    mask: without one, all dims of matrices (.., k, n) but k.  What products need of sums does not depend on src: a
    shift of 128 from s8 to u8, or a zero point.  A reorder makes it of any format, and brings its elements back.
    Raises InvalidArguments.
    """

    mask: int
    sums: MemoryDesc  # of one of the vectors
    begins: tuple[int, int]  # in bytes
    _storage: MemoryDesc

    def __init__(self, storage: MemoryDesc, mask: int | None = None) -> None:
        if storage.is_any or storage.dtype != s8 or storage.ndims < 2 or storage.storage is not storage:
            raise InvalidArguments(f"weights {shown(storage)} have no sums of columns: s8 of 2 dims or more have")
        put = object.__setattr__
        for name in ("dims", "dtype", "strides", "inner_blocks", "padded_dims", "offset0", "is_any"):
            put(self, name, getattr(storage, name))
        mask = (1 << storage.ndims) - 1 - (1 << storage.ndims - 2) if mask is None else mask
        kept = [size for dim, size in enumerate(storage.dims) if mask >> dim & 1]
        sums = MemoryDesc(kept, s32, LETTERS[: len(kept)])
        first = -(-storage.size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        put(self, "mask", mask)
        put(self, "sums", sums)
        put(self, "begins", (first, first + sums.size_bytes))
        put(self, "_storage", storage)
        put(self, "_extent", first + 2 * sums.size_bytes)
        put(self, "_key", ("sums", mask, *storage._key))

    @property
    def storage(self) -> MemoryDesc:
        return self._storage

    @property
    def tag(self) -> str | None:
        """Of the storage, after the form."""
        tag = self.storage.tag
        return tag and f"sums:{tag}"

    @property
    def alias(self) -> None:
        return None

    @property
    def is_dense(self) -> bool:
        return False

    def widened(self, new: int) -> "SummedDesc":
        """With so many dims of size 1 in front."""
        mask = self.mask << new | (1 << new) - 1
        return SummedDesc(self.storage.widened(new), mask)

    @within_memory
    def complete(self, array: NDArray[Any], storage: NDArray[Any]) -> None:
        summed = tuple(dim for dim in range(self.ndims) if not self.mask >> dim & 1)
        sums = array.astype(np.int64).sum(summed).ravel()
        for begin, factor in zip(self.begins, (SHIFT, 1), strict=True):
            place = storage.view(np.uint8)[begin : begin + self.sums.size_bytes]
            place.view(np.int32)[:] = (-factor * sums).astype(np.int32)
