"""Forward passes of training and their gradients: domain "asmdnn" in a graph, never in a file.

ChannelNorm(x, scale, shift): normalised by the statistics of x's own channels; these, mean and variance, are the other
results.  ChannelNormGradient(x, dy, scale, mean, variance): by x, scale and shift.  RandomDropout(x, seed): elements
are zeroed with a probability, by random numbers that depend on the seed, s32[1], and on the element's index.
RandomRounding(x, seed): numbers become those of bf16, at random; `first` is the index of the first element.
"""

import numpy as np

from asmdnn.definitions.dropout import kept
from asmdnn.definitions.normalization import by_channels, inverse_deviation, moments
from asmdnn.definitions.stochastic_rounding import stochastically_rounded
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, same_as_first


def channel_axes(x: Array) -> tuple[int, ...]:
    return tuple(i for i in range(x.ndim) if i != 1)


def channel_norm(node: Node, x: Array, scale: Array, shift: Array) -> tuple[Array, ...]:
    mean, variance = moments(x, channel_axes(x))
    h = (x - mean) * inverse_deviation(variance, node.get("epsilon"))
    result = h * by_channels(scale, x.ndim) + by_channels(shift, x.ndim)
    return tuple(np.asarray(part, x.dtype) for part in (result, mean.ravel(), variance.ravel()))


def channel_norm_types(node: Node, x: Value, *_: Value) -> list[Type]:
    """Of x's dims, then two values a channel."""
    return [(x.shape, x.dtype), *[(x.shape[1:2], x.dtype)] * 2]


def channel_norm_gradient(node: Node, x: Array, d: Array, scale: Array, mean: Array, variance: Array) -> Array:
    axes = channel_axes(x)
    inverse = inverse_deviation(by_channels(variance, x.ndim), node.get("epsilon"))
    h = (x - by_channels(mean, x.ndim)) * inverse
    rest = d - d.mean(axes, keepdims=True) - h * (d * h).mean(axes, keepdims=True)
    found = rest * by_channels(scale, x.ndim) * inverse, (d * h).sum(axes), d.sum(axes)
    return tuple(np.asarray(part, x.dtype) for part in found)  # type: ignore[return-value]


def random_dropout(node: Node, x: Array, seed: Array) -> Array:
    """x / (1 - p) where an element stays, the factor in f32."""
    p = np.float32(node.get("probability"))
    stays = kept(x.size, float(p), int(seed.ravel()[0])).reshape(x.shape)
    return np.asarray(np.where(stays, x * (np.float32(1) / (np.float32(1) - p)), 0), x.dtype)


def random_rounding(node: Node, x: Array, seed: Array) -> Array:
    """In f32, as it rounds once."""
    return np.asarray(stochastically_rounded(x, int(seed.ravel()[0]), node.get("first")), x.dtype)


OPERATORS = {
    "ChannelNorm": Operator(channel_norm, channel_norm_types),
    "ChannelNormGradient": Operator(channel_norm_gradient, channel_norm_types),
    "RandomDropout": Operator(random_dropout, same_as_first),
    "RandomRounding": Operator(random_rounding, same_as_first),
}
