"""Normalisations whose scales are data, or whose moments are results; and those that have no kernel of their own."""

from math import prod

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.normalization import softmax_axes
from asmdnn.network.operators.own import OWN

Names = tuple[str, ...] | None


def layer_norm(w: Decomposer, node: Node, x: str, scale: str, shift: str = NOTHING) -> Names:
    dims = w.shape(x)
    axis, epsilon = normal(node.get("axis", -1), len(dims)), node.get("epsilon", 1e-5)
    if not any(node.outputs[1:]) and is_row(w, scale, dims[axis:]) and is_row(w, shift, dims[axis:]):
        return None
    axes, moments = range(axis, len(dims)), tuple[str, ...]()
    if any(node.outputs[1:]):  # which are f32 of 16 bits, too
        x, scale, shift = (name if name == NOTHING else w.widened(name) for name in (x, scale, shift))
        mean = w.reduced("ReduceMean", x, *axes)
        centred = w.sub(x, mean)
        inverse = w("Reciprocal", w("Sqrt", w.add(w.reduced("ReduceMean", w.mul(centred, centred), *axes), epsilon)))
        y, moments = w.mul(centred, inverse), (mean, inverse)
    else:
        ones = w.constant(np.ones(dims[axis:]))
        y = w("LayerNormalization", x, ones, axis=axis, epsilon=epsilon)
    y = w.mul(y, scale)
    return (y if shift == NOTHING else w.add(y, shift), *moments)


def is_row(w: Decomposer, name: str, row: tuple[int, ...]) -> bool:
    """Whether it is left out, or a constant of a row."""
    data = w.data(name)
    return name == NOTHING or (data is not None and data.size == prod(row))


def rms_norm(w: Decomposer, node: Node, x: str, scale: str) -> Names:
    dims = w.shape(x)
    axis, epsilon = normal(node.get("axis", -1), len(dims)), node.get("epsilon", 1e-5)
    if is_row(w, scale, dims[axis:]):
        return None
    ones = w.constant(np.ones(dims[axis:]))
    return (w.mul(w("RMSNormalization", x, ones, axis=axis, epsilon=epsilon), scale),)


def along_channels(w: Decomposer, name: str, ndim: int) -> str:
    """(c) of data as (c, 1, ...)."""
    return w.reshaped(name, *w.shape(name), *[1] * (ndim - 2))


def instance_norm(w: Decomposer, node: Node, x: str, scale: str, shift: str) -> Names:
    """With groups or without; before operator set 21 scales and shifts are those of groups."""
    channels, ndim = w.shape(x)[1], len(w.shape(x))
    if w.data(scale) is not None and w.data(shift) is not None:
        return None
    ones, zeros = w.constant(np.ones(channels)), w.constant(np.zeros(channels))
    y = w(node.op, x, ones, zeros, **node.attributes)
    for op, name in (("Mul", scale), ("Add", shift)):
        (count,) = w.shape(name)
        each = w.expanded(w.reshaped(name, count, 1), count, channels // count)
        y = w(op, y, along_channels(w, w.reshaped(each, channels), ndim))
    return (y,)


def batch_norm(w: Decomposer, node: Node, x: str, scale: str, shift: str, mean: str, variance: str) -> Names:
    if node.get("training_mode", 0):
        return trained_batch_norm(w, node, x, scale, shift, (mean, variance))
    if all(w.data(name) is not None for name in (scale, shift, mean, variance)) or any(node.outputs[1:]):
        return None
    factor = w.div(scale, w("Sqrt", w.add(variance, node.get("epsilon", 1e-5))))
    ndim = len(w.shape(x))
    mean, factor, shift = (along_channels(w, name, ndim) for name in (mean, factor, shift))
    return (w.add(w.mul(w.sub(x, mean), factor), shift),)


def trained_batch_norm(w: Decomposer, node: Node, x: str, scale: str, shift: str, running: tuple[str, str]) -> Names:
    """By the statistics of x, of which the running ones take a share."""
    kept, epsilon = node.get("momentum", 0.9), node.get("epsilon", 1e-5)
    y, *own = w.results("ChannelNorm", (x, scale, shift), 3, OWN, epsilon=epsilon)
    pairs = zip(running, own, strict=True) if any(node.outputs[1:]) else ()
    return (y, *(w.add(w.mul(old, kept), w.mul(new, 1 - kept)) for old, new in pairs))


def mean_variance(w: Decomposer, node: Node, x: str) -> Names:
    axes = node.get("axes", (0, 2, 3))
    centred = w.sub(x, w.reduced("ReduceMean", x, *axes))
    deviation = w("Sqrt", w.reduced("ReduceMean", w.mul(centred, centred), *axes))
    return (w.div(centred, w.add(deviation, 1e-9)),)


def lp_norm(w: Decomposer, node: Node, x: str) -> Names:
    """Of p 1 or 2; what has no length stays 0."""
    size = w.reduced(f"ReduceL{node.get('p', 2)}", x, normal(node.get("axis", -1), len(w.shape(x))))
    return (w.div(x, w.where(w("Equal", size, w.constant(0.0)), 1.0, size)),)


def hardmax(w: Decomposer, node: Node, x: str) -> Names:
    dims = w.shape(x)
    axes = softmax_axes(node, len(dims))
    if not dims or 0 in dims:
        return None
    flat = x if len(axes) == 1 else w.reshaped(x, prod(dims[: axes[0]]), prod(dims[axes[0] :]))
    axis = axes[0] if len(axes) == 1 else 1
    best = w.number(w("ArgMax", flat, axis=axis, keepdims=1))
    size, ndim = w.shape(flat)[axis], len(w.shape(flat))
    number = w.constant(np.arange(size).reshape([-1 if i == axis else 1 for i in range(ndim)]))
    shape = w.shape(flat)
    found = w.where(w("Equal", w.expanded(best, *shape), number), 1.0, 0.0)
    return (w.reshaped(found, *dims),)


DECOMPOSITIONS = {
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": instance_norm,
    "BatchNormalization": batch_norm,
    "MeanVarianceNormalization": mean_variance,
    "LpNormalization": lp_norm,
    "Hardmax": hardmax,
}
