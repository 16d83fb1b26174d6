"""Normalisations, and softmax."""

from typing import Any

import numpy as np

from asmdnn.definitions.normalization import by_channels, by_groups, inverse_deviation, moments, normalized
from asmdnn.definitions.softmax import softmax
from asmdnn.errors import Unimplemented, counted
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import AXES_MOVED, Operator, Type, Value, axis_of, broadcast_dims, normal


def batch_norm(
    node: Node, x: Array, scale: Array, shift: Array, mean: Array, variance: Array
) -> Array | tuple[Array, ...]:
    """In training by the statistics of x, and what the running ones become: momentum times them, and the rest."""
    if node.get("training_mode", 0):
        share, own = node.get("momentum", 0.9), moments(x, tuple(i for i in range(x.ndim) if i != 1))
        result = scaled(normalized(x, *own, node.get("epsilon", 1e-5)), scale, shift, x.dtype)
        running = ((mean, own[0]), (variance, own[1]))
        moved = (np.asarray(share * old + (1 - share) * new.ravel(), x.dtype) for old, new in running)
        return (result, *moved)[: max(1, len(node.outputs))]
    mean, variance = by_channels(mean, x.ndim), by_channels(variance, x.ndim)
    return scaled(normalized(x, mean, variance, node.get("epsilon", 1e-5)), scale, shift, x.dtype)


def scaled(values: Array, scale: Array, shift: Array, dtype: Any) -> Array:
    """With a factor and an addend for each channel."""
    return np.asarray(values * by_channels(scale, values.ndim) + by_channels(shift, values.ndim), dtype)


def check_channels(x: Value, *parameters: Value) -> None:
    """Raise ValueError unless each has a value a channel."""
    if len(x.shape) < 2 or any(value.shape != x.shape[1:2] for value in parameters):
        raise ValueError(f"{x.shape[1:2]} channels, and parameters of dims {[value.shape for value in parameters]}")


def batch_norm_types(node: Node, x: Value, *parameters: Value) -> list[Type]:
    check_channels(x, *parameters)
    if not node.get("spatial", 1) and len(x.shape) > 2:
        raise Unimplemented(f"{node} has spatial 0: statistics of every pixel are not defined here")
    running = [(x.shape[1:2], x.dtype)] * 2 if node.get("training_mode", 0) else []
    return [(x.shape, x.dtype), *running]


def centred(x: Array, axes: tuple[int, ...], node: Node) -> Array:
    """With mean 0 and variance 1 over these axes."""
    return normalized(x, *moments(x, axes), node.get("epsilon", 1e-5))


def layer_norm(node: Node, x: Array, scale: Array, shift: Array | None = None) -> tuple[Array, ...]:
    axes, epsilon = tuple(range(normal(node.get("axis", -1), x.ndim), x.ndim)), node.get("epsilon", 1e-5)
    mean, variance = moments(x, axes)
    result = normalized(x, mean, variance, epsilon) * scale
    found = (mean, inverse_deviation(variance, epsilon))
    stashed = tuple(np.asarray(y, stash_type(x.dtype)) for y in found)
    return (np.asarray(result if shift is None else result + shift, x.dtype), *stashed)[: max(1, len(node.outputs))]


def stash_type(dtype: Any) -> Any:
    """Of moments: f32, unless x has more bits."""
    return dtype if dtype == np.float64 else np.float32


def layer_norm_types(node: Node, x: Value, *parameters: Value | None) -> list[Type]:
    axis = axis_of(node, len(x.shape), -1)
    if any(value is not None and broadcast_dims(value.shape, x.shape) != x.shape for value in parameters):
        raise ValueError("a scale or a shift has more elements than what it scales")
    rows = (*x.shape[:axis], *[1] * (len(x.shape) - axis))
    return [(x.shape, x.dtype), *[(rows, stash_type(x.dtype))] * 2]


def rms_norm(node: Node, x: Array, scale: Array) -> Array:
    axes = tuple(range(normal(node.get("axis", -1), x.ndim), x.ndim))
    return np.asarray(normalized(x, *moments(x, axes, rms=True), node.get("epsilon", 1e-5)) * scale, x.dtype)


def rms_norm_types(node: Node, x: Value, scale: Value) -> list[Type]:
    return layer_norm_types(node, x, scale)[:1]


def instance_norm_types(node: Node, x: Value, scale: Value, shift: Value) -> list[Type]:
    check_channels(x, scale, shift)
    return [(x.shape, x.dtype)]


def instance_norm(node: Node, x: Array, scale: Array, shift: Array) -> Array:
    return scaled(centred(x, tuple(range(2, x.ndim)), node), scale, shift, x.dtype)


def group_norm_types(node: Node, x: Value, scale: Value, shift: Value) -> list[Type]:
    groups = node.get("num_groups")
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise ValueError(f"{counted(groups, 'group')} of dims {x.shape}")
    if scale.shape != (groups,) or shift.shape != (groups,):  # as operator set 18 has them
        check_channels(x, scale, shift)
    return [(x.shape, x.dtype)]


def group_norm(node: Node, x: Array, scale: Array, shift: Array) -> Array:
    groups = node.get("num_groups")
    if scale.size == groups != x.shape[1]:  # operator set 18: a value a group
        scale, shift = (values.repeat(x.shape[1] // groups) for values in (scale, shift))
    return scaled(centred(by_groups(x, groups), (2, 3), node).reshape(x.shape), scale, shift, x.dtype)


def lp_norm(node: Node, x: Array) -> Array:
    axis, p = normal(node.get("axis", -1), x.ndim), node.get("p", 2)
    size = np.sum(np.abs(x) ** p, axis, keepdims=True) ** (1 / p)
    return np.asarray(np.where(size == 0, 0, x / np.where(size == 0, 1, size)), x.dtype)


def lp_norm_types(node: Node, x: Value) -> list[Type]:
    normal(node.get("axis", -1), len(x.shape))
    if node.get("p", 2) not in (1, 2):
        raise ValueError(f"p {node.get('p')}, which must be 1 or 2")
    return [(x.shape, x.dtype)]


def mean_variance_types(node: Node, x: Value) -> list[Type]:
    for axis in node.get("axes", (0, 2, 3)):
        normal(axis, len(x.shape))
    return [(x.shape, x.dtype)]


def mean_variance(node: Node, x: Array) -> Array:
    axes = tuple(node.get("axes", (0, 2, 3)))
    return np.asarray((x - x.mean(axes, keepdims=True)) / (np.sqrt(x.var(axes, keepdims=True)) + 1e-9), x.dtype)


def softmax_axes(node: Node, ndim: int) -> tuple[int, ...]:
    """One axis; before operator set 13 all from one on."""
    if node.opset >= AXES_MOVED:
        return (normal(node.get("axis", -1), ndim),)
    return tuple(range(normal(node.get("axis", 1), ndim), ndim))


def softmax_types(node: Node, x: Value) -> list[Type]:
    softmax_axes(node, len(x.shape))
    return [(x.shape, x.dtype)]


def hardmax(node: Node, x: Array) -> Array:
    axes = softmax_axes(node, x.ndim)
    flat = x.reshape(*x.shape[: axes[0]], -1) if len(axes) > 1 else np.moveaxis(x, axes[0], -1)
    found = (np.arange(flat.shape[-1]) == flat.argmax(-1)[..., None]).astype(x.dtype)
    return found.reshape(x.shape) if len(axes) > 1 else np.moveaxis(found, -1, axes[0])


OPERATORS = {
    "BatchNormalization": Operator(batch_norm, batch_norm_types),
    "LayerNormalization": Operator(layer_norm, layer_norm_types),
    "RMSNormalization": Operator(rms_norm, rms_norm_types),
    "InstanceNormalization": Operator(instance_norm, instance_norm_types),
    "GroupNormalization": Operator(group_norm, group_norm_types),
    "LpNormalization": Operator(lp_norm, lp_norm_types),
    "MeanVarianceNormalization": Operator(mean_variance, mean_variance_types),
    "Softmax": Operator(lambda node, x: softmax(x, softmax_axes(node, x.ndim)), softmax_types),
    "LogSoftmax": Operator(lambda node, x: softmax(x, softmax_axes(node, x.ndim), log=True), softmax_types),
    "Hardmax": Operator(hardmax, softmax_types),
}
