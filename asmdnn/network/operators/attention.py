"""Attention and rotary embedding, of operator sets 23 and up.

Attention: softmax(softcap(query key^T scale) + bias) value for every head, bias being the mask, minus infinity where
causal order, a window or the padding of keys hides a key; a row that sees no key is 0.  Row i of a query after `past`
keys sees those up to i + past; with nonpad_kv_seqlen the last row sees the last key that is none of padding.
"""

from typing import Any

import numpy as np

from asmdnn.definitions.softmax import softmax
from asmdnn.errors import counted
from asmdnn.network.element_types import element_type
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Shape, Type, Value, same_as_first

SCORES, CAPPED, BIASED, SOFTMAX = range(4)  # qk_matmul_output_mode


def by_heads(x: Array, heads: int | None) -> Array:
    """(n, heads, rows, d) of it, or of (n, rows, heads * d)."""
    if x.ndim == 4:
        return x
    if not heads:
        raise ValueError("operands of three dims need q_num_heads and kv_num_heads")
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def attention(node: Node, q: Array, k: Array, v: Array, *more: Array | None) -> tuple[Array, ...]:
    """More, where given: the mask, keys and values of the past, and how many keys are none of padding."""
    mask, past_key, past_value, lengths = more + (None,) * (4 - len(more))
    is_flat, dtype = q.ndim == 3, q.dtype
    q = by_heads(q, node.get("q_num_heads"))
    k, v = (by_heads(x, node.get("kv_num_heads")) for x in (k, v))
    if past_key is not None and past_value is not None:
        k, v = np.concatenate((past_key, k), 2), np.concatenate((past_value, v), 2)
    root = dtype.type(np.sqrt(node.get("scale", 1 / np.sqrt(q.shape[3]))))
    keys, values = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    raw = (q * root) @ (keys * root).swapaxes(-1, -2)
    softcap = node.get("softcap", 0.0)
    capped = softcap * np.tanh(raw / softcap) if softcap else raw
    bias = bias_of(node, (q.shape[2], k.shape[2]), dtype, mask, 0 if past_key is None else past_key.shape[2], lengths)
    biased = capped + bias
    weights = softmax_of(biased, node.get("softmax_precision"))
    weights = np.where(np.isneginf(bias.max(-1, keepdims=True)), 0, weights).astype(dtype)
    result = weights @ values
    if is_flat:
        result = result.swapaxes(1, 2).reshape(result.shape[0], result.shape[2], -1)
    shown = (raw, capped, biased, weights)[node.get("qk_matmul_output_mode", SCORES)]
    return tuple(np.asarray(x, dtype) for x in (result, k, v, shown))[: max(1, len(node.outputs))]


def bias_of(
    node: Node, sizes: tuple[int, int], dtype: Any, mask: Array | None, past: int, lengths: Array | None
) -> Array:
    """What is added to the scores."""
    rows, keys = sizes
    bias = np.zeros(sizes, dtype)
    if mask is not None:
        added = np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask
        missing = keys - added.shape[-1]
        bias = bias + np.pad(added, [*[(0, 0)] * (added.ndim - 1), (0, missing)], constant_values=-np.inf)
    first = np.asarray(past) if lengths is None else lengths.reshape(-1, 1, 1, 1) - rows
    distance = np.arange(rows)[:, None] + first - np.arange(keys)  # how far a key lies before the row's own one
    left, right = node.get("left_window_size", -1), 0 if node.get("is_causal", 0) else node.get("right_window_size", -1)
    for is_limited, hidden in ((left >= 0, distance > left), (right >= 0, -distance > right)):
        if is_limited:
            bias = bias + np.where(hidden, -np.inf, 0)
    if lengths is not None:
        bias = bias + np.where(np.arange(keys) < lengths.reshape(-1, 1, 1, 1), 0, -np.inf)
    return np.asarray(bias, dtype)


def softmax_of(x: Array, precision: int | None) -> Array:
    """Over the last axis; rows without anything are 0."""
    x = x if precision is None else x.astype(element_type(precision, "softmax_precision"))
    return np.where(np.isneginf(x.max(-1, keepdims=True)), 0, softmax(x))


def attention_types(
    node: Node, q: Value, k: Value, v: Value, mask: Value | None = None, *past: Value | None
) -> list[Type]:
    heads, groups = node.get("q_num_heads"), node.get("kv_num_heads")
    (n, h, rows, d), (_, g, keys, _), (_, _, _, e) = shapes = [
        four(x.shape, count) for x, count in ((q, heads), (k, groups), (v, groups))
    ]
    before = past[0].shape[2] if past and past[0] is not None else 0
    if shapes[1] != (n, g, keys, d) or shapes[2][:3] != (n, g, keys) or not g:
        raise ValueError(f"keys of dims {shapes[1]} and values of dims {shapes[2]} for queries of dims {shapes[0]}")
    if h % g:
        raise ValueError(f"{g} heads of keys do not divide {h} heads of queries")
    result: Shape = (n, h, rows, e) if len(q.shape) == 4 else (n, rows, h * e)
    made = (result, (n, g, before + keys, d), (n, g, before + keys, e), (n, h, rows, before + keys))
    return [(shape, q.dtype) for shape in made]


def four(shape: Shape, heads: int | None) -> Shape:
    if len(shape) == 4:
        return shape
    if len(shape) != 3 or not heads or shape[2] % heads:
        raise ValueError(f"dims {shape} are not those of {counted(heads or 0, 'head')}")
    return shape[0], heads, shape[1], shape[2] // heads


def rotary(node: Node, x: Array, cos: Array, sin: Array, places: Array | None = None) -> Array:
    """Pairs of elements turned by the angle of their row's place; pairs are halves, or neighbours (interleaved)."""
    heads = by_heads(x, node.get("num_heads"))
    size = node.get("rotary_embedding_dim", 0) or heads.shape[3]
    turned, kept = heads[..., :size], heads[..., size:]
    c, s = (np.expand_dims(table if places is None else table[places], 1) for table in (cos, sin))
    near = node.get("interleaved", 0)
    a, b = (turned[..., 0::2], turned[..., 1::2]) if near else np.split(turned, 2, -1)
    pair = (c * a - s * b, s * a + c * b)
    whole = np.stack(pair, -1).reshape(turned.shape) if near else np.concatenate(pair, -1)
    result = np.concatenate((whole, kept), -1)
    return np.asarray(result if x.ndim == 4 else result.swapaxes(1, 2).reshape(x.shape), x.dtype)


OPERATORS = {"Attention": Operator(attention, attention_types), "RotaryEmbedding": Operator(rotary, same_as_first)}
