"""What the drivers of matrix products share: data, and the answer in float64 with its tolerance.

Integers are small enough that every partial sum is exact in f32, so the result must be equal.  Real numbers in [-1, 1)
may differ per element by gamma(K + 2) * (|row| * |column| + ...): see reference.py, where the bound comes from.
Post-ops: see chains.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.judge import Answer
from asmdnn.bench.numbers import ALL_F32, EXACT_SUM, INTEGERS, LARGEST_INTEGER, TypedNumbers
from asmdnn.bench.reference import LARGEST_SRC_INTEGER
from asmdnn.bench.typed import narrowed
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.primitives.attributes.attr import NO_ATTR

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SUM_ROUNDINGS = 4  # of two scales, a bias, and the last addition


@dataclass
class Filler:
    """Random arguments of sums of `reduction` products; seeded, so that both sides and every run get the same."""

    reduction: int
    exact: bool
    numbers: TypedNumbers = ALL_F32
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def factors(self, src: Sequence[int], weights: Sequence[int]) -> tuple[Floats, Floats]:
        """The two operands of the products."""
        products = max(1, self.reduction)
        first = max(1, min(LARGEST_SRC_INTEGER, EXACT_SUM // 4 // products))
        second = max(1, min(LARGEST_INTEGER, EXACT_SUM // 4 // (products * first)))
        return self.values(src, first, "src"), self.values(weights, second, "weights")

    def values(self, dims: Sequence[int], bound: int = LARGEST_INTEGER, name: str = "") -> Floats:
        """Numbers that the tensor's type has."""
        if self.numbers.has_numbers_of(name) != dnn.f32:
            return self.numbers.fill(self.random, name, tuple(dims), bound, self.exact)
        if self.exact:
            return self.random.integers(-bound, bound, tuple(dims), np.int32, endpoint=True).astype(np.float32)
        return self.random.random(tuple(dims), np.float32) * 2 - 1

    def dst(self, dims: Sequence[int], is_read: bool) -> Floats:
        """NaN, unless it is read: an element that is not written shows; 0 of integers."""
        unwritten = 0 if self.numbers.of("dst") in INTEGERS else np.nan
        return self.values(dims, name="dst") if is_read else np.full(tuple(dims), unwritten, np.float32)


def scaled_product(a: Floats, b: Floats, bias: Floats | None, factor: Doubles | float) -> tuple[Doubles, Doubles]:
    """factor * (a @ b) + bias, and the size of what was added up."""
    values, size = product(a, b)
    values, size = values * factor, size * np.abs(factor)
    return (values, size) if bias is None else (values + bias, size + np.abs(bias))


def product(a: Floats, b: Floats) -> tuple[Doubles, Doubles]:
    """a @ b in float64, and |row| * |column| of each element."""
    rows = np.sqrt(np.square(a, dtype=np.float64).sum(axis=-1))
    columns = np.sqrt(np.square(b, dtype=np.float64).sum(axis=-2))
    return np.matmul(a.astype(np.float64), b.astype(np.float64)), rows[..., :, None] * columns[..., None, :]


def answer_of(
    sums: tuple[Doubles, Doubles],
    reduction: int,
    exact: bool,
    attr: dnn.Attr = NO_ATTR,
    arrays: Mapping[str, Floats] = MappingProxyType({}),
    divisor: Doubles | float = 1.0,
    numbers: TypedNumbers = ALL_F32,
) -> Answer:
    """The result behind the post-ops, the scales of dst and its zero point, given the sums and the sizes of what was
    added up; `arrays` are the arguments, as numbers."""
    values, size = sums
    roundings = reduction + SUM_ROUNDINGS
    error = np.asarray(roundings * UNIT_ROUNDOFF / (1 - roundings * UNIT_ROUNDOFF) * size)
    if attr.post_ops or attr.scales:
        values, error = chains.apply(attr, values, error, arrays, divisor)
    if not numbers.are_f32:
        error = np.zeros_like(error) if leaves_integers(attr, arrays, numbers) else error
        values, error = narrowed(values + numbers.zero_point("dst"), error, numbers.of("dst"))
    return Answer(values, 0.0 if exact and chains.is_exact(attr) else error, "numpy")


def leaves_integers(attr: dnn.Attr, arrays: Mapping[str, Floats], numbers: TypedNumbers) -> bool:
    """Whether dst has sums of integers as they are."""
    of_integers = all(numbers.of(name) in INTEGERS for name in ("src", "weights"))
    is_plain = not (attr.post_ops or attr.scales or "bias" in arrays)
    return of_integers and is_plain and numbers.of("dst") == dnn.s32
