"""Gradients that have kernels of their own: domain "asmdnn" in a graph, never in a file.

ConvWeightsGradient(x, dy): of the weights of Conv, whose attributes it has, and of the bias, if it has two results.
MaxPoolGradient(x, dy),
AveragePoolGradient(dy): attributes of the pooling.  ResizeGradient(dy): the primitive's words.  SoftmaxGradient(y, dy).
LayerNormGradient(x, dy, scale): of rows, by x, scale and shift.  GroupNormGradient(x, dy, scale): of `num_groups`, by
x, and by a scale and a shift of each channel.  LRNGradient(x, dy): attributes of LRN.
AttentionGradient(query, key, value, dy, mask): by query, key and value, of `scale` and `causal` of as many rows as
keys; a mask may be left out.
"""

from math import prod

import numpy as np

from asmdnn.definitions.normalization import (
    by_channels,
    by_groups,
    local_response_gradient,
    moments,
    normalization_gradient,
)
from asmdnn.definitions.resampling import resampled_gradient
from asmdnn.definitions.softmax import attention_gradient, softmax_gradient
from asmdnn.definitions.windows import largest, largest_gradient, padded, taps, window_sums
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, same_as_first
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.windows import pooling
from asmdnn.records import replace


def conv_weights(node: Node, x: Array, d: Array) -> Array | tuple[Array, ...]:
    """dw[o, i, r, s]: the sum over images and pixels of dy[n, o, v, u] x[n, i, y, x]; of dy alone db[o]."""
    groups, kernel = node.get("group", 1), tuple(node.get("kernel_shape"))
    window = window_of(node, x.shape[2:], kernel)
    n, o, into = len(d), d.shape[1], x.shape[1] // groups
    rows = d.reshape(n, groups, o // groups, -1)
    result = np.empty((*kernel, groups, o // groups, into), x.dtype)
    for at, part in taps(x, window):
        found = rows @ part.reshape(n, groups, into, -1).swapaxes(-1, -2)
        result[at] = found.sum(0)
    weights = result.reshape(*kernel, o, into).transpose(len(kernel), len(kernel) + 1, *range(len(kernel)))
    return (weights, d.sum((0, *range(2, d.ndim)))) if len(node.outputs) > 1 else weights


def weights_types(node: Node, x: Value, d: Value) -> list[Type]:
    weights = (d.shape[1], x.shape[1] // node.get("group", 1), *node.get("kernel_shape"))
    return [(weights, x.dtype), (d.shape[1:2], x.dtype)][: len(node.outputs)]


def max_pool(node: Node, x: Array, d: Array) -> Array:
    window, _ = pooling(node, x.shape[2:])
    sizes = x.shape[2:]
    numbers = np.broadcast_to(np.arange(prod(sizes)).reshape(sizes), x.shape)
    return np.asarray(largest_gradient(d, largest(x, window, numbers)[1], window, sizes), x.dtype)


def average_pool(node: Node, d: Array) -> Array:
    """Each window's share to all of its elements that are inside."""
    dims = tuple(node.get("image"))
    window, _ = pooling(node, dims[2:])
    counted, own = np.ones((1, 1, *dims[2:]), d.dtype), window
    if node.get("count_include_pad", 0):  # the padding that was asked for counts, what ceil adds not
        asked = window_of(node, dims[2:], window.kernel)
        counted = np.ones_like(padded(counted, asked))
        after = tuple(max(0, b - g) for b, g in zip(window.after, asked.after, strict=True))
        own = replace(window, before=(0,) * len(after), after=after)
    share, result = d / window_sums(counted, own), np.zeros(prod(dims) + 1, d.dtype)
    places = np.arange(1, prod(dims) + 1).reshape(dims)
    for _, place in taps(places, window):  # place 0 is outside
        np.add.at(result, place.ravel(), share.ravel())
    return result[1:].reshape(dims)


def resize(node: Node, d: Array) -> Array:
    words = node.get("mode"), tuple(node.get("image"))[2:], tuple(node.get("factors"))
    return np.asarray(resampled_gradient(d, *words, node.get("coordinates"), node.get("rounding"))[0], d.dtype)


def lrn(node: Node, x: Array, d: Array) -> Array:
    numbers = node.get("size"), node.get("alpha"), node.get("beta"), node.get("bias")
    return np.asarray(local_response_gradient(x, d, (1,), *numbers)[0], x.dtype)


def attention(
    node: Node, query: Array, key: Array, value: Array, d: Array, added: Array | None = None
) -> tuple[Array, ...]:
    rows, keys = query.shape[2], key.shape[2]
    hidden = np.arange(keys) > np.arange(rows)[:, None] + keys - rows
    mask = np.where(hidden, -np.inf, 0).astype(query.dtype) if node.get("causal") else 0
    mask = mask if added is None else mask + added
    found = attention_gradient(query, key, value, d, node.get("scale"), mask)
    return tuple(np.asarray(x, query.dtype) for x in found)


def softmax(node: Node, y: Array, d: Array) -> Array:
    return np.asarray(softmax_gradient(y, d, node.get("axis"), bool(node.get("log")))[0], y.dtype)


def layer_norm(node: Node, x: Array, d: Array, scale: Array) -> tuple[Array, ...]:
    """Of rows and columns."""
    rms = bool(node.get("rms"))
    mean, variance = moments(x, (1,), rms=rms)
    statistics = None if rms else mean, variance
    (dx, _), (products, _) = normalization_gradient(x, d, statistics, node.get("epsilon"), scale, (1,))
    return tuple(np.asarray(part, x.dtype) for part in (dx, products.sum(0), d.sum(0)))


def group_norm(node: Node, x: Array, d: Array, scale: Array) -> tuple[Array, ...]:
    whole = np.broadcast_to(by_channels(scale, x.ndim), x.shape)
    grouped, by_result, scales = (by_groups(part, node.get("num_groups")) for part in (x, d, whole))
    statistics = moments(grouped, (2, 3))
    (dx, _), (products, _) = normalization_gradient(grouped, by_result, statistics, node.get("epsilon"), scales, (2, 3))
    axes = (0, *range(2, x.ndim))
    found = dx.reshape(x.shape), products.reshape(x.shape).sum(axes), d.sum(axes)
    return tuple(np.asarray(part, x.dtype) for part in found)


def with_columns(node: Node, x: Value, *_: Value) -> list[Type]:
    """Of x's dims, then two vectors of its dim 1."""
    return [(x.shape, x.dtype), *[(x.shape[1:2], x.dtype)] * 2]


OPERATORS = {
    "ConvWeightsGradient": Operator(conv_weights, weights_types),
    "MaxPoolGradient": Operator(max_pool, same_as_first),
    "AveragePoolGradient": Operator(average_pool, lambda node, d: [(tuple(node.get("image")), d.dtype)]),
    "ResizeGradient": Operator(resize, lambda node, d: [(tuple(node.get("image")), d.dtype)]),
    "LRNGradient": Operator(lrn, same_as_first),
    "AttentionGradient": Operator(attention, lambda node, *x: [(value.shape, value.dtype) for value in x[:3]]),
    "SoftmaxGradient": Operator(softmax, same_as_first),
    "LayerNormGradient": Operator(layer_norm, with_columns),
    "GroupNormGradient": Operator(group_norm, with_columns),
}
