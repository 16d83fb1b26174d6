"""Errors in units of the last place of f32, against float64; and the numbers to measure them on."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.support.arena import Doubles

Floats = npt.NDArray[np.float32]
OVERFLOW = 2.0**128  # what infinity counts as: numbers from half an ulp below round to it
LEAST_EXPONENT, BITS = -126, 23


def ulp(size: Any) -> Doubles:
    """The distance of f32 numbers at |size|; that of denormal ones near 0."""
    exponent = np.frexp(np.minimum(np.abs(size), OVERFLOW / 2))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, LEAST_EXPONENT) - BITS)


def errors(result: Floats, wanted: Doubles, scale: Any = 0.0) -> Doubles:
    """In ulp of the larger of |wanted| and `scale`; infinite where only one of both is NaN."""
    limited = (np.clip(x.astype(np.float64), -OVERFLOW, OVERFLOW) for x in (result, wanted))
    difference = np.abs(np.subtract(*limited)) / ulp(np.fmax(np.abs(wanted), scale))
    same = np.isnan(result) == np.isnan(wanted)
    return np.where(same, np.where(np.isnan(wanted), 0.0, difference), np.inf)


def edges(numbers: tuple[float, ...] = (), around: int = 40) -> Floats:
    """Zeros, denormals, the ends of the range, infinities, NaN; and the neighbours of these and of given numbers."""
    special = np.float32([0, 2.0**-149, 2.0**-126, 2.0**-24, 0.5, 1, 2, 2.0**23, 2.0**31, np.finfo(np.float32).max])
    places = np.abs(np.concatenate((special, np.float32(numbers)))).view(np.int32)
    sizes = np.clip(np.add.outer(places, np.arange(-around, around + 1)), 0, 0x7F800000).ravel()
    bits = np.unique(np.append(sizes, 0x7FC00000)).astype(np.uint32)
    return np.concatenate((bits, bits | np.uint32(0x80000000))).view(np.float32)


def every(stride: int, first: int = 0) -> Floats:
    """Every stride-th f32 number by its bits, of both signs; NaN among them."""
    return np.arange(first, 1 << 32, stride, np.uint32).view(np.float32)


def spread(count: int, seed: int = 0) -> Floats:
    """Where functions bend: uniform in [-4, 4] and [-120, 120]."""
    random = np.random.default_rng(seed)
    return np.concatenate([random.uniform(-bound, bound, count // 2) for bound in (4, 120)]).astype(np.float32)
