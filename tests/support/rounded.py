"""Numbers in f64, and how far f32 arithmetic may be from them: counted roundings of the sizes of all terms."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support.arena import Doubles

UNIT_ROUNDOFF = 2.0**-24
TANH_ROUNDINGS = 12  # 6 ulp, docs/eltwise.md


@dataclass(frozen=True)
class Rounded:
    """size: the number with plus for every minus, and no smaller than it; roundings: of the longest way to it."""

    value: Doubles
    size: Doubles
    roundings: int = 0

    @classmethod
    def of(cls, number: Any) -> "Rounded":
        """As f32 has it."""
        return number if isinstance(number, cls) else cls(np.asarray(number, np.float64), np.abs(number, dtype=float))

    def __add__(self, other: Any) -> "Rounded":
        b = Rounded.of(other)
        return Rounded(self.value + b.value, self.size + b.size, max(self.roundings, b.roundings) + 1)

    def __sub__(self, other: Any) -> "Rounded":
        b = Rounded.of(other)
        return self + Rounded(-b.value, b.size, b.roundings)

    def __rsub__(self, other: float) -> "Rounded":
        return Rounded.of(other) - self

    def __mul__(self, other: Any) -> "Rounded":
        b = Rounded.of(other)
        return Rounded(self.value * b.value, self.size * b.size, self.roundings + b.roundings + 1)

    def tanh(self) -> "Rounded":
        """Whose slope is 1 at most, so that an error does not grow."""
        return Rounded(np.tanh(self.value), self.size, self.roundings + TANH_ROUNDINGS)

    @property
    def bound(self) -> Doubles:
        """Higham's n u / (1 - n u) of the size."""
        return self.size * (self.roundings * UNIT_ROUNDOFF / (1 - self.roundings * UNIT_ROUNDOFF))
