"""How far rounding can move results of Winograd's convolution: a bound from its matrices.

A result is the sum over (m + 2)^2 frequencies of A^T's coefficients times C products of transformed source and weights.
With |.| the Euclidean norm of rows, Cauchy and Schwarz bound the size of what is added by

    k^2 * |tile| * |filter|,  k = max over rows y of A^T of  sum over i of |A[i, y]| |G[i]| |B[i]|

with k = 3.9 for m = 2 and 9.4 for m = 4, and `tile` all that a tile of the source holds.  Each term is rounded C times
in the sum over channels and ROUNDINGS times in the transforms, so that the bound is gamma(C + ROUNDINGS) times the size
(Higham, section 3.1), where direct convolution has gamma(9 C): 1.7 times as much for m = 2, 10 times for m = 4.
"""

import numpy as np
import numpy.typing as npt

from asmdnn.bench.problems import ConvProblem

Doubles = npt.NDArray[np.float64]

M = 4  # the larger of the two forms
ROUNDINGS = 30  # of a term: 12 in each of source and products, 6 in the weights, for both axes together
GROWTH = 9.5  # k, rounded up


def size_of_sums(problem: ConvProblem, src: npt.NDArray[np.float32], filters: Doubles) -> Doubles:
    """The size of what is added for each result; filters: the norm of each output channel's weights."""
    images, groups = len(src), problem.groups
    squares = np.square(src, dtype=np.float64).reshape(images * groups, -1, *src.shape[2:]).sum(axis=1)
    reach = M - 1  # further than its window, a tile of the source may go on each side
    sides = [(axis.p + reach, axis.o + 2 + 2 * reach) for axis in problem.axes]
    padded = np.zeros((images * groups, *(1 + size for _, size in sides)))
    counts = [min(axis.i, size - before) for (before, size), axis in zip(sides, problem.axes, strict=True)]
    (top, _), (left, _) = sides
    rows, cols = counts
    padded[:, 1 + top : 1 + top + rows, 1 + left : 1 + left + cols] = squares[:, :rows, :cols]
    total, window = padded.cumsum(axis=1).cumsum(axis=2), 3 + 2 * reach
    down = total[:, window:] - total[:, :-window]
    norms = np.sqrt(np.maximum(down[:, :, window:] - down[:, :, :-window], 0))
    norms = np.repeat(norms.reshape(images, groups, *norms.shape[1:]), problem.oc // groups, axis=1)
    return np.asarray(GROWTH**2 * norms * filters.reshape(-1, 1, 1))
