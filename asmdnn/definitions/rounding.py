"""The precision of f32, which error bounds are made of."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
UNIT_ROUNDOFF = 2.0**-24  # of f32: what rounding moves a number by, of its size
UNIT = 2.0**-23  # the distance from 1 to the next f32
SMALLEST = 2.0**-126  # the least normal number


def as_f32(number: float) -> float:
    """The f32 number that a kernel has for it."""
    return float(np.float32(number))


def gamma(roundings: float) -> float:
    """By how much of the size of its terms so many roundings can move a sum of products, in any order.

    n u / (1 - n u) with u = 2^-24: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., eq. (3.5).
    """
    return roundings * UNIT_ROUNDOFF / (1 - roundings * UNIT_ROUNDOFF)
