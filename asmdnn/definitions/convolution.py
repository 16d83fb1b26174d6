"""Convolutions and deconvolutions: a matrix product for every position of the kernel."""

from collections.abc import Iterator

import numpy as np

from asmdnn.definitions.rounding import Array
from asmdnn.definitions.windows import Sizes, SlidingWindow, taps


def convolution(x: Array, weights: Array, window: SlidingWindow, groups: int = 1) -> Array:
    """(n, o, outputs..) of x (n, i, ...) and weights (o, i / groups, kernel..); integers too."""
    return _summed(taps(x, window), weights, groups)


def deconvolution(x: Array, weights: Array, window: SlidingWindow, outputs: Sizes, groups: int = 1) -> Array:
    """The same of the elements that `spread` gives."""
    return _summed(spread(x, window, outputs), weights, groups)


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


def _summed(parts: Iterator[tuple[Sizes, Array]], weights: Array, groups: int) -> Array:
    """Of matrices of all channels of a group; numpy leaves those without a dense axis to a loop, not to BLAS."""
    o, into, *kernel = weights.shape
    split = weights.reshape(groups, o // groups, into, *kernel)
    filters = np.ascontiguousarray(np.moveaxis(split, (0, 1, 2), (-3, -2, -1)))
    total: Array | None = None
    for at, part in parts:
        dims = part.shape[0], o, *part.shape[2:]
        product = filters[at] @ part.reshape(part.shape[0], groups, into, -1)
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None, "a kernel has positions"
    return total.reshape(dims)
