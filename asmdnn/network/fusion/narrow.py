"""Integers of 8 and 16 bits as f32 numbers: what wraps around, and what is done to single bits.

All are exact: no number has more than 24 bits, and factors are powers of two.  Each function takes traced values as
well as arrays, so that it is its own reference.
"""

from functools import partial
from math import inf
from typing import Any

import numpy as np

from asmdnn.network.fusion.exact import EXACT, IntegerBounds, symmetric
from asmdnn.primitives.attributes.functions import builder_of, floor, minimum, where

NARROW_TYPES = tuple(map(np.dtype, (np.uint8, np.int8, np.uint16, np.int16)))
WORDS = NARROW_TYPES[2:]  # that are no bytes
UNSIGNED = tuple(map(np.dtype, (np.uint32, np.uint64)))  # read as wide integers are: up to a limit that is checked
FARTHEST = 100.0  # bits that a number of 24 bits can be moved by and stay finite
BITS = {
    "BitwiseAnd": ("and", np.bitwise_and),
    "BitwiseOr": ("or", np.bitwise_or),
    "BitwiseXor": ("xor", np.bitwise_xor),
}


def range_of(dtype: np.dtype[Any]) -> IntegerBounds:
    """What a type holds."""
    info = np.iinfo(dtype)
    return IntegerBounds(float(info.min), float(info.max))


def wrapped(x: Any, least: float, size: float) -> Any:
    """The number from least to least + size - 1 that differs from x by a multiple of size."""
    return x - size * floor((x - least) * (1 / size))


def wrapping(dtype: np.dtype[Any]) -> Any:
    bounds = range_of(dtype)
    return partial(wrapped, least=bounds.least, size=bounds.most - bounds.least + 1)


def power_of_two(y: Any) -> Any:
    """2 to the power of an integer; below 0 it is a count without a sign, which moves all bits away."""
    build, bits = builder_of(y), minimum(where(y < 0.0, FARTHEST, y), FARTHEST)
    if build is None:
        return np.exp2(bits)
    return build.op("shl", build.op("iadd", build.op("to_int", bits), build.bits(127)), immediate=23)


def moved_left(x: Any, y: Any) -> Any:
    return x * power_of_two(y)


def moved_right(x: Any, y: Any) -> Any:
    return floor(x / power_of_two(y))


def product(a: Any, b: Any) -> Any:
    """Of 16 bits each: what differs from it by a multiple of 2^16, below 2^24."""
    high = floor(b * (1 / 256))
    return a * (b - high * 256) + wrapped(a * high, 0.0, 256.0) * 256


def by_bits(x: Any, y: Any, op: str) -> Any:
    """Each bit of two's complement separately."""
    name, on_arrays = BITS[op]
    build = builder_of(x, y)
    if build is None:
        found = on_arrays(np.asarray(x).astype(np.int64), np.asarray(y).astype(np.int64))
        return found.astype(np.result_type(x, y))
    return build.op("to_float", build.op(name, *(build.op("to_int", build.value(one)) for one in (x, y))))


def bounds_of_bits(*operands: IntegerBounds) -> IntegerBounds:
    """Of what single bits make: as many bits as the larger one has."""
    size = max(one.size for one in operands)
    most = inf if size > EXACT else float(1 << int(size).bit_length())
    return symmetric(most) if any(one.least < 0 for one in operands) else IntegerBounds(0, most - 1)
