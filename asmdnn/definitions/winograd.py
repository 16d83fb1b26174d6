"""How far rounding can move results of Winograd's convolution of 3x3 kernels: a bound from its matrices.

A result is the sum over (m + 2)^2 frequencies of A^T's coefficients times C products of transformed source and weights.
With |.| the Euclidean norm of rows, Cauchy and Schwarz bound the size of what is added by

    k^2 * |tile| * |filter|,  k = max over rows y of A^T of  sum over i of |A[i, y]| |G[i]| |B[i]|

with k = 3.9 for m = 2 and 9.4 for m = 4, and `tile` all that a tile of the source holds.  Each term is rounded C times
in the sum over channels and ROUNDINGS times in the transforms, so that the bound is gamma(C + ROUNDINGS) times the size
(Higham, section 3.1), where direct convolution has gamma(9 C): 1.7 times as much for m = 2, 10 times for m = 4.

A gradient of weights is a sum over tiles.  By the same two inequalities, and once more for the sum, what is added to it
is at most

    k^2 * 2 * |src| * |diff_dst|,  k = max over columns r of G of  sum over i of |G[i, r]| |A[i]| |B[i]|

with norms of whole channels: an element of src is in up to two tiles along an axis, so in four.  k = 10.4 for m = 4.

Where transformed tiles and weights are rounded to bf16, each rounding is one of 2^-9, as much as BF16_ROUNDINGS / 2 of
f32's.
"""

import numpy as np

from asmdnn.definitions.convolution import filter_norms, weights_gradient_size
from asmdnn.definitions.rounding import Array, Doubles
from asmdnn.definitions.windows import SlidingWindow

LARGEST = 4  # of the two forms' m
ROUNDINGS = 30  # of a term: 12 in each of source and products, 6 in the weights, for both axes together
BF16_ROUNDINGS = 2 << 15  # of a transformed tile and of weights
GROWTH = {2: 3.9, 4: 9.5}  # k, rounded up
GRADIENT_ROUNDINGS = 36  # of a term of a gradient of weights: 12 in each of source, diff_dst and sums
GRADIENT_GROWTH = 10.4  # k of m = 4, rounded up
OVERLAP = 2  # the root of in how many tiles an element is


def winograd_gradient_size(x: Array, diff: Array, groups: int = 1) -> Doubles:
    """The size of what is added for each gradient of weights by F(4x4), o x (i / groups) x 9, of src (n, i, h, w) and
    diff_dst (n, o, h', w')."""
    return np.asarray(GRADIENT_GROWTH**2 * OVERLAP * weights_gradient_size(x, diff, 9, groups))


def winograd_size(x: Array, weights: Array, window: SlidingWindow, groups: int = 1, m: int = LARGEST) -> Doubles:
    """The size of what is added for each result of F(m x m), of x (n, i, h, w) and weights (o, i / groups, 3, 3)."""
    images, channels, *pixels = x.shape
    squares = np.square(x, dtype=np.float64).reshape(images * groups, channels // groups, *pixels).sum(axis=1)
    reach = m - 1  # further than its window, a tile of the source may go on each side
    outputs = window.outputs(x.shape[2:])
    sides = [(before + reach, o + 2 + 2 * reach) for before, o in zip(window.before, outputs, strict=True)]
    padded = np.zeros((images * groups, *(1 + size for _, size in sides)))
    counts = [min(i, size - before) for (before, size), i in zip(sides, x.shape[2:], strict=True)]
    (top, _), (left, _) = sides
    rows, cols = counts
    padded[:, 1 + top : 1 + top + rows, 1 + left : 1 + left + cols] = squares[:, :rows, :cols]
    total, span = padded.cumsum(axis=1).cumsum(axis=2), 3 + 2 * reach
    down = total[:, span:] - total[:, :-span]
    norms = np.sqrt(np.maximum(down[:, :, span:] - down[:, :, :-span], 0))
    norms = np.repeat(norms.reshape(images, groups, *norms.shape[1:]), len(weights) // groups, axis=1)
    return np.asarray(GROWTH[m] ** 2 * norms * filter_norms(weights, 2))
