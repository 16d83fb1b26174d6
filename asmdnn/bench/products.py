"""Random arguments of sums of products: numbers that the tensors' types have.

Integers are small enough that every partial sum is exact in f32 in any order, but with as many bits as that allows: the
result must be equal, which finds a single lost or doubled product and arithmetic of less precision.  Real numbers in
[-1, 1) may differ by rounding.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asmdnn.bench.numbers import EXACT_SUM, LARGEST_INTEGER, TypedNumbers
from asmdnn.records import dataclass

Floats = npt.NDArray[np.float32]

LARGEST_SRC_INTEGER = 4


@dataclass(frozen=True, slots=True)
class Filler:
    """Of sums of `reduction` products."""

    random: np.random.Generator
    reduction: int
    exact: bool
    numbers: TypedNumbers

    def factors(self, names: Sequence[str], dims: Sequence[tuple[int, ...]]) -> dict[str, Floats]:
        """The two operands of the products, by their names."""
        products = max(1, self.reduction)
        first = max(1, min(LARGEST_SRC_INTEGER, EXACT_SUM // 2 // products))
        second = max(1, min(LARGEST_INTEGER, EXACT_SUM // 2 // (products * first)))
        given = zip(names, dims, (first, second), strict=True)
        return {name: self.values(name, size, bound) for name, size, bound in given}

    def values(self, name: str, dims: tuple[int, ...], bound: int = LARGEST_INTEGER) -> Floats:
        return self.numbers.fill(self.random, name, dims, bound, self.exact)
