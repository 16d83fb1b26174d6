"""Normalizations: statistics along axes, what they make of x, and local response normalization."""

from itertools import product
from math import prod
from typing import Any

import numpy as np

from asmdnn.definitions.rounding import UNIT, UNIT_ROUNDOFF, Array, Doubles, gamma

STATISTICS_ULPS, ULPS = 8, 6
TREE_ULPS = 64  # sums of a chunk and of the tree of chunks
GRADIENT_ROUNDINGS = 24  # of a factor by a root and a division, which normalized values have, too, and products
LRN_ROUNDINGS = 16  # of the power, the base and the product


def moments(x: Array, axes: tuple[int, ...], rms: bool = False) -> tuple[Array, Array]:
    """Mean and variance, with dims of 1; rms: 0 and the mean of squares."""
    if rms:
        squares = np.square(x).mean(axes, keepdims=True)
        return np.zeros_like(squares), squares
    mean = x.mean(axes, keepdims=True)
    return mean, np.square(x - mean).mean(axes, keepdims=True)


def normalized(x: Array, mean: Array, variance: Array, epsilon: float) -> Array:
    """(x - mean) / sqrt(variance + epsilon)."""
    return np.asarray((x - mean) * inverse_deviation(variance, epsilon))


def inverse_deviation(variance: Array, epsilon: float) -> Array:
    return np.asarray(1 / np.sqrt(variance + np.asarray(epsilon, variance.dtype)))


def by_groups(x: Array, groups: int) -> Array:
    """(n, groups, channels of a group, pixels) of x (n, c, ...)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, prod(x.shape[2:]))


def by_channels(values: Array, ndim: int) -> Array:
    """One value a channel, for a tensor (n, c, ...)."""
    return values.reshape(-1, *[1] * (ndim - 2))


def rows_error(x: Doubles, centred: Doubles, factor: Doubles, scale: Any, shift: Any) -> Doubles:
    """Of centred * factor * scale + shift along rows: the mean is off by some units of x's size, the factor by its own,
    and by what cancels in the variance of a row."""
    size = np.abs(x).max(-1, keepdims=True)
    moved = STATISTICS_ULPS * UNIT * size * factor * np.abs(scale)
    result = np.abs(centred * factor * scale)
    return np.asarray(moved + ULPS * UNIT * (2 * result + np.abs(shift)) * (1 + (size * factor) / 4))


def channels_error(size: float, values: Doubles, factor: Doubles, scale: Any, shift: Any, result: Doubles) -> Doubles:
    """Of values * scale + shift, which are `result` with what is added; size: of the largest x.  The mean is off by
    some units of it; sums of a chunk and of the tree round some hundred times."""
    moved = TREE_ULPS * UNIT * size * factor * np.abs(scale) * (1 + np.abs(values) * (1 + size * factor))
    return np.asarray(moved + 8 * UNIT * (np.abs(values * scale) + np.abs(shift) + np.abs(result)))


def statistics_error(size: Any, ulps: float = TREE_ULPS) -> tuple[Any, Any]:
    """Of mean and variance of numbers of that size."""
    return ulps * UNIT * size, ulps * UNIT * size * size


def normalization_gradient(
    x: Array, d: Array, statistics: tuple[Array | None, Array], epsilon: float, scale: Any, axes: tuple[int, ...]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """(The gradient of x, of d that of normalized(x, *statistics) * scale + shift; d times normalized x, whose sums are
    the scale's), each with what rounding moves it by.  A mean of None: there is none, as in RMS.  axes: along which the
    statistics are those of x; none if they were given."""
    mean, variance = statistics
    factor = inverse_deviation(variance, epsilon)
    h, g = (x if mean is None else x - mean) * factor, d * scale
    products, size, roundings = d * h, np.abs(g), float(GRADIENT_ROUNDINGS)
    inner = g
    if axes:
        of_g, size_of_g, of_both, size_of_both = (
            sized.mean(axes, keepdims=True) for terms in (g, g * h) for sized in (terms, np.abs(terms))
        )
        inner = (g if mean is None else g - of_g) - h * of_both
        size = size + size_of_g + np.abs(h) * size_of_both
        roundings += sum_roundings(x.size // of_g.size)
    error = np.abs(products) * gamma(GRADIENT_ROUNDINGS)
    return (factor * inner, factor * size * gamma(roundings)), (products, error)


def sum_roundings(count: int) -> float:
    """Roundings of a sum of so many: each is up or down, of which eight standard deviations are left over."""
    return float(min(count, 8 * np.sqrt(count)))


def local_base(x: Array, axes: tuple[int, ...], size: int, alpha: float, k: float) -> Array:
    """k + alpha / places * (sum of squares in a window of `size` along each axis); what is outside counts as 0."""
    before = [min((size - 1) // 2, x.shape[dim]) if dim in axes else 0 for dim in range(x.ndim)]
    after = [min(size // 2, x.shape[dim]) if dim in axes else 0 for dim in range(x.ndim)]
    padded, total = np.pad(np.square(x), list(zip(before, after, strict=True))), np.zeros_like(x)
    for at in product(*(range(a + b + 1) for a, b in zip(before, after, strict=True))):
        total += padded[tuple(slice(i, i + n) for i, n in zip(at, x.shape, strict=True))]
    return np.asarray(k + alpha / size ** len(axes) * total)


def local_response(x: Array, axes: tuple[int, ...], size: int, alpha: float, beta: float, k: float) -> Array:
    """LRN: x / base^beta."""
    return np.asarray(x * local_base(x, axes, size, alpha, k) ** -beta)


def local_response_gradient(
    x: Array, d: Array, axes: tuple[int, ...], size: int, alpha: float, beta: float, k: float
) -> tuple[Array, Array]:
    """(The gradient of x, of d that of LRN's result; the size of what is added up): every element has shares in the
    results of all windows that it is in."""
    base = local_base(x, axes, size, alpha, k)
    factor = 2 * beta * alpha / size ** len(axes)
    direct, share = d * base**-beta, d * x * base ** (-beta - 1)
    sums = (reflected_sums(values, axes, size) for values in (share, np.abs(share)))
    total, most = (factor * found for found in sums)
    return np.asarray(direct - x * total), np.asarray(np.abs(direct) + np.abs(x) * most)


def reflected_sums(x: Array, axes: tuple[int, ...], size: int) -> Array:
    """Of all elements in whose window of `size` along each axis an element is."""
    before, after = size // 2, (size - 1) // 2
    widths = [(before, after) if dim in axes else (0, 0) for dim in range(x.ndim)]
    padded, total = np.pad(x, widths), np.zeros_like(x)
    for at in product(*(range(a + b + 1) for a, b in widths)):
        total += padded[tuple(slice(i, i + n) for i, n in zip(at, x.shape, strict=True))]
    return total


def local_response_error(values: Array, places: int, beta: float) -> Array:
    """A rounding for each square of a window, which the power scales, and some more."""
    return np.asarray(UNIT_ROUNDOFF * (LRN_ROUNDINGS + beta * places) * np.abs(values))
