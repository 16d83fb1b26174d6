"""Numbers that are drawn by a seed and the index of an element alone: Philox4x32-10, as dropout counts."""

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.dropout import philox_words
from asmdnn.definitions.rounding import Doubles

WORD = 2.0**32
SHIFT = np.uint64(8)  # 24 bits are left, which f32 has
LONG, GOLDEN, PLACES = 2**64, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
Floats = npt.NDArray[np.float32]


def uniforms(seed: int, count: int) -> Floats:
    """f32[count], multiples of 2^-24 from 0 to below 1."""
    return ((philox_words(0, count, seed) >> SHIFT) * 2.0**-24).astype(np.float32)


def normals(seed: int, count: int) -> Floats:
    """f32[count] of mean 0 and variance 1: pairs of words as radius and angle (Box and Muller 1958)."""
    pairs: Doubles = (philox_words(0, count + count % 2, seed).astype(np.float64).reshape(-1, 2) + 0.5) / WORD
    radius, angle = np.sqrt(-2 * np.log(pairs[:, 0])), 2 * np.pi * pairs[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:count].astype(np.float32)


def mixed(seed: int, call: int, place: int) -> int:
    """A seed for each call and each place, an integer of 32 bits with a sign.

    Source: Steele and others, Fast Splittable Pseudorandom Number Generators (2014)."""
    z = (seed + (call + 1) * GOLDEN + (place + 1) * PLACES) % LONG
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % LONG
    z = (z ^ z >> 27) * 0x94D049BB133111EB % LONG
    return ((z ^ z >> 31) & 0xFFFFFFFF) - 2**31
