"""What a reorder's documentation says of numbers, in numpy: decoding, rounding to nearest even, saturation."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from tests.primitives.raw import Bits

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

LIMITS = {"s32": (-(2**31), 2147483520), "s8": (-128, 127), "u8": (0, 255)}
FLOAT8 = {dnn.f8_e5m2: ml_dtypes.float8_e5m2, dnn.f8_e4m3: ml_dtypes.float8_e4m3fn}
FEW_BITS = ("bf16", "f16", "s8", "u8", "f8_e5m2", "f8_e4m3")  # all of them can be tried


def bits(values: npt.NDArray[Any]) -> Bits:
    result: Bits = np.ascontiguousarray(values).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[values.itemsize])
    return result


def decoded(storage: Bits, dtype: dnn.DataType) -> Floats:
    """As f32; s32 is rounded to it."""
    if dtype in FLOAT8:
        return storage.view(FLOAT8[dtype]).astype(np.float32)
    if dtype == dnn.bf16:
        return (storage.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return storage.view(dtype.numpy).astype(np.float32)


def encoded(values: Doubles | Floats, dtype: dnn.DataType) -> Bits:
    """Numbers in f32 as elements; a NaN of bf16 is the upper half, made quiet."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = values.astype(np.float32)
        if dtype == dnn.bf16:
            word = values.view(np.uint32)
            nearest = (word.astype(np.uint64) + 0x7FFF + (word >> 16 & 1)) >> 16
            return np.where(np.isnan(values), word >> 16 | 0x40, nearest).astype(np.uint16)
        if dtype in FLOAT8:
            return bits(values.astype(FLOAT8[dtype]))
        if dtype.name in LIMITS:
            low, high = LIMITS[dtype.name]
            whole = np.clip(np.rint(values.astype(np.float64)), low, high)
            return bits(np.where(np.isnan(whole), low, whole).astype(dtype.numpy))
        return bits(values.astype(dtype.numpy))


def telling(dtype: dnn.DataType) -> Bits:
    """Every element of types that have few; halves, limits, infinities, NaN, denormals and -0 of the others."""
    random = np.random.default_rng(3)
    size = dtype.size_bytes
    if dtype.name in FEW_BITS:
        return np.arange(1 << 8 * size, dtype=np.uint32).astype({1: np.uint8, 2: np.uint16}[size])
    anything = random.integers(0, 1 << 32, 3000, np.uint64).astype(np.uint32)
    if dtype == dnn.s32:
        edges = [edge + i for edge in (0, -128, 127, 255, 1 << 24, -(1 << 24), 2**31 - 132) for i in range(-3, 4)]
        edges += [-(2**31), 2**31 - 1, 2**31 - 64, 2**31 - 65, 65504, 65519, 65520, 65535]
        return np.concatenate((bits(np.array(edges, np.int32)), anything))
    halves = np.arange(-300, 300.25, 0.5, np.float32)
    near = np.concatenate([np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)])
    large = np.float32([2.0**31, 2147483520, -(2.0**31), -2147483904, 65504, 65519.996, 65520, 65536, 3.38e38, 3.4e38])
    small = np.float32([1e-45, 1e-40, 1.17e-38, 2**-14, 2**-24, 2**-25, 1.5 * 2**-25, 6e-8, 0.0])
    special = np.float32([np.inf, np.nan])
    known = np.concatenate([part for x in (large, small, special) for part in (x, -x)] + [halves, near])
    return np.concatenate((bits(known), anything))
