"""Softmax, its logarithm, and attention."""

from typing import Any

import numpy as np

from asmdnn.definitions.reduction import log_sum_exp
from asmdnn.definitions.rounding import SMALLEST, UNIT, Array, Doubles, gamma

ULPS = 12
SHORTEST_VECTORS = 64  # half a rounding for each sum of 4 vectors of 8


def softmax(x: Array, axes: int | tuple[int, ...] = -1, log: bool = False) -> Array:
    """e^x / sum e^x over axes, or its logarithm; NaN where all of x is -infinity."""
    differences = x - x.max(axes, keepdims=True, initial=-np.inf)
    powers = np.exp(differences)
    total = powers.sum(axes, keepdims=True)
    return np.asarray(differences - np.log(total) if log else powers / total)


def softmax_error(x: Array, axis: int, log: bool = False) -> Doubles:
    """That of rounding x - max x, which e^x takes over, and some roundings, with those of the longest chain of sums."""
    ulps = ULPS + x.shape[axis] / SHORTEST_VECTORS
    differences = x.astype(np.float64) - x.max(axis, keepdims=True)
    if log:
        total = np.exp(differences).sum(axis, keepdims=True)
        return np.asarray(ulps * UNIT * (1 + np.abs(differences) + np.log(total)))
    return np.asarray(UNIT * softmax(x.astype(np.float64), axis) * (ulps + np.abs(differences)) + SMALLEST)


def softmax_gradient(y: Array, d: Array, axis: int, log: bool = False) -> tuple[Doubles, Doubles]:
    """(The gradient of x, of y its softmax or the logarithm, for d of y; by how much rounding moves it): a rounding of
    each product and partial sum, and some of e^y."""
    power, terms = (np.exp(y), d) if log else (y, d * y)
    total, most = (values.sum(axis, keepdims=True) for values in (terms, np.abs(terms)))
    values = d - power * total if log else y * (d - total)
    error = power * most * gamma(y.shape[axis] + 2 * ULPS) + gamma(ULPS) * (np.abs(d) if log else np.abs(d * y))
    return np.asarray(values), np.asarray(error + SMALLEST)


def attention(query: Array, key: Array, value: Array, scale: float, bias: Any = 0.0) -> Array:
    """softmax(query key^T scale + bias) value for every head, (n, heads, rows, d); consecutive heads of queries may
    share one of keys and values."""
    together = query.shape[-3] // key.shape[-3] if query.ndim > 2 else 1
    if together > 1:
        key, value = key.repeat(together, -3), value.repeat(together, -3)
    return np.asarray(softmax(query @ key.swapaxes(-1, -2) * scale + bias) @ value)


def attention_sums(query: Array, key: Array, scale: float, bias: Any = 0.0) -> tuple[Doubles, Doubles]:
    """(log of the sum of e^score of each row, (n, heads, rows, 1); by how much rounding moves it): of scores as
    `attention` has them, a sum over a head's numbers, and of powers, a sum over keys."""
    keys = key.repeat(query.shape[-3] // key.shape[-3], -3).swapaxes(-1, -2)
    scores = query @ keys * scale + bias
    moved = (np.abs(query) @ np.abs(keys) * abs(scale)).max(-1, keepdims=True) * gamma(query.shape[-1] + ULPS)
    sums = np.asarray(log_sum_exp(scores, (-1,), True))
    return sums, np.asarray(moved + UNIT * (ULPS + key.shape[-2] / SHORTEST_VECTORS) * (1 + np.abs(sums)))


def attention_error(query: Array, key: Array) -> float:
    """Of values up to 1: sums over a head's numbers and over keys, and the softmax between them."""
    return float(UNIT * (32 + query.shape[-1] + key.shape[-2] / 16))


def attention_gradient(
    query: Array, key: Array, value: Array, d: Array, scale: float, mask: Any = 0
) -> tuple[Array, Array, Array]:
    """By query, key and value (n, groups, keys, ..), which neighbouring heads share; d: by the result."""
    p, by_scores = _score_gradient(query, key, value, d, scale, mask)
    return _from_scores(p, by_scores, query, key, d)


def attention_gradient_rounding(
    query: Array, key: Array, value: Array, d: Array, scale: float, mask: Any = 0
) -> tuple[Array, Array, Array]:
    """By how many times the unit roundoff of a type gradients move where products take probabilities and gradients of
    scores in that type: the sizes of what is summed."""
    p, by_scores = _score_gradient(query, key, value, d, scale, mask)
    return _from_scores(p, np.abs(by_scores), np.abs(query), np.abs(key), np.abs(d))


def _score_gradient(query: Array, key: Array, value: Array, d: Array, scale: float, mask: Any) -> tuple[Array, Array]:
    """(Probabilities, gradients of scores) of every head."""
    keys, values = (np.repeat(x, query.shape[1] // key.shape[1], 1) for x in (key, value))
    p = softmax(query @ keys.swapaxes(-1, -2) * scale + mask, -1)
    by_p = d @ values.swapaxes(-1, -2)
    return p, np.asarray(p * (by_p - (p * by_p).sum(-1, keepdims=True)) * scale)


def _from_scores(p: Array, by_scores: Array, query: Array, key: Array, d: Array) -> tuple[Array, Array, Array]:
    """By query, key and value; heads of a group add up."""
    n, heads, _, _ = query.shape
    shared = heads // key.shape[1]
    found = by_scores.swapaxes(-1, -2) @ query, p.swapaxes(-1, -2) @ d
    dkey, dvalue = (x.reshape(n, -1, shared, *x.shape[2:]).sum(2) for x in found)
    return np.asarray(by_scores @ np.repeat(key, shared, 1)), np.asarray(dkey), np.asarray(dvalue)
