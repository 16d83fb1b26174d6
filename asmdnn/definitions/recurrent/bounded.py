"""Values in float64, and how far the same computation in f32 may be from them: running error analysis.

Every operation adds what it rounds, and passes on what its operands were off by (Higham, Accuracy and Stability of
Numerical Algorithms, 2002, 3.3).  So equations that are written once give the answer and its tolerance.
"""

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.rounding import UNIT_ROUNDOFF

Floats = npt.NDArray[np.float64]
Operand = Union["Bounded", float]

FUNCTION_ERROR = 2.0**-22  # absolute, of logistic and tanh: 4 times the unit roundoff of their largest value
STEEPEST_LOGISTIC = 0.25  # its largest derivative


class Bounded:
    """value: float64 array; error: how far f32 may be off, or None where f32 has the value itself."""

    __slots__ = ("error", "value")

    def __init__(self, value: npt.ArrayLike, error: Floats | None = None) -> None:
        self.value: Floats = np.asarray(value, np.float64)
        self.error = error

    @property
    def bound(self) -> Floats:
        """The error as an array."""
        return np.zeros_like(self.value) if self.error is None else self.error

    def __add__(self, other: Operand) -> "Bounded":
        other = of(other)
        return self._rounded(self.value + other.value, self.bound + other.bound)

    def __sub__(self, other: Operand) -> "Bounded":
        other = of(other)
        return self._rounded(self.value - other.value, self.bound + other.bound)

    def __rsub__(self, other: float) -> "Bounded":
        return of(other) - self

    def __mul__(self, other: Operand) -> "Bounded":
        other = of(other)
        error = np.abs(self.value) * other.bound + (np.abs(other.value) + other.bound) * self.bound
        return self._rounded(self.value * other.value, error)

    def __matmul__(self, other: "Bounded") -> "Bounded":
        """The sum in any order: gamma of so many terms times the sum of sizes."""
        first, second = np.abs(self.value), np.abs(other.value)
        error = (first.shape[-1] + 2) * UNIT_ROUNDOFF * (first @ second)
        if self.error is not None:
            error += self.error @ (second + other.bound)
        if other.error is not None:
            error += first @ other.error
        return Bounded(self.value @ other.value, error)

    def __getitem__(self, index: Any) -> "Bounded":
        return Bounded(self.value[index], None if self.error is None else self.error[index])

    @property
    def T(self) -> "Bounded":
        return Bounded(self.value.T, None if self.error is None else self.error.T)

    def sum_rows(self) -> "Bounded":
        """Over the first axis."""
        error = len(self.value) * UNIT_ROUNDOFF * np.abs(self.value).sum(0) + self.bound.sum(0)
        return Bounded(self.value.sum(0), error)

    def logistic(self) -> "Bounded":
        """Between 0 and 1, so that no error is larger."""
        error = np.minimum(STEEPEST_LOGISTIC * self.bound + FUNCTION_ERROR, 1.0)
        return Bounded(1 / (1 + np.exp(-self.value)), error)

    def tanh(self) -> "Bounded":
        """Between -1 and 1, so that no error is larger than from one to the other."""
        return Bounded(np.tanh(self.value), np.minimum(self.bound + FUNCTION_ERROR, 2.0))

    def relu(self, alpha: float) -> "Bounded":
        """alpha times what is below 0."""
        value = np.where(self.value > 0, self.value, alpha * self.value)
        return self._rounded(value, max(1.0, abs(alpha)) * self.bound)

    def slope(self, alpha: float) -> "Bounded":
        """The derivative of relu; where the sign is not certain it may be either's."""
        uncertain = np.abs(self.value) <= self.bound
        return Bounded(np.where(self.value > 0, 1.0, alpha), np.where(uncertain, abs(1 - alpha), 0.0))

    def where(self, condition: npt.NDArray[np.bool_], other: Operand) -> "Bounded":
        other = of(other)
        return Bounded(np.where(condition, self.value, other.value), np.where(condition, self.bound, other.bound))

    def _rounded(self, value: Floats, error: Floats) -> "Bounded":
        return Bounded(value, error + UNIT_ROUNDOFF * (np.abs(value) + error))


def of(value: Operand) -> Bounded:
    return value if isinstance(value, Bounded) else Bounded(value)


def zeros(*dims: int) -> Bounded:
    return Bounded(np.zeros(dims))


def stacked(parts: Sequence[Bounded], axis: int = 0) -> Bounded:
    """Along a new axis."""
    return Bounded(np.stack([x.value for x in parts], axis), np.stack([x.bound for x in parts], axis))


def concatenated(parts: Sequence[Bounded], axis: int) -> Bounded:
    return Bounded(np.concatenate([x.value for x in parts], axis), np.concatenate([x.bound for x in parts], axis))
