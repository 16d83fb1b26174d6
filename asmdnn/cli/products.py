"""What the drivers of matrix products share: data, the answer in float64 with its tolerance, and post-ops.

Integers are small enough that every partial sum is exact in f32, so the result must be equal.  Real numbers in [-1, 1)
may differ per element by gamma(K + 2) * (|row| * |column| + ...): see reference.py, where the bound comes from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.cli.judge import Answer
from asmdnn.cli.quantization import real
from asmdnn.cli.reference import EXACT_SUM, LARGEST_INTEGER, LARGEST_SRC_INTEGER, UNIT_ROUNDOFF
from asmdnn.errors import InvalidArguments

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SUM_ROUNDINGS = 2  # of a bias, and of the last addition


@dataclass(frozen=True, slots=True)
class ChainOp:
    """sum with its scale, or relu with its slope."""

    kind: str
    number: float

    def __str__(self) -> str:
        return f"{self.kind}:{self.number:g}"

    def post_op(self) -> dnn.Sum | dnn.Eltwise:
        return dnn.Sum(self.number) if self.kind == "sum" else dnn.Eltwise("relu", self.number)

    @property
    def is_exact(self) -> bool:
        """Whether it rounds no small integer."""
        return self.number in (0.0, 0.5, 1.0)


def chain(word: str) -> tuple[ChainOp, ...]:
    """`sum:0.5+relu` -> its entries.  Raises InvalidArguments."""
    entries = []
    for entry in word.split("+") if word else []:
        kind, _, number = entry.removeprefix("eltwise_").partition(":")
        if kind not in ("sum", "relu"):
            raise InvalidArguments(f"has '{entry}'; implemented are sum[:SCALE] and relu[:SLOPE], joined by +")
        entries.append(ChainOp(kind, real(number) if number else float(kind == "sum")))
    return tuple(entries)


def joined(ops: Sequence[ChainOp]) -> str:
    return "+".join(map(str, ops))


@dataclass
class Filler:
    """Random arguments of sums of `reduction` products; seeded, so that both sides and every run get the same."""

    reduction: int
    exact: bool
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def factors(self, src: Sequence[int], weights: Sequence[int]) -> tuple[Floats, Floats]:
        """The two operands of the products."""
        products = max(1, self.reduction)
        first = max(1, min(LARGEST_SRC_INTEGER, EXACT_SUM // 4 // products))
        second = max(1, min(LARGEST_INTEGER, EXACT_SUM // 4 // (products * first)))
        return self.values(src, first), self.values(weights, second)

    def values(self, dims: Sequence[int], bound: int = LARGEST_INTEGER) -> Floats:
        if self.exact:
            return self.random.integers(-bound, bound, tuple(dims), np.int32, endpoint=True).astype(np.float32)
        return self.random.random(tuple(dims), np.float32) * 2 - 1

    def dst(self, dims: Sequence[int], is_read: bool) -> Floats:
        """NaN, unless it is read: an element that is not written shows."""
        return self.values(dims) if is_read else np.full(tuple(dims), np.nan, np.float32)


def product(a: Floats, b: Floats) -> tuple[Doubles, Doubles]:
    """a @ b in float64, and |row| * |column| of each element."""
    rows = np.sqrt(np.square(a, dtype=np.float64).sum(axis=-1))
    columns = np.sqrt(np.square(b, dtype=np.float64).sum(axis=-2))
    return np.matmul(a.astype(np.float64), b.astype(np.float64)), rows[..., :, None] * columns[..., None, :]


def answer_of(
    values: Doubles, size: Doubles, reduction: int, exact: bool, ops: Sequence[ChainOp] = (), dst: Floats | None = None
) -> Answer:
    """The result behind the post-ops, given the sums and the sizes of what was added up."""
    roundings = reduction + SUM_ROUNDINGS
    for op in ops:
        roundings += 2
        if op.kind == "sum":
            assert dst is not None
            old = op.number * dst.astype(np.float64)
            values, size = values + old, size + np.abs(old)
        else:
            values, size = np.where(values > 0, values, op.number * values), size * max(1.0, abs(op.number))
    gamma = roundings * UNIT_ROUNDOFF / (1 - roundings * UNIT_ROUNDOFF)
    return Answer(values, 0.0 if exact else gamma * size, "numpy")
