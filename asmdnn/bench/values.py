"""Numbers and how data types store them, in numpy: for data, answers and results of the bench."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.types import DATA_TYPES, DataType, bf16, s4, u4

Array = npt.NDArray[Any]

TYPES = ("f32", "bf16", "f16", "s32", "s8", "u8")  # that data are made of here
NAMED = {**DATA_TYPES, s4.name: s4, u4.name: u4}  # the types by their names
POISON_BYTE = 0x5A
INTEGER_KINDS = "iu"
LARGEST_S32 = 2147483520  # of f32 numbers, as docs/reorder.md has it


def decoded(storage: Array, dtype: DataType) -> Array:
    """The numbers that elements of a data type are: bf16 as float32, the others as they are."""
    if dtype != bf16:
        return storage
    return (storage.astype(np.uint32) << np.uint32(16)).view(np.float32)


def encoded(values: Array, dtype: DataType) -> Array:
    """Numbers as elements of a data type: rounded to nearest even, integers saturated; of s4 and u4 as bytes."""
    stored = np.dtype(np.int8 if dtype == s4 else dtype.numpy)
    if dtype == bf16:
        bits = np.asarray(values, np.float32).view(np.uint32)
        return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    if stored.kind in INTEGER_KINDS:
        limits = np.iinfo(stored)
        largest = min(limits.max, LARGEST_S32)
        return np.clip(np.rint(np.asarray(values, np.float64)), limits.min, largest).astype(stored)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(stored)


def rounded(values: Array, dtype: DataType) -> Array:
    """The numbers that are left of `values` in a data type, as float64."""
    return decoded(encoded(values, dtype), dtype).astype(np.float64)


def poison(dims: tuple[int, ...], dtype: DataType) -> Array:
    """Elements that no result should have: NaN, or a pattern for integers."""
    stored = np.dtype(dtype.numpy)
    if stored.kind in INTEGER_KINDS and dtype != bf16:
        return np.full(dims, int.from_bytes([POISON_BYTE] * stored.itemsize, "little"), stored)
    return encoded(np.full(dims, np.nan, np.float32), dtype)


def random_values(
    random: np.random.Generator, dims: tuple[int, ...], dtype: DataType, bound: int, exact: bool
) -> Array:
    """Elements between -bound and bound, as far as the type goes; integers if exact, and for integer types."""
    stored = np.dtype(dtype.numpy)
    if stored.kind in INTEGER_KINDS and dtype != bf16:
        least, most = max(-bound, np.iinfo(stored).min), min(bound, np.iinfo(stored).max)
        return random.integers(least, most, dims, np.int64, endpoint=True).astype(stored)
    if exact:
        return encoded(random.integers(-bound, bound, dims, np.int64, endpoint=True), dtype)
    return encoded(random.uniform(-bound, bound, dims).astype(np.float32), dtype)


def joined(results: Sequence[Array]) -> Array:
    """A result as it is; several, such as the gradients of weights and bias, as one row."""
    return results[0] if len(results) == 1 else np.concatenate([result.ravel() for result in results])
