"""Arithmetic in f32 with sums in several orders, and numbers that make it hard."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from asmdnn.definitions.windows import SlidingWindow, taps, window_means
from tests.generators.references.winograd import matrices

LOST = np.float32(0.995 * 2.0**-12)  # its square is lost beside 1


def one_by_one(x: Any, add: Any = np.add) -> Any:
    return add.accumulate(x, -1)[..., -1]


def backwards(x: Any, add: Any = np.add) -> Any:
    return one_by_one(x[..., ::-1], add)


def in_pairs(x: Any, add: Any = np.add) -> Any:
    while half := x.shape[-1] // 2:
        x = np.concatenate([add(x[..., :half], x[..., half : 2 * half]), x[..., 2 * half :]], -1)
    return x[..., 0]


def in_chains(x: Any, add: Any = np.add) -> Any:
    """As kernels do: in four vectors of eight lanes."""
    return in_pairs(one_by_one(np.moveaxis(x.reshape(*x.shape[:-1], -1, 32), -2, -1), add), add)


ORDERS = one_by_one, backwards, in_pairs


def array_of(order: Any) -> Any:
    """The type of arrays that are added up in an order, in their own type."""

    class Ordered(np.ndarray):
        def sum(self, axis: Any, *, keepdims: bool = False, add: Any = np.add, **_: Any) -> Any:
            axes = (axis,) if isinstance(axis, int) else axis
            last = np.moveaxis(np.asarray(self), axes, range(-len(axes), 0))
            found = order(last.reshape(*last.shape[: -len(axes)], -1), add)
            return (np.expand_dims(found, axes) if keepdims else found).view(Ordered)

        def prod(self, axis: Any, *, keepdims: bool = False) -> Any:
            return self.sum(axis, keepdims=keepdims, add=np.multiply)

        def mean(self, axis: Any, *, keepdims: bool = False) -> Any:
            total = self.sum(axis, keepdims=keepdims)
            return total / np.float32(self.size // total.size)

        def __matmul__(self, other: Any) -> Any:
            return (self[..., None, :] * np.swapaxes(other, -1, -2)[..., None, :, :]).view(Ordered).sum(-1)

        def __rmatmul__(self, other: Any) -> Any:
            return other.view(Ordered) @ self

    return Ordered


def rows(random: Any, n: int) -> Any:
    """f32[6, n]: of mixed and of one sign, that cancel, far apart, lost beside the first, and equal."""
    x = random.uniform(-1, 1, n)
    lost, apart = np.where(np.arange(n) > 0, LOST**2, 1), x * 2.0 ** random.integers(-20, 20, n)
    return np.float32([x, abs(x), [*x[: n // 2], *-x[: n // 2]], apart, lost, np.full(n, 0.1)])


def images(random: Any, *dims: int, lost: Any = (), first: Any = ()) -> Any:
    """f32 of the normal distribution, but for `lost`, which are small beside the first of them."""
    x = random.standard_normal(dims).astype(np.float32)
    if first:
        x[lost], x[first] = LOST, 1
    return x


def along(x: Any, *ways: Any) -> Any:
    """The last axes of x multiplied by matrices [from, to]."""
    for axis, way in enumerate(ways, x.ndim - len(ways)):
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ np.float32(way), -1, axis)
    return x


def tap_sums(window: SlidingWindow, x: Any, w: Any) -> Any:
    """A convolution."""
    parts = np.moveaxis(np.stack([part for _, part in taps(x, window)], -1), 1, -2)[:, None]
    return (w.reshape(1, *w.shape[:1], 1, 1, w.shape[1], -1) * parts).sum((-2, -1))


def pixel_sums(window: SlidingWindow, x: Any, d: Any) -> Any:
    """The gradient of its weights."""
    return np.stack([(d[:, :, None] * part[:, None]).sum((0, 3, 4)) for _, part in taps(x, window)], -1)


def transformed(m: int, x: Any, w: Any) -> Any:
    """Winograd's convolution with padding 1, of sides that m divides."""
    results, of_weights, source = (matrix.T for matrix in matrices(m))
    tiles = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (m + 2, m + 2), (2, 3))[:, :, ::m, ::m]
    tiles, filters = along(tiles.view(type(x)), source, source), along(w, of_weights, of_weights)
    found = along((tiles[:, None] * filters[None, :, :, None, None]).sum(2), results, results)
    return found.transpose(0, 1, 2, 4, 3, 5).reshape(len(x), len(w), *x.shape[2:])


def transformed_back(m: int, x: Any, d: Any) -> Any:
    """The gradient of its weights: o x i x 9."""
    results, of_weights, source = matrices(m)
    tiles = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (m + 2, m + 2), (2, 3))[:, :, ::m, ::m]
    images, channels, height, width = d.shape
    parts = np.ascontiguousarray(d.reshape(images, channels, height // m, m, width // m, m).transpose(0, 1, 2, 4, 3, 5))
    tiles, parts = along(tiles.view(type(x)), source.T, source.T), along(parts.view(type(d)), results, results)
    sums = (tiles[:, None] * parts[:, :, None]).sum((0, 3, 4))
    return along(sums, of_weights, of_weights).reshape(channels, x.shape[1], 9)


def tap_means(window: SlidingWindow, includes_padding: bool, x: Any) -> Any:
    whole = np.stack([part for _, part in taps(x, window)], -1).view(type(x))
    return whole.sum(-1) / np.float32(window_means(x, window, includes_padding)[1])
