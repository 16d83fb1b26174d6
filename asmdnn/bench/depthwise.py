"""A depthwise post-op in float64, with a bound of the error, for chains.py.

What reaches a sum of K products from values x that are off by e, and its own rounding, is at most

    sum of |w| e  +  gamma(K + 2) * (sum of |w| (|x| + e) + |bias|),  gamma(n) = n u / (1 - n u),  u = 2^-24

after Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
"""

from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn

Doubles = npt.NDArray[np.float64]

UNIT_ROUNDOFF = 2.0**-24
SEED = 5


def filters(op: dnn.Depthwise) -> dict[str, npt.NDArray[np.float32]]:
    """Data for its tensors, by their names: numbers in [-1, 1)."""
    random = np.random.default_rng(SEED)
    return {name: random.uniform(-1, 1, desc.dims).astype(np.float32) for name, desc in op.tensors.items()}


def apply(
    op: dnn.Depthwise, x: Doubles, e: Doubles, weights: npt.NDArray[np.float32], bias: npt.NDArray[np.float32] | None
) -> tuple[Doubles, Doubles]:
    """The result for values x that are off by e, and how far that is off."""
    w = weights.astype(np.float64)
    b = np.zeros(1) if bias is None else bias.astype(np.float64).reshape(-1, *[1] * len(op.kernel))
    values = sums(op, x, w) + b
    moved = sums(op, e, np.abs(w))
    terms = (prod(op.kernel) + 2) * UNIT_ROUNDOFF
    size = sums(op, np.abs(x), np.abs(w)) + moved + np.abs(b)
    return values, moved + size * (terms / (1 - terms))


def sums(op: dnn.Depthwise, x: Doubles, w: Doubles) -> Doubles:
    """Every tap of the kernel times the elements that it meets."""
    around = [(0, 0), (0, 0), *zip(op.padding_l, (max(0, n) for n in op.padding_r), strict=True)]
    padded, total = np.pad(x, around), np.zeros(op.result_dims(x.shape))
    for tap in product(*map(range, op.kernel)):
        places = zip(tap, op.dilations, op.strides, total.shape[2:], strict=True)
        window: list[Any] = [slice(t * (d + 1), t * (d + 1) + (size - 1) * s + 1, s) for t, d, s, size in places]
        position: tuple[Any, ...] = (slice(None), *tap)
        factors = w.reshape(len(w), *op.kernel)[position]
        total += factors.reshape(-1, *[1] * len(tap)) * padded[(slice(None), slice(None), *window)]
    return total
