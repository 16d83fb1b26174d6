"""What a Cast makes of numbers: rounded to nearest even, and at the ends of small types as their attributes say.

Integers of 2 and 4 bits are the low bits of larger ones.

Source: the tables of https://onnx.ai/onnx/operators/onnx__Cast.html.
"""

from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node

SATURATING = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
SMALL_INTEGERS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
POWERS = "float8_e8m0fnu"  # 2^-127 to 2^127


def converted(node: Node, x: Array, dtype: np.dtype[Any]) -> Array:
    """Of any types; saturate and round_mode are read where small floats are made."""
    x = np.asarray(x)
    with np.errstate(invalid="ignore", over="ignore"):
        if dtype.name in SATURATING and x.dtype.kind == "f" and node.get("saturate", 1):
            most = float(largest(dtype))
            return np.clip(x.astype(np.float32), -most, most).astype(dtype)
        if dtype.name == POWERS and x.dtype.kind == "f":
            return powers(x.astype(np.float32), str(node.get("round_mode", "up")), bool(node.get("saturate", 1)), dtype)
        if dtype.name in SMALL_INTEGERS and x.dtype.kind == "f":
            least, most = SMALL_INTEGERS[dtype.name]
            return ((x.astype(np.int64) - least & most - least) + least).astype(np.int8).astype(dtype)
        return x.astype(dtype)


def largest(dtype: np.dtype[Any]) -> Array:
    """The largest finite number of a type of 8 bits."""
    every = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    return np.asarray(every[np.isfinite(every)].max())


def powers(x: Array, mode: str, saturate: bool, dtype: np.dtype[Any]) -> Array:
    """The power of two beside |x|: above, below, or the nearer one; the bits are its exponent + 127, and 255 NaN."""
    mantissa, exponent = np.frexp(np.abs(x))  # from 0.5 to 1
    up = {"up": mantissa > 0.5, "down": np.zeros(x.shape, bool), "nearest": mantissa >= 0.75}[mode]
    bits = np.where(x == 0, 0, exponent - 1 + up + 127)
    lost = ~np.isfinite(x) if not saturate else np.isnan(x)
    over = (bits > 254) | np.isinf(x)
    bits = np.where(over, 254 if saturate else 255, np.maximum(bits, 0))
    return np.where(lost, 255, bits).astype(np.uint8).view(dtype)
