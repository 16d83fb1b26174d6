"""Resize and Upsample: each axis separately, from places between elements."""

from typing import Any

import numpy as np

from asmdnn.definitions.resampling import COORDINATES, KEYS, Taps, along, cubic, linear, nearest, source_places
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


def coordinates_of(node: Node) -> str:
    if node.op == "Upsample" or node.opset < 11:
        return "asymmetric"
    return str(node.get("coordinate_transformation_mode", "half_pixel"))


def taps_of(node: Node, n: int, outputs: int, factor: float) -> Taps:
    """Of an axis of n elements."""
    places, mode = source_places(n, outputs, factor, coordinates_of(node)), node.get("mode", "nearest")
    if mode == "nearest":
        is_old = node.op == "Upsample" or node.opset < 11
        return nearest(places, n, "floor" if is_old else node.get("nearest_mode", "round_prefer_floor"))
    if mode == "linear":
        return linear(places, n)
    return cubic(places, n, node.get("cubic_coeff_a", KEYS), bool(node.get("exclude_outside", 0)))


def resize(node: Node, x: Array, *inputs: Array | None) -> Array:
    roi, scales, sizes = resize_inputs(node, inputs)
    outputs, factors = resized(node, x.shape, roi, scales, sizes)
    bounded(tuple(outputs))
    check_resize(node)
    for axis, (n, wanted, factor) in enumerate(zip(x.shape, outputs, factors, strict=True)):
        if n != wanted or factor != 1:
            x = along(x, axis, taps_of(node, n, wanted, factor))
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
    if coordinates_of(node) not in COORDINATES:
        words = f"coordinate_transformation_mode {coordinates_of(node)!r}"
        raise Unimplemented(f"{node}: {words} is not defined")


def resize_types(node: Node, x: Value, *inputs: Value | None) -> list[Type]:
    check_resize(node)
    given = resize_inputs(node, tuple(None if value is None else value.data for value in inputs))
    return [(tuple(resized(node, x.shape, *given)[0]), x.dtype)]
