"""Convolutions, deconvolutions and their gradients: a matrix product for every position of the kernel.

`sliding` and `spreading` say what each position multiplies, in the places of the outputs; all else is the same for
both.  The gradient of a convolution's data is a deconvolution with its weights `turned`, and the other way round.

Sizes of sums are as in products.py: |patch| * |filter|, the Euclidean norms of what a sum multiplies.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

import numpy as np

from asmdnn.definitions.normalization import by_groups
from asmdnn.definitions.rounding import Array, Doubles
from asmdnn.definitions.windows import Sizes, SlidingWindow, taps

Positions = Callable[[Array], Iterator[tuple[Sizes, Array]]]


def sliding(window: SlidingWindow) -> Positions:
    """Of a convolution."""
    return partial(taps, window=window)


def spreading(window: SlidingWindow, outputs: Sizes) -> Positions:
    """Of a deconvolution."""
    return partial(spread, window=window, outputs=outputs)


def convolution(x: Array, weights: Array, window: SlidingWindow, groups: int = 1) -> Array:
    """(n, o, outputs..) of x (n, i, ...) and weights (o, i / groups, kernel..); integers too."""
    return summed(x, weights, sliding(window), groups)


def deconvolution(x: Array, weights: Array, window: SlidingWindow, outputs: Sizes, groups: int = 1) -> Array:
    """The same of the elements that `spread` gives."""
    return summed(x, weights, spreading(window, outputs), groups)


def spread(x: Array, window: SlidingWindow, outputs: Sizes) -> Iterator[tuple[Sizes, Array]]:
    """Every position t of the kernel, and what it multiplies in the place of each output: element i of x is at output
    i * stride + t * dilation - before; elsewhere there are zeros."""
    axes = list(zip(x.shape[2:], outputs, *window.fields()[:4], strict=True))
    sizes = [max(a + o, (i - 1) * s + (k - 1) * d + 1) for i, o, k, s, d, a in axes]
    cut = tuple(slice(a, a + o) for _, o, _, _, _, a in axes)
    for at in np.ndindex(*window.kernel):
        whole = np.zeros((*x.shape[:2], *sizes), x.dtype)
        places = (slice(t * d, t * d + (i - 1) * s + 1, s) for t, (i, _, _, s, d, _) in zip(at, axes, strict=True))
        whole[(slice(None), slice(None), *places)] = x
        yield at, whole[(slice(None), slice(None), *cut)]


def summed(x: Array, weights: Array, positions: Positions, groups: int = 1) -> Array:
    """Of matrices of all channels of a group; numpy leaves those without a dense axis to a loop, not to BLAS."""
    o, into, *kernel = weights.shape
    split = weights.reshape(groups, o // groups, into, *kernel)
    filters = np.ascontiguousarray(np.moveaxis(split, (0, 1, 2), (-3, -2, -1)))
    total: Array | None = None
    for at, part in positions(x):
        dims = part.shape[0], o, *part.shape[2:]
        product = filters[at] @ part.reshape(part.shape[0], groups, into, prod(part.shape[2:]))
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None, "a kernel has positions"
    return total.reshape(dims)


def turned(weights: Array, groups: int = 1) -> Array:
    """Weights (o, i / groups, kernel..) as the gradient of the data has them: (i, o / groups, kernel..)."""
    o, into, *kernel = weights.shape
    split = weights.reshape(groups, o // groups, into, *kernel)
    return np.swapaxes(split, 1, 2).reshape(groups * into, o // groups, *kernel)


def weights_gradient(x: Array, diff: Array, positions: Positions, groups: int = 1) -> Array:
    """(o, i / groups, positions), of x (n, i, ..) and diff (n, o, outputs..)."""
    outputs = by_groups(diff, groups)
    parts = [by_groups(part, groups) for _, part in positions(x)]
    found = np.stack([np.einsum("ngop,ngip->goi", outputs, part, optimize=True) for part in parts], -1)
    return found.reshape(diff.shape[1], x.shape[1] // groups, len(parts))


def sums_size(x: Array, weights: Array, positions: Positions, groups: int = 1) -> Doubles:
    """The size of the sums of `summed`."""
    n, channels, *pixels = x.shape
    squares = np.square(x, dtype=np.float64).reshape(n, groups, channels // groups, *pixels).sum(axis=2)
    patches = np.sqrt(sum(part for _, part in positions(squares)))
    return np.asarray(np.repeat(patches, len(weights) // groups, axis=1) * filter_norms(weights, len(pixels)))


def filter_norms(weights: Array, axes: int) -> Doubles:
    """The Euclidean norm of each output channel's weights, to be broadcast to (n, o, outputs..)."""
    squares = np.square(weights, dtype=np.float64).sum(axis=tuple(range(1, weights.ndim)))
    return np.asarray(np.sqrt(squares).reshape(len(weights), *[1] * axes))


def weights_gradient_size(x: Array, diff: Array, positions: int, groups: int = 1) -> Doubles:
    """The size of the sums of `weights_gradient`: norms of whole channels, as padding only takes from them."""
    of_x, of_diff = (np.sqrt(np.square(a, dtype=np.float64).sum(axis=(0, *range(2, a.ndim)))) for a in (x, diff))
    o, into = diff.shape[1], x.shape[1] // groups
    size = of_diff.reshape(groups, o // groups, 1) * of_x.reshape(groups, 1, into)
    return np.repeat(size.reshape(o, into, 1), positions, axis=2)
