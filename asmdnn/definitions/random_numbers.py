"""Numbers that are drawn by a seed and the index of an element alone: Philox4x32-10, as dropout counts."""

from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.dropout import philox_words
from asmdnn.definitions.rounding import Doubles

WORD = 2.0**32
SHIFT = np.uint64(8)  # 24 bits are left, which f32 has
LONG, GOLDEN, PLACES = 2**64, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03
NORMAL_ERROR = 2.0**-21  # relative, of kernels in f32: some 3 roundings of angle and radius each, 2 of sine and product
Floats = npt.NDArray[np.float32]


def uniforms(seed: int, count: int) -> Floats:
    """f32[count], multiples of 2^-24 from 0 to below 1."""
    return ((philox_words(0, count, seed) >> SHIFT) * 2.0**-24).astype(np.float32)


def normals(seed: int, count: int) -> Floats:
    """f32[count] of mean 0 and variance 1, rounded once."""
    return exact_normals(seed, count).astype(np.float32)


def exact_normals(seed: int, count: int) -> Doubles:
    """f64[count]: pairs of words as radius and angle (Box and Muller 1958)."""
    words = philox_words(0, count + count % 2, seed).reshape(-1, 2)
    return box_muller(words[:, 0], words[:, 1]).ravel()[:count]


def box_muller(first: Any, second: Any) -> Doubles:
    """f64[n, 2] of u64[n] and u64[n], each of 32 bits.  What is next to 1 is counted from there, and quadrants of the
    angle from their middles, where f64 would round."""
    from_zero, from_one = (first + 0.5) / WORD, (WORD - first - 0.5) / WORD
    radius = np.sqrt(-2 * np.where(from_one < 0.5, np.log1p(-from_one), np.log(from_zero)))
    quadrant = (second + 2**29) >> np.uint64(30)
    angle = (second.astype(np.float64) - quadrant.astype(np.float64) * 2.0**30 + 0.5) * (np.pi / 2**31)
    cosine, sine = np.cos(angle), np.sin(angle)
    k = quadrant.astype(np.intp) % 4
    turned = [np.choose(k, ways) for ways in ((cosine, -sine, -cosine, sine), (sine, cosine, -sine, -cosine))]
    return np.stack([radius * turned[0], radius * turned[1]], axis=1)


def drawn(distribution: str, seed: int, stream: int, count: int) -> Doubles:
    """f64[count] of a seed and a stream: uniform ones are f32, normal ones exact."""
    key = finalized(seed + stream) % 2**32
    return uniforms(key, count).astype(np.float64) if distribution == "uniform" else exact_normals(key, count)


def finalized(z: int) -> int:
    """An integer of 32 bits with a sign, of which each bit depends on all bits of z.

    Source: Steele and others, Fast Splittable Pseudorandom Number Generators (2014)."""
    z %= LONG
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % LONG
    z = (z ^ z >> 27) * 0x94D049BB133111EB % LONG
    return ((z ^ z >> 31) & 0xFFFFFFFF) - 2**31


def stream_of(call: int, place: int) -> int:
    """What is added to a seed, for each call and each place, as an integer of 64 bits with a sign."""
    found = (call + 1) * GOLDEN + (place + 1) * PLACES
    return (found + LONG // 2) % LONG - LONG // 2


def mixed(seed: int, call: int, place: int) -> int:
    """A seed for each call and each place, an integer of 32 bits with a sign."""
    return finalized(seed + stream_of(call, place))
