"""onnxruntime's GroupQueryAttention: heads in groups that share keys and values, causal, with a past.

The past is as long as its tensor: a buffer with room for more, or sequences whose pasts differ, are refused by the call
that brings them, since their new keys belong into the middle.  A first prompt may be padded at its end: causal order
keeps its rows from the padding.

A past that is a state, to which the present is tied, is such a buffer: new keys are written behind those that each
sequence has, and keys after them are hidden.  What is hidden must be numbers, as the zeros are that states begin with.
"""

from math import prod, sqrt

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network.decompositions.attention import rotated
from asmdnn.network.decompositions.caches import cache_written
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.heads import ScoreRules, attended, by_heads, by_rows, hidden_keys, summed
from asmdnn.network.decompositions.looked_at import within
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import FLOAT, INT, Attributes, needed

SHARED = "past_present_share_buffer"  # what a model with states says of its nodes, in onnxruntime's word
UNKNOWN = {"smooth_softmax": 0, "qk_output": 0}  # and what they are where they change nothing


def grouped_query(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    query, key, value, past_key, past_value, last, _, cos, sin, places, added, sink = inputs
    if sink != NOTHING or any(node.get(name, usual) not in (usual, -1) for name, usual in UNKNOWN.items()):
        raise Unimplemented(f"{node} has head_sink, smooth_softmax or qk_output, which are not known here")
    heads, groups = node.get("num_heads"), node.get("kv_num_heads")
    if not 0 < groups <= heads or heads % groups:
        raise InvalidArguments(f"{node} has num_heads {heads}, kv_num_heads {groups}: heads are shared out evenly")
    q, k, v = split(w, node, (query, key, value), (heads, groups))
    n, _, rows, d = w.shape(q)
    past, window = 0 if past_key == NOTHING else w.shape(past_key)[2], node.get("local_window_size", -1)
    shared = node.get(SHARED, 0)
    own = rows_in_cache(w, last, past, rows) if shared else ""
    if node.get("do_rotary", 0):
        if NOTHING in (cos, sin):
            raise InvalidArguments(f"{node} has do_rotary, and no cos_cache or sin_cache to turn by")
        tables = turns(w, (cos, sin), own if shared and places == NOTHING else places, n, past, rows)
        near, width = bool(node.get("rotary_interleaved", 0)), 2 * w.shape(cos)[1]
        q, k = (rotated(w, x, *tables, width, near) for x in (q, k))
    if shared:
        k, v = (cache_written(w, node, cache, x, own, 2) for cache, x in ((past_key, k), (past_value, v)))
        hidden = [behind_own(w, own, past, window)]
    else:
        if past:
            k, v = w.joined(2, past_key, k), w.joined(2, past_value, v)
        later = hidden_keys(rows, past + rows, past, window - 1 if window > 0 else -1, 0)
        hidden = [seen(w, last, past, rows), *[w.constant(later)] * (later is not None)]
    bias = summed(w, [*hidden, *[added] * (added != NOTHING)])
    rules = ScoreRules(node.get("scale", 0.0) or 1 / sqrt(d), bias, node.get("softcap", 0.0))
    return by_rows(w, attended(w, q, k, v, rules).result), k, v


def split(w: Decomposer, node: Node, tensors: tuple[str, str, str], counts: tuple[int, int]) -> tuple[str, str, str]:
    """Queries, keys and values (n, heads, rows, d); without keys all are in one, heads one after the other."""
    query, key, value = tensors
    heads, groups = counts
    if (key == NOTHING) != (value == NOTHING):
        raise InvalidArguments(f"{node} has keys or values alone: both are there, or both are part of query")
    if key != NOTHING:
        return by_heads(w, query, heads), by_heads(w, key, groups), by_heads(w, value, groups)
    d, rest = divmod(w.shape(query)[2], heads + 2 * groups)
    if rest:
        raise InvalidArguments(f"{node} has rows of {w.shape(query)[2]} for {heads} + 2 * {groups} heads")
    ends = (0, heads * d, (heads + groups) * d, (heads + 2 * groups) * d)
    q, k, v = (w.part(query, 2, *ends[i : i + 2]) for i in range(3))
    return by_heads(w, q, heads), by_heads(w, k, groups), by_heads(w, v, groups)


def turns(w: Decomposer, tables: tuple[str, str], places: str, n: int, past: int, rows: int) -> tuple[str, str]:
    """The cosines and sines of each row, (n, 1, rows, d / 2): those of its place, after the past if none is said."""
    at = w.constant(np.broadcast_to(np.arange(past, past + rows), (n, rows)), np.int64) if places == NOTHING else places
    cos, sin = (w.lifted(w("Gather", table, at, axis=0), 1) for table in tables)
    return cos, sin


def seen(w: Decomposer, last: str, past: int, rows: int) -> str:
    """What hides the padding behind the last key of each sequence: it is one of a prompt's rows, and after a past the
    last one of all."""
    n, keys = prod(w.shape(last)), past + rows
    at = within(w, last, keys - 1, 1, axis=2) if past else within(w, last, 0, rows, axis=1)
    number = w.reshaped(w.number(at), n, 1, 1, 1)
    return w.where(w("LessOrEqual", w.constant(np.arange(keys)), number), 0.0, -np.inf)


def rows_in_cache(w: Decomposer, last: str, room: int, rows: int) -> str:
    """Where the new rows of each sequence go, integers (n, rows): the last one to `last`, or from 0 on, where a prompt
    is padded."""
    n, dtype = prod(w.shape(last)), w.value(last).dtype
    if rows > room:
        raise InvalidArguments(f"{w.node} has {rows} new rows, and its past has room for {room}: give it more")
    at = w.reshaped(within(w, last, 0, room, axis=2), n, 1)
    first = w("Max", w("Sub", at, w.constant(rows - 1, dtype)), w.constant(0, dtype))
    return w("Min", w("Add", first, w.constant(np.arange(rows), dtype)), w.constant(room - 1, dtype))


def behind_own(w: Decomposer, own: str, room: int, window: int) -> str:
    """What hides the keys of a buffer that come after a row's own one, or too long before it, (n, 1, rows, room)."""
    n, rows = w.shape(own)
    number, keys = w.reshaped(w.number(own), n, 1, rows, 1), w.constant(np.arange(room))
    near = w("LessOrEqual", keys, number)
    if window > 0:
        near = w("And", near, w("Greater", keys, w.sub(number, float(window))))
    return w.where(near, 0.0, -np.inf)


GROUPED: Attributes = {
    "num_heads": needed(INT), "kv_num_heads": needed(INT), "scale": FLOAT, "softcap": FLOAT, "do_rotary": INT,
    "rotary_interleaved": INT, "local_window_size": INT, SHARED: INT, **dict.fromkeys(UNKNOWN, INT),
}  # fmt: skip
DECOMPOSITIONS = {"GroupQueryAttention": ForeignOperator(grouped_query, "x????xx?????", 3, GROUPED)}
