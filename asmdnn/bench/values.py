"""Numbers and how data types store them, in numpy: for data, answers and results of the bench."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.rounding import FORMS
from asmdnn.types import (
    CODED_FLOATS,
    DATA_TYPES,
    FLOATS8,
    PACKED_TYPES,
    DataType,
    bf16,
    f4_e2m1,
    f8_e4m3,
    f8_e5m2,
    nf4,
    s4,
)

Array = npt.NDArray[Any]

TYPES = ("f32", "bf16", "f16", "s32", "s8", "u8")  # that data are made of here
NAMED = {**DATA_TYPES, **PACKED_TYPES}  # the types by their names
POISON_BYTE = 0x5A
INTEGER_KINDS = "iu"
NANS = {f8_e5m2: 0x7E, f8_e4m3: 0x7F}
SPECIAL = {f8_e5m2: 0x7C, f8_e4m3: 0x7F}  # the byte of what is too large: infinity, or NaN
MAGNITUDES = (0, 0.5, 1, 1.5, 2, 3, 4, 6)  # of f4_e2m1: OCP Microscaling Formats (MX) Specification 1.0, table 5
TABLES: dict[DataType, Array] = {  # the numbers of codes; of nf4: Dettmers et al., QLoRA (2023), appendix E
    f4_e2m1: np.array((*MAGNITUDES, *(-x for x in MAGNITUDES)), np.float32),
    nf4: np.array((
        -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
    ), np.float32),
}  # fmt: skip
LARGEST_S32 = 2147483520  # of f32 numbers, as docs/reorder.md has it


def is_integer(dtype: DataType) -> bool:
    """Whether the numbers of a type are integers, and not floats whose bits are kept in some."""
    return np.dtype(dtype.numpy).kind in INTEGER_KINDS and dtype not in (bf16, *FLOATS8, *CODED_FLOATS)


@cache
def magnitudes(dtype: DataType) -> Array:
    """What the bytes of a float of 8 bits would be, without a sign and up to `SPECIAL`, if that were a number."""
    bits, least = FORMS[dtype.name]
    exponent, mantissa = np.divmod(np.arange(SPECIAL[dtype] + 1), 1 << bits)
    share = mantissa / (1 << bits) + (exponent > 0)
    return np.asarray(np.ldexp(share, np.maximum(exponent, 1) - 1 + least))


def decoded_bytes(storage: Array, dtype: DataType) -> Array:
    """The numbers of floats of 8 bits, as float32."""
    found = np.full(128, np.nan)
    found[: SPECIAL[dtype]] = magnitudes(dtype)[:-1]
    if dtype == f8_e5m2:
        found[SPECIAL[dtype]] = np.inf
    return np.asarray(np.concatenate((found, -found)).astype(np.float32)[storage])


def nearest(known: Array, values: Array) -> Array:
    """Which of `known`, which ascends, is the nearest: of two, the one at an even place."""
    middles = (known[:-1] + known[1:]) / 2
    below, above = (np.searchsorted(middles, values, side) for side in ("left", "right"))  # they differ in the middle
    return np.asarray(np.where(below % 2, above, below))


def encoded_codes(values: Array, dtype: DataType) -> Array:
    """Finite numbers as floats of 4 bits, a byte each, rounded to nearest even and saturated."""
    doubles = np.asarray(values, np.float64)
    if dtype == nf4:
        return np.asarray(nearest(TABLES[nf4].astype(np.float64), doubles), np.uint8)
    codes = nearest(np.array(MAGNITUDES), np.abs(doubles)) + len(MAGNITUDES) * np.signbit(doubles)
    return np.asarray(codes, np.uint8)


def encoded_bytes(values: Array, dtype: DataType) -> Array:
    """Numbers as floats of 8 bits, rounded to nearest even."""
    size = np.abs(np.asarray(values, np.float64))
    codes = nearest(magnitudes(dtype), size)
    codes = np.where(np.isnan(size), NANS[dtype], codes) + 0x80 * np.signbit(values)
    return np.asarray(codes, np.uint8)


def decoded(storage: Array, dtype: DataType) -> Array:
    """The numbers that elements of a data type are: floats of 4 and 8 bits and bf16 as float32, others as they are."""
    if dtype in CODED_FLOATS:
        return np.asarray(TABLES[dtype][storage])
    if dtype in FLOATS8:
        return decoded_bytes(storage, dtype)
    if dtype != bf16:
        return storage
    return (storage.astype(np.uint32) << np.uint32(16)).view(np.float32)


def encoded(values: Array, dtype: DataType) -> Array:
    """Numbers as elements of a data type: rounded to nearest even, integers saturated; of 4 bits a byte each."""
    if dtype in CODED_FLOATS:
        return encoded_codes(values, dtype)
    if dtype in FLOATS8:
        return encoded_bytes(np.asarray(values), dtype)
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
    if is_integer(dtype):
        return np.full(dims, int.from_bytes([POISON_BYTE] * stored.itemsize, "little"), stored)
    return encoded(np.full(dims, np.nan, np.float32), dtype)


def random_values(
    random: np.random.Generator, dims: tuple[int, ...], dtype: DataType, bound: int, exact: bool
) -> Array:
    """Elements between -bound and bound, as far as the type goes; integers if exact, and for integer types."""
    stored = np.dtype(dtype.numpy)
    if is_integer(dtype):
        least, most = max(-bound, np.iinfo(stored).min), min(bound, np.iinfo(stored).max)
        return random.integers(least, most, dims, np.int64, endpoint=True).astype(stored)
    if exact:
        return encoded(random.integers(-bound, bound, dims, np.int64, endpoint=True), dtype)
    return encoded(random.uniform(-bound, bound, dims).astype(np.float32), dtype)


def joined(results: Sequence[Array]) -> Array:
    """A result as it is; several, such as the gradients of weights and bias, as one row."""
    return results[0] if len(results) == 1 else np.concatenate([result.ravel() for result in results])
