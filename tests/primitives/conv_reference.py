"""The convolution of asmdnn/definitions in float64, with bias and post-ops; and what rounding may do.

Two kinds of data.  Small integers: every partial sum is exact in f32, in any order, so results must be equal.  Real
numbers: with K products a sum, the error of a result is at most gamma(n) times the sum of the absolute values of all
that is added (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1), n = K + 1 for the bias + 2
for every post-op, whatever the order.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asmdnn.bench.taps import sums_of
from tests.primitives.conv_case import ConvCase

UNIT_ROUNDOFF = 2.0**-24
EXACT = 2**24

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Data:
    src: Floats
    weights: Floats
    bias: Floats | None
    old: Floats | None  # what dst held, if a post-op reads it

    def arrays(self) -> dict[str, Floats]:
        named = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.old}
        return {name: array for name, array in named.items() if array is not None}


def make_data(case: ConvCase, integers: bool, seed: int = 7) -> Data:
    random = np.random.default_rng(seed)

    def fill(dims: tuple[int, ...]) -> Floats:
        if integers:
            return (4 * random.integers(-4, 4, dims, endpoint=True)).astype(np.float32)
        return random.uniform(-1, 1, dims).astype(np.float32)

    p = case.problem
    assert 256 * (p.reduction + 2) <= EXACT, "sums of these integers would round"
    reads = any(word.startswith("sum") for word in case.post_ops)
    return Data(
        fill(p.src_dims),
        fill(p.weights_dims),
        fill((p.oc,)) if case.bias else None,
        fill(p.dst_dims) if reads else None,
    )


def sums(case: ConvCase, src: Doubles, weights: Doubles) -> Doubles:
    """The sum of products of every output element."""
    return sums_of(case.problem, src, weights)


def by_channel(case: ConvCase, values: Floats) -> Floats:
    """A vector of channels, to be broadcast to images."""
    return values.reshape(-1, *[1] * len(case.problem.axes))


def expected(case: ConvCase, data: Data) -> Doubles:
    """dst of the documentation's formula."""
    result = sums(case, data.src.astype(np.float64), data.weights.astype(np.float64))
    if data.bias is not None:
        result += by_channel(case, data.bias)
    for word in case.post_ops:
        name, _, number = word.partition(":")
        if name == "sum":
            assert data.old is not None
            result = result + float(number or 1) * data.old
        else:
            negative = float(number) * result if number else 0.0  # also of -inf
            result = np.where(result < 0, negative, result)  # NaN stays
    return result


def tolerance(case: ConvCase, data: Data) -> Doubles:
    """The most by which an f32 result may differ; post-ops here have factors of at most 1."""
    size = sums(case, np.abs(data.src, dtype=np.float64), np.abs(data.weights, dtype=np.float64))
    if data.bias is not None:
        size += by_channel(case, np.abs(data.bias))
    if data.old is not None:
        size += sum(word.startswith("sum") for word in case.post_ops) * np.abs(data.old)
    n = case.problem.reduction + 1 + 2 * len(case.post_ops)
    bound: Doubles = size * (n * UNIT_ROUNDOFF / (1 - n * UNIT_ROUNDOFF))
    return bound
