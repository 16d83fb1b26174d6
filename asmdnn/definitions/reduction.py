"""Reductions along axes, cumulative sums, and the places of the largest elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.definitions.rounding import UNIT, UNIT_ROUNDOFF, Array, Doubles

Axes = tuple[int, ...]
LONGEST_CHAIN, LEVELS = 1024, 8  # of a tree that sums chunks


def log_sum_exp(x: Array, axis: Axes, keepdims: bool) -> Any:
    """log(sum e^x), without overflow; -infinity where there is nothing to add."""
    most = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0)
    total = np.log(np.sum(np.exp(x - most), axis=axis, keepdims=True)) + most
    return total if keepdims else np.squeeze(total, axis)


def reduced(alg: str, x: Array, axes: Axes, p: float = 2.0, eps: float = 0.0) -> Array:
    """By oneDNN's names, and logsumexp; reduced dims stay, as 1.  p, eps: of norms."""

    def norm(exponent: float, combine: Callable[[Array, float], Array]) -> Array:
        return combine((np.abs(x) ** p).sum(axes, keepdims=True), eps) ** exponent

    functions: dict[str, Callable[[], Any]] = {
        "max": lambda: x.max(axes, keepdims=True),
        "min": lambda: x.min(axes, keepdims=True),
        "sum": lambda: x.sum(axes, keepdims=True),
        "mul": lambda: x.prod(axes, keepdims=True),
        "mean": lambda: x.mean(axes, keepdims=True),
        "norm_lp_max": lambda: norm(1 / p, np.maximum),
        "norm_lp_sum": lambda: norm(1 / p, np.add),
        "norm_lp_power_p_max": lambda: norm(1.0, np.maximum),
        "norm_lp_power_p_sum": lambda: norm(1.0, np.add),
        "logsumexp": lambda: log_sum_exp(x, axes, True),
    }
    return np.asarray(functions[alg](), x.dtype)


def reduced_error(alg: str, x: Doubles, axes: Axes, values: Doubles) -> Doubles:
    """Roundings of a chunk's longest chain, and of the levels above, in the size of the terms."""
    count = x.size // max(1, values.size)
    roundings, size = min(count, LONGEST_CHAIN) + LEVELS, np.abs(values)
    if alg in ("max", "min"):
        return np.zeros_like(values)
    if alg == "mul":
        return np.asarray(2 * UNIT * (count + LEVELS) * size)
    if alg == "logsumexp":
        return np.asarray(UNIT * (roundings + 2 * float(np.abs(x).max())) * (1 + size))
    if alg in ("sum", "mean"):
        size = reduced(alg, np.abs(x), axes)
    return np.asarray(UNIT * roundings * size)


def cumulated(alg: str, x: Array, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    """The sum or product ("mul") of all elements up to one, without itself if exclusive; reverse: of all from it on."""
    function: Callable[..., Array] = np.cumsum if alg == "sum" else np.cumprod
    ordered = np.flip(x, axis) if reverse else x
    if exclusive:
        ordered = np.roll(ordered, 1, axis)
        ordered[(slice(None),) * (axis % x.ndim) + (slice(1),)] = 0 if alg == "sum" else 1
    total = function(ordered, axis, dtype=x.dtype)
    return np.flip(total, axis) if reverse else total


def cumulative_error(x: Array, axis: int, exclusive: bool, reverse: bool, alg: str = "sum") -> Doubles:
    """A rounding for each number that is added or multiplied, in the size of all."""
    total = cumulated(alg, np.abs(x.astype(np.float64)), axis, exclusive, reverse)
    return np.asarray(UNIT_ROUNDOFF * x.shape[axis] * total)


def order(x: Array, axis: int, largest: bool, last: bool = False) -> Array:
    """The indices that sort along an axis, the best first; of equal ones the first, or the last.  NaN is larger than
    every number."""
    keys = (~x if x.dtype.kind in "iu" else -x) if largest else x  # of unsigned numbers, too
    if not last:
        found = np.asarray(np.argsort(keys, axis, kind="stable"))  # which puts NaN at the end, whatever its sign
        if not largest or x.dtype.kind in "iu" or not np.isnan(x).any():
            return found
        is_number = ~np.isnan(np.take_along_axis(x, found, axis))
        return np.take_along_axis(found, np.argsort(is_number, axis, kind="stable"), axis)
    return np.asarray(x.shape[axis] - 1 - np.argsort(np.flip(keys, axis), axis, kind="stable"))


MANY, FEW_OF = 4096, 4  # numbers, and times as many as are wanted: then sorting all takes longer than finding the last


def has_nan(x: Array) -> bool:
    return x.dtype.kind == "f" and bool(np.isnan(x).any())


def top(x: Array, k: int, axis: int, largest: bool = True, last: bool = False) -> tuple[Array, Array]:
    """The k largest or smallest numbers, and where they are."""
    if x.size == x.shape[axis] > max(MANY, FEW_OF * k) and k and not last and not has_nan(x):
        row, place = x.reshape(-1), -k if largest else k - 1
        bound = np.partition(row, place)[place]
        among = np.flatnonzero(row >= bound if largest else row <= bound)
        places = among[order(row[among], 0, largest)][:k].reshape([k if n > 1 else 1 for n in x.shape])
        return np.take_along_axis(x, places, axis), places
    places = np.take(order(x, axis, largest, last), np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places
