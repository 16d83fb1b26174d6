"""A depthwise post-op in float64, with a bound of the error, for chains.py.

What reaches a sum of K products from values x that are off by e, and its own rounding, is at most

    sum of |w| e  +  gamma(K + 2) * (sum of |w| (|x| + e) + |bias|),  gamma(n) = n u / (1 - n u),  u = 2^-24

after Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
"""

from math import prod

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.definitions.convolution import convolution
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.definitions.windows import SlidingWindow

Doubles = npt.NDArray[np.float64]

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
    """Each channel separately."""
    window = SlidingWindow(op.kernel, op.strides, tuple(d + 1 for d in op.dilations), op.padding_l, op.padding_r)
    return convolution(x, w.reshape(len(w), 1, *op.kernel), window, groups=len(w))
