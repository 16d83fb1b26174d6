"""The precision of f32, which error bounds are made of, and of smaller floats."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
UNIT_ROUNDOFF = 2.0**-24  # of f32: what rounding moves a number by, of its size
UNIT = 2.0**-23  # the distance from 1 to the next f32
SMALLEST = 2.0**-126  # the least normal number
MOST_EXACT = 1 << 24  # f32 has all integers up to it
MOST_S8 = 127
UPPER = "bf16"  # the upper half of an f32
FORMS = {  # of smaller floats: bits of the mantissa, and the exponent of the least normal number
    UPPER: (7, -126), "f16": (10, -14), "f8_e4m3": (3, -6), "f8_e5m2": (2, -14),
}  # fmt: skip


def as_bytes(x: Array) -> Array:
    """What numbers stand for once they are u8 by their own range, as ONNX's DynamicQuantizeLinear makes them; float64.
    A scale is 2^-126 at least; where x has NaN or infinity all results are NaN."""
    floats = x.astype(np.float32)
    if not np.isfinite(floats).all():
        return np.full(x.shape, np.nan)
    low, high = floats.min(initial=0), floats.max(initial=0)
    scale = max((high - low) / np.float32(255), np.float32(SMALLEST))
    zero = np.clip(np.rint(-low / scale), 0, 255)
    octets = np.clip(np.rint(floats / scale) + zero, 0, 255) - zero
    return np.asarray(octets.astype(np.float64) * float(scale))


def rounded_by_groups(a: Array, group: int) -> Array:
    """a (.., k) once each group of it is s8 by its largest number, as f32 rounds; a group of zeros stays what it is."""
    x = a.astype(np.float32).reshape(*a.shape[:-1], a.shape[-1] // group, group)
    most = np.abs(x).max(-1, keepdims=True)
    octets = np.rint(x * (np.float32(MOST_S8) / np.where(most == 0, np.float32(1), most)))
    scales = (most * np.float32(1 / MOST_S8)).astype(a.dtype)
    return np.asarray(octets.astype(a.dtype) * scales).reshape(a.shape)


def as_f32(number: float) -> float:
    """The f32 number that a kernel has for it."""
    return float(np.float32(number))


def gamma(roundings: float) -> float:
    """By how much of the size of its terms so many roundings can move a sum of products, in any order.

    n u / (1 - n u) with u = 2^-24: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. (3.5).
    """
    return roundings * UNIT_ROUNDOFF / (1 - roundings * UNIT_ROUNDOFF)
