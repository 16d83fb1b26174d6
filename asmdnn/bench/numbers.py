"""The types of a problem's tensors, numbers that these types have, and zero points."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded, rounded
from asmdnn.records import dataclass, field
from asmdnn.types import FLOATS8, DataType

Floats = npt.NDArray[np.float32]

INTEGERS = (dnn.s32, dnn.s8, dnn.u8, dnn.s4, dnn.u4)
NIBBLES = {dnn.s4: (-8, 7), dnn.u4: (0, 15)}
EXACT_SUM = 2**24  # f32 holds every integer up to here
LARGEST_INTEGER = EXACT_SUM // 16  # bias and old dst may add two of these
# Of types that have not all of the larger ones; sums of products of those of 8 bits should be numbers of the type.
LARGEST_INTEGERS = {dnn.f16: 2**11, **dict.fromkeys((*FLOATS8, dnn.f4_e2m1), 2**2), dnn.nf4: 1}
LARGEST_REALS = {dnn.f4_e2m1: 6}  # of tables, whose numbers all should come


def limits_of(dtype: DataType) -> tuple[int, int]:
    limits = np.iinfo(np.dtype(dtype.numpy))
    return int(limits.min), int(limits.max)


@dataclass(frozen=True, slots=True)
class TypedNumbers:
    """The types of tensors by their names, and zero points by those of their arguments.

    rounded: the type that f32 factors may be rounded to: they have its numbers, which stay what they are.  shifts:
    zero points by tensors, to broadcast to them.  factors: the names of what is multiplied.
    """

    types: Mapping[str, DataType] = field(default_factory=dict)
    zero_points: Mapping[str, npt.NDArray[np.int32]] = field(default_factory=dict)
    rounded: DataType = dnn.f32
    shifts: Mapping[str, npt.NDArray[np.int32]] = field(default_factory=dict)
    factors: tuple[str, ...] = ("src", "weights")

    @property
    def weights(self) -> npt.NDArray[np.int32] | None:
        """Zero points of weights."""
        return self.shifts.get("weights")

    def has_numbers_of(self, name: str) -> DataType:
        """The type of which a tensor's numbers are."""
        return self.rounded if name in self.factors and self.of(name) == dnn.f32 else self.of(name)

    def of(self, name: str) -> DataType:
        return self.types.get(name, dnn.f32)

    def stored(self, values: Mapping[str, Floats]) -> dict[str, npt.NDArray[Any]]:
        """Numbers as their types store them, and zero points."""
        return {name: encoded(array, self.of(name)) for name, array in values.items()} | dict(self.zero_points)

    def read(self, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """What was stored, as numbers."""
        return {name: decoded(array, self.of(name)) for name, array in arrays.items() if name not in self.zero_points}

    def centred(self, values: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
        """A tensor less its zero points."""
        points = self.shifts.get(name)
        return values[name] if points is None else values[name].astype(np.float64) - points

    def fill(self, random: np.random.Generator, name: str, dims: tuple[int, ...], largest: int, exact: bool) -> Floats:
        """Numbers that the tensor's type has: integers up to `largest`, or reals up to 1, or all integers of it."""
        dtype = self.has_numbers_of(name)
        if dtype == dnn.f32 and exact:
            return random.integers(-largest, largest, dims, np.int32, endpoint=True).astype(np.float32)
        if dtype == dnn.f32:
            values = random.random(dims, np.float32)
            values *= 2
            values -= 1
            return values
        if dtype in INTEGERS:
            low, high = NIBBLES.get(dtype, limits_of(dtype))
            largest = largest if exact else min(high, LARGEST_INTEGER)
            least, largest = max(-largest, low), min(largest, high)
        elif not exact:
            most = LARGEST_REALS.get(dtype, 1)
            return rounded(random.uniform(-most, most, dims), dtype).astype(np.float32)
        else:
            largest = min(largest, LARGEST_INTEGERS.get(dtype, largest))
            least = -largest
        return rounded(random.integers(least, largest, dims, np.int32, endpoint=True), dtype).astype(np.float32)


ALL_F32 = TypedNumbers()
