"""onnxruntime's fused operators of transformers: embeddings, attention in three forms, and rotary embedding."""

from itertools import pairwise
from math import sqrt

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.decompositions.attention import rotated
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.fused import plus
from asmdnn.network.decompositions.heads import ScoreRules, attended, by_heads, by_rows, hidden_keys, summed
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import EPSILON, FLOAT, INT, INTS, Attributes, needed
from asmdnn.records import dataclass

HIDDEN = float(np.finfo(np.float32).min)  # what causal order adds: keys that a mask hides stay the lesser evil
INT32 = 6  # ONNX's number of s32


@dataclass(frozen=True)
class HeadPart:
    """Queries, keys and values (n, heads, rows, d), and how many keys come from the past."""

    query: str
    key: str
    value: str
    past: int = 0


def embedded(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """Rows of words, places and kinds of segments, summed and normalised; how many words a mask leaves."""
    ids, segments, words, places, kinds, scale, shift, mask, place = inputs
    n, count = w.shape(ids)
    at = w.ints(*range(count)) if place == NOTHING else place
    total = w.add(w("Gather", words, ids, axis=0), w("Gather", places, at, axis=0))
    if kinds != NOTHING and segments != NOTHING:
        total = w.add(total, w("Gather", kinds, segments, axis=0))
    y = w("LayerNormalization", total, scale, shift, axis=-1, epsilon=node.get("epsilon", 1e-12))
    if mask == NOTHING:
        return y, w.constant(np.zeros(n), np.int32), total
    return y, w("Cast", w.reduced("ReduceSum", w.number(mask), 1, keepdims=False), to=INT32), total


def packed_attention(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """Attention: its product makes queries, keys and values."""
    x, weights, bias, mask, past, added, length = inputs
    if node.get("do_rotary", 0) or length != NOTHING:
        raise Unimplemented(f"{node} has do_rotary or past_sequence_length, which are not known here")
    heads, width = node.get("num_heads"), w.shape(weights)[1]
    sizes = tuple(node.get("qkv_hidden_sizes", ())) or (width // 3,) * 3
    product, starts = plus(w, w("MatMul", x, weights), bias), np.cumsum((0, *sizes)).tolist()
    q, k, v = (by_heads(w, w.part(product, 2, a, b), heads) for a, b in pairwise(starts))
    before, present = 0, NOTHING
    if past != NOTHING:
        before = w.shape(past)[3]
        k, v = (w.joined(2, w("Gather", past, w.constant(i, np.int64), axis=0), one) for i, one in ((0, k), (1, v)))
    if any(node.outputs[1:]):
        present = w.joined(0, w.lifted(k, 0), w.lifted(v, 0))
    return finished(w, node, HeadPart(q, k, v, before), mask, added)[0], present


def finished(w: Decomposer, node: Node, parts: HeadPart, mask: str, added: str) -> tuple[str, str]:
    """(the result (n, rows, heads d), the scores) of attention with a mask of integers and what is added."""
    n, _, rows, d = w.shape(parts.query)
    keys = w.shape(parts.key)[2]
    found = [] if mask == NOTHING else [masked(w, node, mask, n, rows, keys)]
    if node.get("unidirectional", 0):
        hidden = hidden_keys(rows, keys, parts.past, -1, 0, HIDDEN)
        found += [] if hidden is None else [w.constant(hidden)]
    found += [] if added == NOTHING else [added]
    scale = node.get("scale", 0.0) or 1 / sqrt(d)
    made = attended(w, parts.query, parts.key, parts.value, ScoreRules(scale, summed(w, found)))
    return by_rows(w, made.result), made.raw


def masked(w: Decomposer, node: Node, mask: str, n: int, rows: int, keys: int) -> str:
    """Integers as what is added: of each key 1 or 0, or where keys end, and perhaps begin."""
    dims, number = w.shape(mask), w.number(mask)
    hidden = node.get("mask_filter_value", -10000.0)
    if len(dims) == 1 and dims[0] in (n, 2 * n):
        place = w.constant(np.arange(keys))
        end = w.reshaped(w.part(number, 0, 0, n), n, 1, 1, 1)
        seen = w("Less", place, end)
        if dims[0] == 2 * n:
            seen = w("And", seen, w("GreaterOrEqual", place, w.reshaped(w.part(number, 0, n, 2 * n), n, 1, 1, 1)))
        return w.where(seen, 0.0, hidden)
    forms = {(n, keys): (n, 1, 1, keys), (n, rows, keys): (n, 1, rows, keys)}
    if dims not in forms:
        raise Unimplemented(f"{node} has a mask of dims {dims}, (n), (2 n), (n, keys) and (n, rows, keys) are known")
    return w.mul(w.sub(w.constant(1.0), w.reshaped(number, *forms[dims])), hidden)


def multi_head(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """MultiHeadAttention: of three tensors, of keys and values in one, or of all in one."""
    query, key, value, bias, mask, added, past_key, past_value, length, beams = inputs
    if length != NOTHING or beams != NOTHING:
        raise Unimplemented(f"{node} has past_sequence_length or cache_indirection, which are not known here")
    heads = node.get("num_heads")
    q, k, v = apart(w, query, key, value, heads)
    if bias != NOTHING:
        q, k, v = biased(w, (q, k, v), bias)
    before = 0
    if past_key != NOTHING:
        before = w.shape(past_key)[2]
        k, v = w.joined(2, past_key, k), w.joined(2, past_value, v)
    y, scores = finished(w, node, HeadPart(q, k, v, before), mask, added)
    return y, k, v, scores


def apart(w: Decomposer, query: str, key: str, value: str, heads: int) -> tuple[str, str, str]:
    """Queries, keys and values by heads: (n, rows, heads, 3, d) or (n, keys, heads, 2, d) have several in one."""
    if key == NOTHING:
        return tuple(inner(w, query, i) for i in range(3))  # type: ignore[return-value]
    if value == NOTHING:
        return by_heads(w, query, heads), inner(w, key, 0), inner(w, key, 1)
    return by_heads(w, query, heads), by_heads(w, key, heads), by_heads(w, value, heads)


def inner(w: Decomposer, packed: str, number: int) -> str:
    """(n, heads, rows, d) of (n, rows, heads, several, d)."""
    return w.turned(w("Gather", packed, w.constant(number, np.int64), axis=3), 0, 2, 1, 3)


def biased(w: Decomposer, parts: tuple[str, str, str], bias: str) -> tuple[str, ...]:
    """With their parts of a bias added."""
    start, found = 0, []
    for x in parts:
        _, heads, _, d = w.shape(x)
        found.append(w.add(x, w.reshaped(w.part(bias, 0, start, start + heads * d), 1, heads, 1, d)))
        start += heads * d
    return tuple(found)


def rotary(w: Decomposer, node: Node, x: str, places: str, cos: str, sin: str) -> tuple[str, ...]:
    """RotaryEmbedding: places (n, rows), or the first one of all rows."""
    if node.get("is_packed_batching", 0) or node.get("scale", 1.0) != 1.0:
        raise Unimplemented(f"{node} has is_packed_batching or scale, which are not known here")
    dims, size = w.shape(x), node.get("rotary_embedding_dim", 0)
    width = size or 2 * w.shape(cos)[1]
    heads = by_heads(w, x, node.get("num_heads", 0) or dims[-1] // width)
    rows = w.shape(heads)[2]
    if len(w.shape(places)) == 1:
        places = w.lifted(w("Add", places, w.ints(*range(rows))), 0)
    tables = [w.lifted(w("Gather", table, places, axis=0), 1) for table in (cos, sin)]
    y = rotated(w, heads, tables[0], tables[1], width, bool(node.get("interleaved", 0)))
    return (y if len(dims) == 4 else by_rows(w, y),)


HEADS: Attributes = {"num_heads": needed(INT), "mask_filter_value": FLOAT, "scale": FLOAT, "unidirectional": INT}
PACKED: Attributes = {
    **HEADS, "qkv_hidden_sizes": INTS, "do_rotary": INT, "past_present_share_buffer": INT, "rotary_embedding_dim": INT,
}  # fmt: skip
ROTARY: Attributes = dict.fromkeys(
    ("interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim"), INT
)  # fmt: skip
DECOMPOSITIONS = {
    "EmbedLayerNormalization": ForeignOperator(embedded, "x?xx?xx??", 3, {**EPSILON, "mask_index_type": INT}),
    "Attention": ForeignOperator(packed_attention, "xx?????", 2, PACKED),
    "MultiHeadAttention": ForeignOperator(multi_head, "x?????????", 4, HEADS),
    "RotaryEmbedding": ForeignOperator(rotary, "xxxx", 1, {**ROTARY, "scale": FLOAT}),
}
