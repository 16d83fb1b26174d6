"""Attention of heads, written with products and a softmax, which fusion joins again where nothing is between them."""

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Array
from asmdnn.network.operators.definition import bounded
from asmdnn.records import dataclass

ROWS_FIRST = (0, 2, 1, 3)  # (n, heads, rows, d) as (n, rows, heads, d), and back


@dataclass(frozen=True)
class ScoreRules:
    """scale: of the products of queries and keys; bias: what is added to them, broadcast to (n, heads, rows, keys), or
    NOTHING; softcap: what they are bounded by before, 0 being nothing; hides: whether a row of which the bias hides all
    keys, by minus infinity, is to be 0."""

    scale: float
    bias: str = NOTHING
    softcap: float = 0.0
    hides: bool = False


@dataclass(frozen=True)
class AttendedHeads:
    """The result (n, heads, rows, d), and the scores (n, heads, rows, keys) as they come and go."""

    result: str
    raw: str
    capped: str
    biased: str
    weights: str


def by_heads(w: Decomposer, x: str, heads: int) -> str:
    """(n, heads, rows, d) of it, or of (n, rows, heads d)."""
    dims = w.shape(x)
    if len(dims) == 4:
        return x
    return w.turned(w.reshaped(x, dims[0], dims[1], heads, dims[2] // heads), *ROWS_FIRST)


def by_rows(w: Decomposer, x: str) -> str:
    """(n, rows, heads d) of (n, heads, rows, d)."""
    n, heads, rows, d = w.shape(x)
    return w.reshaped(w.turned(x, *ROWS_FIRST), n, rows, heads * d)


def attended(w: Decomposer, q: str, k: str, v: str, how: ScoreRules) -> AttendedHeads:
    """Of queries (n, heads, rows, d), keys and values (n, groups, keys, .): heads of a group are rows of one, so that
    keys and values are read where they lie."""
    (n, heads, rows, d), (_, groups, keys, _) = w.shape(q), w.shape(k)
    per_group = heads // groups
    q = w.reshaped(q, n, groups, per_group * rows, d)
    bias = how.bias if how.bias == NOTHING or per_group == 1 else in_groups(w, how.bias, groups, per_group, rows)
    raw = w.mul(w("MatMul", q, w.turned(k, 0, 1, 3, 2)), how.scale)
    capped = w.mul(w("Tanh", w.div(raw, how.softcap)), how.softcap) if how.softcap else raw
    biased = capped if bias == NOTHING else w.add(capped, bias)
    weights = w("Softmax", biased, axis=-1)
    result = w("MatMul", weights, v)
    if how.hides and bias != NOTHING:
        lost = w("Equal", row_maxima(w, bias), w.constant(-np.inf))
        known = w.data(lost)
        if known is None or known.any():
            result, weights = w.where(lost, 0.0, result), w.where(lost, 0.0, weights)
    scores = (w.reshaped(x, n, heads, rows, keys) for x in (raw, capped, biased, weights))
    return AttendedHeads(w.reshaped(result, n, heads, rows, w.shape(v)[3]), *scores)


def row_maxima(w: Decomposer, bias: str) -> str:
    return w.reduced("ReduceMax", bias, len(w.shape(bias)) - 1)


def in_groups(w: Decomposer, bias: str, groups: int, per_group: int, rows: int) -> str:
    """A bias as rows of groups see it."""
    shape = w.shape(bias)
    n, heads, many, keys = (1,) * (4 - len(shape)) + shape
    five = w.reshaped(bias, n, *((groups, per_group) if heads > 1 else (1, 1)), many, keys)
    own = groups if heads > 1 else 1
    return w.reshaped(w.expanded(five, n, own, per_group, rows, keys), n, own, per_group * rows, keys)


def hidden_keys(rows: int, keys: int, first: int, left: int, right: int, number: float = -np.inf) -> Array | None:
    """What hides keys more than `left` before a row's own one, which is i + first, or more than `right` after it,
    f32[rows, keys]; below 0 there is no limit, and None if there are neither."""
    if left < 0 and right < 0:
        return None
    bounded((rows, keys))
    distance = np.arange(rows)[:, None] + first - np.arange(keys)
    hidden = (distance > left) & (left >= 0) | (-distance > right) & (right >= 0)
    return np.where(hidden, np.float32(number), np.float32(0))


def summed(w: Decomposer, parts: list[str]) -> str:
    """The sum of biases, NOTHING of none."""
    total = NOTHING
    for part in parts:
        total = part if total == NOTHING else w.add(total, part)
    return total
