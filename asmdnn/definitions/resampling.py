"""Resampling along each axis separately, from places between elements: ONNX's Resize, whose words are used."""

from collections.abc import Callable

import numpy as np

from asmdnn.definitions.rounding import UNIT_ROUNDOFF, Array, Doubles

KEYS = -0.75  # the coefficient of Keys' polynomials
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor, "ceil": np.ceil, "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}  # fmt: skip
Taps = tuple[Array, Doubles]  # indices and weights, both [taps, outputs]


def over(x: Array, factor: float, n: int, outputs: int) -> Array:
    """x / factor; of a factor that is the quotient of sizes as a fraction of them, so that halves stay halves: which of
    two elements is nearest then depends on the rounding that is asked for, and on nothing else."""
    return x * n / outputs if factor == outputs / n else x / factor


COORDINATES: dict[str, Callable[[Array, int, int, float], Array]] = {  # of element i, n elements, outputs, factor
    "asymmetric": lambda i, n, outputs, factor: over(i, factor, n, outputs),
    "align_corners": lambda i, n, outputs, factor: (
        i * (n - 1) / ((outputs if factor == outputs / n else factor * n) - 1) if outputs > 1 else i * 0
    ),
    "half_pixel": lambda i, n, outputs, factor: over(i + 0.5, factor, n, outputs) - 0.5,
    "pytorch_half_pixel": lambda i, n, outputs, factor: (
        over(i + 0.5, factor, n, outputs) - 0.5 if outputs > 1 else i * 0
    ),
    "half_pixel_symmetric": lambda i, n, outputs, factor: (
        n / 2 * (1 - outputs / (factor * n)) + over(i + 0.5, factor, n, outputs) - 0.5
    ),
}


def source_places(n: int, outputs: int, factor: float, coordinates: str) -> Doubles:
    """Where along an axis of n the outputs lie, in its elements."""
    return np.asarray(COORDINATES[coordinates](np.arange(outputs, dtype=np.float64), n, outputs, factor))


def crop_places(n: int, outputs: int, start: float, end: float) -> Doubles:
    """Where outputs lie that cover a part of an axis of n, as shares of it from its first to its last element."""
    shares = np.linspace(start, end, outputs) if outputs > 1 else np.array([(start + end) / 2])
    return np.asarray(shares[:outputs] * (n - 1))


def nearest(places: Doubles, n: int, rounding: str) -> Taps:
    return np.clip(ROUNDINGS[rounding](places), 0, n - 1).astype(np.int64)[None], np.ones((1, len(places)))


def linear(places: Doubles, n: int) -> Taps:
    """Between neighbours; those outside repeat the ends."""
    low = np.floor(places)
    return np.clip(np.stack((low, low + 1)), 0, n - 1).astype(np.int64), np.stack((1 - (places - low), places - low))


def keys(d: Doubles, a: float) -> Doubles:
    """Keys' polynomials of distances up to 2."""
    near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.asarray(np.where(d <= 1, near, np.where(d < 2, far, 0)))


def cubic(places: Doubles, n: int, a: float = KEYS, exclude_outside: bool = False) -> Taps:
    """Of four neighbours, weighted by Keys' polynomials; those outside repeat the ends, or have no weight."""
    indices = np.floor(places) + np.arange(-1, 3)[:, None]
    return inside(indices, keys(np.abs(places - indices), a), n, exclude_outside)


def smoothed(places: Doubles, n: int, factor: float, a: float | None = None, exclude_outside: bool = False) -> Taps:
    """Of as many neighbours as an output stands for where it is smaller than x: the weights of `linear`, or with `a` of
    `cubic`, stretched by 1 / factor, their sum being 1."""
    share, reach = min(factor, 1.0), 1 if a is None else 2
    most = int(np.ceil(reach / share))
    indices = np.floor(places) + np.arange(1 - most, most + 1)[:, None]
    d = np.abs(places - indices) * share
    weights = np.maximum(1 - d, 0) if a is None else keys(d, a)
    return inside(indices, weights / weights.sum(0), n, exclude_outside)


def inside(indices: Array, weights: Doubles, n: int, exclude_outside: bool) -> Taps:
    if exclude_outside:
        weights = np.where((indices >= 0) & (indices < n), weights, 0)
        weights = weights / weights.sum(0)
    return np.clip(indices, 0, n - 1).astype(np.int64), weights


def along(x: Array, axis: int, found: Taps) -> Array:
    """x with that axis made of its taps."""
    indices, weights = found
    if len(indices) == 1:
        return np.asarray(np.take(x, indices[0], axis))
    spread = [-1 if i == axis else 1 for i in range(x.ndim)]
    parts = (np.take(x, i, axis) * w.reshape(spread).astype(x.dtype) for i, w in zip(indices, weights, strict=True))
    return np.asarray(sum(parts))


def resampled(
    x: Array, alg: str, sizes: tuple[int, ...], factors: tuple[float, ...], coordinates: str = "half_pixel",
    rounding: str = "round_prefer_ceil",
) -> tuple[Array, Doubles]:  # fmt: skip
    """(x (n, c, ...) at these sizes, by oneDNN's names; a rounding for all weights, products and partial sums)."""
    y, size, count = x, np.abs(x.astype(np.float64)), 0
    for axis, (made, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        n = x.shape[axis]
        if n == made and factor == 1:
            count += 3
            continue
        places = source_places(n, made, factor, coordinates)
        found = nearest(places, n, rounding) if alg == "nearest" else {"linear": linear, "cubic": cubic}[alg](places, n)
        y, size = along(y, axis, found), along(size, axis, (found[0], np.abs(found[1])))
        count += len(found[0]) + 2
    return y, np.asarray(2 * count * UNIT_ROUNDOFF * size)


def resampled_gradient(
    d: Array, alg: str, sizes: tuple[int, ...], factors: tuple[float, ...], coordinates: str = "half_pixel",
    rounding: str = "round_prefer_ceil",
) -> tuple[Array, Doubles]:  # fmt: skip
    """(The gradient of x (n, c, ...) of these sizes, for d of what it is resampled to; a rounding for all of the sums):
    each axis is a product with a matrix, whose transpose goes back."""
    y, size, count = d, np.abs(d.astype(np.float64)), 4
    for axis, (n, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        matrix, _ = resampled(np.eye(n)[None], alg, (d.shape[axis],), (factor,), coordinates, rounding)
        both = (y, matrix[0]), (size, np.abs(matrix[0]))
        y, size = (np.moveaxis(np.tensordot(x, m, (axis, 1)), -1, axis) for x, m in both)
        count += int((matrix[0] != 0).sum(1).max(initial=0)) + 2
    return y, np.asarray(2 * count * UNIT_ROUNDOFF * size)
