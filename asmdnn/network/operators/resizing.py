"""Resize and Upsample: each axis by itself, from places between elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Type, Value, axes_of, bounded, ints


def resized(node: Node, dims: tuple[int, ...], roi: Any, scales: Any, sizes: Any) -> tuple[list[int], list[float]]:
    """Dims of the result, and how much larger each is."""
    axes = axes_of(node, None, len(dims)) or tuple(range(len(dims)))
    outputs, factors = list(dims), [1.0] * len(dims)
    if sizes is not None and np.size(sizes):
        wanted = ints(sizes)
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            choose = min if policy == "not_larger" else max
            scale = choose(w / dims[axis] for w, axis in zip(wanted, axes, strict=True))
            wanted = tuple(int(np.floor(scale * dims[axis] + 0.5)) for axis in axes)
            for axis in axes:
                factors[axis] = scale
        for axis, n in zip(axes, wanted, strict=True):
            outputs[axis] = n
            factors[axis] = n / dims[axis] if policy == "stretch" else factors[axis]
        return outputs, factors
    for axis, factor in zip(axes, np.ravel(scales), strict=True):
        factors[axis], outputs[axis] = float(factor), int(np.floor(dims[axis] * float(factor)))
    return outputs, factors


def source_places(node: Node, n: int, outputs: int, factor: float) -> Array:
    """Where along an axis of n the outputs lie, in its elements."""
    mode, i = node.get("coordinate_transformation_mode", "half_pixel"), np.arange(outputs, dtype=np.float64)
    if node.op == "Upsample" or mode == "asymmetric" or node.opset < 11:
        return i / factor
    if mode == "align_corners":
        return i * (n - 1) / (factor * n - 1) if outputs > 1 else i * 0
    if mode == "pytorch_half_pixel" and outputs <= 1:
        return i * 0
    if mode == "half_pixel_symmetric":
        adjusted = outputs / (factor * n)
        return n / 2 * (1 - adjusted) + (i + 0.5) / factor - 0.5
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (i + 0.5) / factor - 0.5
    raise Unimplemented(f"{node}: coordinate_transformation_mode {mode!r} is not defined")


def nearest(node: Node, places: Array, n: int) -> Array:
    mode = node.get("nearest_mode", "round_prefer_floor")
    if node.op == "Upsample" or node.opset < 11:
        mode = "floor"
    rounding: dict[str, Callable[[Array], Array]] = {
        "floor": np.floor, "ceil": np.ceil, "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    }  # fmt: skip
    return np.asarray(np.clip(rounding[mode](places), 0, n - 1), np.int64)


def interpolated(x: Array, axis: int, places: Array) -> Array:
    """Linear between neighbours, clamped at the ends."""
    low = np.floor(places)
    weight = (places - low).astype(x.dtype).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    first, second = (np.clip(low + k, 0, x.shape[axis] - 1).astype(np.int64) for k in (0, 1))
    return np.asarray(np.take(x, first, axis) * (1 - weight) + np.take(x, second, axis) * weight)


def cubic(node: Node, x: Array, axis: int, places: Array) -> Array:
    """Of four neighbours, weighted by Keys' polynomials; those outside repeat the ends, or have no weight."""
    a, n, low = node.get("cubic_coeff_a", -0.75), x.shape[axis], np.floor(places)
    taps = low[None] + np.arange(-1, 3)[:, None]
    d = np.abs(places - taps)
    near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * (d**3 - 5 * d**2 + 8 * d - 4)
    weights = np.where(d <= 1, near, far)
    if node.get("exclude_outside", 0):
        weights = np.where((taps >= 0) & (taps < n), weights, 0)
        weights = weights / weights.sum(0)
    along = [-1 if i == axis else 1 for i in range(x.ndim)]
    where = np.clip(taps, 0, n - 1).astype(np.int64)
    parts = (np.take(x, i, axis) * w.reshape(along).astype(x.dtype) for i, w in zip(where, weights, strict=True))
    return np.asarray(sum(parts))


def resize(node: Node, x: Array, *inputs: Array | None) -> Array:
    roi, scales, sizes = resize_inputs(node, inputs)
    outputs, factors = resized(node, x.shape, roi, scales, sizes)
    bounded(tuple(outputs))
    check_resize(node)
    mode = node.get("mode", "nearest")
    for axis, (n, wanted, factor) in enumerate(zip(x.shape, outputs, factors, strict=True)):
        if n == wanted and factor == 1:
            continue
        places = source_places(node, n, wanted, factor)
        if mode == "nearest":
            x = np.take(x, nearest(node, places, n), axis)
        else:
            x = interpolated(x, axis, places) if mode == "linear" else cubic(node, x, axis, places)
    return x


def resize_inputs(node: Node, inputs: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """roi, scales, sizes; Upsample and Resize 10 have scales alone."""
    if node.op == "Upsample" or node.opset < 11:
        return None, inputs[0] if inputs else node.get("scales"), None
    roi, scales, sizes = (*inputs, None, None, None)[:3]
    return roi, scales, sizes


def check_resize(node: Node) -> None:
    """Raise ValueError for what has no definition here."""
    mode = node.get("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic") or node.get("antialias", 0):
        raise Unimplemented(f"{node}: mode {mode!r}, antialias {node.get('antialias', 0)} is not defined here")
    source_places(node, 1, 1, 1.0)


def resize_types(node: Node, x: Value, *inputs: Value | None) -> list[Type]:
    check_resize(node)
    given = resize_inputs(node, tuple(None if value is None else value.data for value in inputs))
    return [(tuple(resized(node, x.shape, *given)[0]), x.dtype)]
