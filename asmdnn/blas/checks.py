"""Arguments of the BLAS: what they must be, in the words of its interface."""

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, shown
from asmdnn.ops.arguments import F32

Array = npt.NDArray[np.float32]
MAX_SIZE = 2**31 - 1


def matrix(name: str, x: Any) -> Array:
    """`x` if it is a float32 matrix, as a plain ndarray; else InvalidArguments."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.ndim != 2:
        found = f"{x.dtype} of {x.ndim} dims" if isinstance(x, np.ndarray) else type(x).__name__
        raise InvalidArguments(f"{name} must be a float32 matrix, not {found}")
    return np.asarray(x).view(F32)


def scalar(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArguments(f"{name} must be a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArguments(f"{name} must be a number that f32 can hold, not {shown(value)}") from None


def size_of(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= MAX_SIZE:
        raise InvalidArguments(f"{name} must be an integer from 0 to 2**31 - 1, not {shown(value)}")
    return int(value)


def checked_identifier(identifier: str) -> str:
    if not isinstance(identifier, str) or identifier not in ("A", "B"):
        raise InvalidArguments(f"identifier must be 'A' or 'B', not {shown(identifier)}")
    return identifier


def checked_trans(name: str, trans: str) -> str:
    """How an operand lies: "N", "T" or "P"."""
    if type(trans) is not str or trans not in ("N", "T", "P"):
        raise InvalidArguments(f"trans{name} must be 'N', 'T' or, if packed, 'P', not {shown(trans)}")
    return trans
