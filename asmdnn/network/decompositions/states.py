"""Operators that carry a state over steps, or bring elements back to where a window took them from.

Sources: https://onnx.ai/onnx/operators; LinearAttention is the recurrence that its documentation states, a round of
products for each step.
"""

from math import prod, sqrt
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.heads import by_heads, by_rows
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import FLOAT, INT, INTS, Attributes, needed, one_of
from asmdnn.network.operators.definition import Shape, bounded, ints
from asmdnn.network.splitting import decided_by_data

MOST_STEPS = 256  # of a recurrence that is unrolled, some ten nodes each
Names = tuple[str, ...]


def causal_conv(w: Decomposer, node: Node, x: str, k: str, bias: str, past: str) -> Names:
    """A depthwise convolution after the last elements of before, and the last ones of now."""
    (n, channels, length), taps = w.shape(x), w.shape(k)[-1]
    wide = w.widened(x)
    missing = w.like(wide, np.zeros((n, channels, taps - 1))) if past == NOTHING else w.widened(past)
    padded = w.joined(2, missing, wide) if taps > 1 else wide
    operands = [w.widened(one) for one in (k, bias) if one != NOTHING]
    y = w("Conv", padded, *operands, group=channels)
    if node.get("activation", "none") != "none":
        y = w("Swish", y)
    state = w.part(padded, 2, length, length + taps - 1) if taps > 1 else missing
    return w.as_type_of(y, x), w.as_type_of(state, x)


def linear_attention(w: Decomposer, node: Node, *inputs: str) -> Names:
    """S = exp(g) S + k (beta (v - S^T k))^T and o = scale S^T q for each step; by the rule."""
    query, key, value, past, decay, beta = inputs
    heads, groups, rule = node.get("q_num_heads"), node.get("kv_num_heads"), node.get("update_rule", "gated_delta")
    (n, steps, width), d_v = w.shape(query), w.shape(value)[2] // groups
    d_k = width // heads
    if steps > MOST_STEPS:
        raise Unimplemented(f"{node} has {steps} steps, at most {MOST_STEPS} are unrolled")
    if ("gated" in rule) != (decay != NOTHING) or ("delta" in rule) != (beta != NOTHING):
        raise InvalidArguments(f"{node} has the update_rule {rule!r}, and other inputs than that needs")
    q, k, v = (by_heads(w, w.widened(x), h) for x, h in ((query, heads), (key, groups), (value, groups)))
    q = w.mul(q, node.get("scale", 0.0) or 1 / sqrt(d_k))
    gates, rates = (by_heads(w, w.widened(x), h) if x != NOTHING else NOTHING
                    for x, h in ((decay, groups), (beta, w.shape(beta)[2] if beta != NOTHING else 1)))  # fmt: skip
    gates = w("Exp", gates) if gates != NOTHING else NOTHING
    state = w.like(q, np.zeros((n, groups, d_k, d_v))) if past == NOTHING else w.widened(past)
    found = []
    for i in range(steps):
        if gates != NOTHING:
            state = w.mul(state, w.turned(w.part(gates, 2, i, i + 1), 0, 1, 3, 2))
        row, new = w.part(k, 2, i, i + 1), w.part(v, 2, i, i + 1)
        if rates != NOTHING:
            new = w.mul(w.sub(new, w("MatMul", row, state)), w.part(rates, 2, i, i + 1))
        state = w.add(state, w("MatMul", w.turned(row, 0, 1, 3, 2), new))
        asked = w.reshaped(w.part(q, 2, i, i + 1), n, groups, heads // groups, d_k)
        found.append(w.reshaped(w("MatMul", asked, state), n, heads, 1, d_v))
    y = by_rows(w, w.joined(2, *found))
    return w.as_type_of(y, query), w.as_type_of(state, query if past == NOTHING else past)


def col2im(w: Decomposer, node: Node, x: str, image: str, block: str) -> Names:
    """Windows added where they were taken from: a transposed convolution with a single 1 for each position."""
    sizes, kernel = (constant_ints(w, node, name) for name in (image, block))
    n, rows, count = w.shape(x)
    taps, axes = prod(kernel), len(sizes)
    strides, dilations = (tuple(node.get(name, (1,) * axes)) for name in ("strides", "dilations"))
    pads = tuple(node.get("pads", (0,) * 2 * axes))
    begins, ends = pads[:axes], pads[axes:]
    room = [
        size + a + b - d * (k - 1) - 1 for size, k, d, a, b in zip(sizes, kernel, dilations, begins, ends, strict=True)
    ]
    blocks = tuple(n // s + 1 for n, s in zip(room, strides, strict=True))
    if prod(blocks) != count or rows % taps:
        raise InvalidArguments(
            f"{node} has {counted(rows, 'row')} of {count} for windows of {kernel} at {blocks} places"
        )
    ones = np.eye(taps).reshape(taps, 1, *kernel)
    # What the last windows reach of the padding, which they need not fill.
    beyond = [b - min(b, n % s) for b, n, s in zip(ends, room, strides, strict=True)]
    how: Any = {"strides": strides, "dilations": dilations, "pads": (*begins, *beyond)}
    made = w("ConvTranspose", w.reshaped(x, n * rows // taps, taps, *blocks), w.like(x, ones), **how)
    short = [size - have for size, have in zip(sizes, w.shape(made)[2:], strict=True)]
    if any(short):
        made = w("Pad", made, w.ints(0, 0, *[0] * axes, 0, 0, *short))
    return (w.reshaped(made, n, rows // taps, *sizes),)


def constant_ints(w: Decomposer, node: Node, name: str) -> Shape:
    data = w.data(name)
    if data is None:
        raise decided_by_data(node, name)
    return bounded(ints(data))


def max_unpool(w: Decomposer, node: Node, x: str, places: str, wanted: str) -> Names:
    """Zeros, but for what was the largest of a window: indices count elements of the tensor that was pooled."""
    kernel, axes = node.get("kernel_shape"), len(w.shape(x)) - 2
    strides, pads = node.get("strides", (1,) * axes), node.get("pads", (0,) * 2 * axes)
    inner = [(n - 1) * s - a - b + k for n, s, k, a, b in zip(
        w.shape(x)[2:], strides, kernel, pads[:axes], pads[axes:], strict=True)]  # fmt: skip
    dims = bounded((*w.shape(x)[:2], *inner))
    zeros, size = w.like(x, np.zeros(prod(dims))), prod(w.shape(x))
    flat = w("ScatterElements", zeros, w.reshaped(places, size), w.reshaped(x, size), axis=0)
    y = w.reshaped(flat, *dims)
    if wanted == NOTHING:
        return (y,)
    sizes = constant_ints(w, node, wanted)
    return (y if sizes == dims else w("Pad", y, w.ints(*[0] * len(dims), *np.subtract(sizes, dims).tolist())),)


LINEAR: Attributes = {
    "chunk_size": INT, "kv_num_heads": needed(INT), "q_num_heads": needed(INT), "scale": FLOAT,
    "update_rule": one_of("linear", "gated", "delta", "gated_delta"),
}  # fmt: skip
WINDOW: Attributes = {"dilations": INTS, "pads": INTS, "strides": INTS}
DECOMPOSITIONS = {
    name: ForeignOperator(decompose, inputs, outputs, attributes, of_integers=True)
    for name, decompose, inputs, outputs, attributes in (
        ("CausalConvWithState", causal_conv, "xx??", 2, {"activation": one_of("none", "silu", "swish")}),
        ("LinearAttention", linear_attention, "xxx???", 2, LINEAR),
        ("Col2Im", col2im, "xxx", 1, WINDOW),
        ("MaxUnpool", max_unpool, "xx?", 1, {"kernel_shape": needed(INTS), "pads": INTS, "strides": INTS}),
    )
}
