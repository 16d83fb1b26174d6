"""ONNX's Attention and RotaryEmbedding of f32, as their definitions (operators/attention.py) say them."""

from math import sqrt

import numpy as np

from asmdnn.network.decompositions.heads import ScoreRules, attended, by_heads, by_rows, hidden_keys, summed
from asmdnn.network.decompositions.words import FLOAT, Decomposer
from asmdnn.network.graph import NOTHING, Node

SCORES = 0  # qk_matmul_output_mode


def attention(w: Decomposer, node: Node, q: str, k: str, v: str, *more: str) -> tuple[str, ...] | None:
    mask, past_key, past_value, lengths = more + (NOTHING,) * (4 - len(more))
    if node.get("softmax_precision", FLOAT) != FLOAT or 0 in (*w.shape(q), *w.shape(k), *w.shape(v)):
        return None
    is_flat = len(w.shape(q)) == 3
    q = by_heads(w, q, node.get("q_num_heads", 0))
    k, v = (by_heads(w, x, node.get("kv_num_heads", 0)) for x in (k, v))
    past = 0
    if past_key != NOTHING and past_value != NOTHING:
        past = w.shape(past_key)[2]
        k, v = w.joined(2, past_key, k), w.joined(2, past_value, v)
    scale = node.get("scale", 1 / sqrt(w.shape(q)[3]))
    sizes = (w.shape(q)[2], w.shape(k)[2])
    bias = summed(w, [*masks(w, mask, sizes[1]), *places(w, node, sizes, past, lengths)])
    made = attended(w, q, k, v, ScoreRules(scale, bias, node.get("softcap", 0.0), hides=True))
    result = by_rows(w, made.result) if is_flat else made.result
    shown = (made.raw, made.capped, made.biased, made.weights)[node.get("qk_matmul_output_mode", SCORES)]
    return result, k, v, shown


def masks(w: Decomposer, mask: str, keys: int) -> list[str]:
    """The mask as what is added; keys that it lacks are hidden."""
    if mask == NOTHING:
        return []
    added = w.where(mask, 0.0, -np.inf) if w.value(mask).dtype == np.bool_ else mask
    shape = w.shape(added)
    missing = (*shape[:-1], keys - shape[-1])
    return [w.joined(len(shape) - 1, added, w.constant(np.full(missing, -np.inf))) if missing[-1] else added]


def places(w: Decomposer, node: Node, sizes: tuple[int, int], past: int, lengths: str) -> list[str]:
    """What hides keys by their place: causal order, windows, and padding after `lengths`."""
    rows, keys = sizes
    left = node.get("left_window_size", -1)
    right = 0 if node.get("is_causal", 0) else node.get("right_window_size", -1)
    if lengths == NOTHING:
        hidden = hidden_keys(rows, keys, past, left, right)
        return [] if hidden is None else [w.constant(hidden)]
    count = w.reshaped(w.number(lengths), w.shape(lengths)[0], 1, 1, 1)
    number = w.constant(np.arange(keys))
    found = [w.where(w("Less", number, count), 0.0, -np.inf)]
    distance = w.add(w.constant(np.arange(rows)[:, None] - np.arange(keys) - rows), count)
    found += [w.where(w("Greater", distance, w.constant(left)), -np.inf, 0.0)] * (left >= 0)
    found += [w.where(w("Less", distance, w.constant(-right)), -np.inf, 0.0)] * (right >= 0)
    return found


def rotary(w: Decomposer, node: Node, x: str, cos: str, sin: str, place: str = NOTHING) -> tuple[str, ...]:
    heads = by_heads(w, x, node.get("num_heads", 0))
    tables = [w.lifted(t if place == NOTHING else w("Gather", t, place, axis=0), 1) for t in (cos, sin)]
    size = node.get("rotary_embedding_dim", 0) or w.shape(heads)[3]
    result = rotated(w, heads, tables[0], tables[1], size, bool(node.get("interleaved", 0)))
    return (result if len(w.shape(x)) == 4 else by_rows(w, result),)


def rotated(w: Decomposer, heads: str, cos: str, sin: str, size: int, near: bool) -> str:
    """The first `size` elements of rows (n, heads, rows, d) turned, pairs being halves, or neighbours (near)."""
    n, h, rows, d = w.shape(heads)
    turned, half = w.part(heads, 3, 0, size), size // 2
    if near:
        pairs = w.reshaped(turned, n, h, rows, half, 2)
        a, b = (w("Gather", pairs, w.constant(i, np.int64), axis=4) for i in (0, 1))
    else:
        a, b = w.part(turned, 3, 0, half), w.part(turned, 3, half, size)
    first = w.sub(w.mul(a, cos), w.mul(b, sin))
    second = w.add(w.mul(a, sin), w.mul(b, cos))
    if near:
        both = w.reshaped(w.joined(4, w.lifted(first, 4), w.lifted(second, 4)), n, h, rows, size)
        return both if size == d else w.joined(3, both, w.part(heads, 3, size, d))
    return w.joined(3, first, second, *[w.part(heads, 3, size, d)] * (size < d))


DECOMPOSITIONS = {"Attention": attention, "RotaryEmbedding": rotary}
