"""Resize and Upsample: each axis separately, from places between elements."""

from typing import Any

import numpy as np

from asmdnn.definitions.resampling import (
    COORDINATES,
    KEYS,
    Taps,
    along,
    crop_places,
    cubic,
    linear,
    nearest,
    smoothed,
    source_places,
)
from asmdnn.errors import Unimplemented
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Type, Value, axes_of, bounded, ints

ALGORITHMS = ("nearest", "linear", "cubic")  # of the primitive, and the coordinates that it has
PLACED = ("half_pixel", "align_corners", "asymmetric")
WHOLE = 1e-3  # of an element
NEW_RULES = 11  # the operator set since which coordinates and roundings are attributes
CROP = "tf_crop_and_resize"


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
        factors[axis], outputs[axis] = float(factor), scaled(dims[axis], factor)
    return outputs, factors


def scaled(n: int, factor: float) -> int:
    """floor(n * factor), in f32 as in ONNX's inference of shapes: 10 * 0.7 is 7 there, and 6.9999999 in f64."""
    size = np.floor(np.float32(n) * np.float32(factor))
    if not (factor > 0 and np.isfinite(size)):
        raise ValueError(f"scales have {factor}, which makes no size of {n}: give finite numbers above 0")
    return int(size)


def is_old(node: Node) -> bool:
    """Whether the node is of the time before coordinates and roundings were attributes."""
    return node.op == "Upsample" or node.opset < NEW_RULES


def coordinates_of(node: Node) -> str:
    return "asymmetric" if is_old(node) else str(node.get("coordinate_transformation_mode", "half_pixel"))


def placed_as(node: Node, dims: tuple[int, ...], outputs: list[int], factors: list[float]) -> str:
    """The coordinates, by the kernels' word where that is the same place: others differ from half a pixel only where
    one element is made of several, or scales make no whole sizes."""
    mode, axes = coordinates_of(node), list(zip(dims, outputs, factors, strict=True))
    is_half = (mode == "pytorch_half_pixel" and all(o > 1 or n == o for n, o, _ in axes)) or (
        mode == "half_pixel_symmetric" and is_whole(dims, outputs, factors)
    )
    return "half_pixel" if is_half else mode


def is_whole(dims: tuple[int, ...], outputs: list[int], factors: list[float]) -> bool:
    return all(abs(f * n - o) < WHOLE for f, n, o in zip(factors, dims, outputs, strict=True))


def rounding_of(node: Node, factor: float) -> str:
    """Of places of nearest; of old nodes as in onnxruntime, since the operator set does not say."""
    if is_old(node):
        return "ceil" if factor < 1 else "floor"
    return str(node.get("nearest_mode", "round_prefer_floor"))


def spans_of(node: Node, ndim: int, roi: Any) -> list[tuple[float, float]]:
    """For each axis the part that a crop takes, as shares; others take all."""
    spans = [(0.0, 1.0)] * ndim
    if coordinates_of(node) == CROP:
        axes = axes_of(node, None, ndim) or tuple(range(ndim))
        if roi is None or np.size(roi) != 2 * len(axes) or not np.isfinite(roi).all():
            raise ValueError(f"roi must have two finite numbers for each of {len(axes)} axes")
        starts, ends = np.ravel(roi).astype(np.float64).reshape(2, len(axes))
        for axis, start, end in zip(axes, starts, ends, strict=True):
            spans[axis] = float(start), float(end)
    return spans


def places_of(node: Node, n: int, outputs: int, factor: float, span: tuple[float, float]) -> Any:
    """Where along an axis of n elements the outputs lie."""
    coordinates = coordinates_of(node)
    return crop_places(n, outputs, *span) if coordinates == CROP else source_places(n, outputs, factor, coordinates)


def taps_of(node: Node, n: int, outputs: int, factor: float, span: tuple[float, float] = (0.0, 1.0)) -> Taps:
    """Of an axis of n elements."""
    places, mode = places_of(node, n, outputs, factor, span), node.get("mode", "nearest")
    if mode == "nearest":
        return nearest(places, n, rounding_of(node, factor))
    a = node.get("cubic_coeff_a", KEYS) if mode == "cubic" else None
    excludes = bool(node.get("exclude_outside", 0))
    if node.get("antialias", 0) and factor < 1 and outputs:
        return smoothed(places, n, factor, a, excludes)
    return linear(places, n) if a is None else cubic(places, n, a, excludes)


def resize(node: Node, x: Array, *inputs: Array | None) -> Array:
    """Integers are computed in double precision, and cut off or, with antialias, rounded as in onnxruntime."""
    roi, scales, sizes = resize_inputs(node, inputs)
    outputs, factors = resized(node, x.shape, roi, scales, sizes)
    bounded(tuple(outputs))
    check_resize(node)
    dtype, dims, spans = x.dtype, x.shape, spans_of(node, x.ndim, roi)
    rounds = dtype.kind in "iu" and node.get("mode", "nearest") != "nearest"
    y = x.astype(np.float64) if rounds else x
    for axis, (n, wanted, factor, span) in enumerate(zip(dims, outputs, factors, spans, strict=True)):
        if n != wanted or factor != 1 or span != (0, 1):
            y = along(y, axis, taps_of(node, n, wanted, factor, span))
    for axis, (n, wanted, factor, span) in enumerate(zip(dims, outputs, factors, spans, strict=True)):
        if coordinates_of(node) == CROP:
            places = places_of(node, n, wanted, factor, span)
            outside = ((places < 0) | (places > n - 1)).reshape([-1 if i == axis else 1 for i in range(y.ndim)])
            y = np.where(outside, np.asarray(node.get("extrapolation_value", 0.0), y.dtype), y)
    if not rounds:
        return y
    limits = np.iinfo(dtype)
    whole = np.floor(y + 0.5) if node.get("antialias", 0) else np.trunc(y)
    return np.clip(whole, limits.min, limits.max).astype(dtype)


def resize_inputs(node: Node, inputs: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """roi, scales, sizes; Upsample and Resize 10 have scales alone."""
    if is_old(node):
        return None, inputs[0] if inputs else node.get("scales"), None
    roi, scales, sizes = (*inputs, None, None, None)[:3]
    return roi, scales, sizes


def why_no_kernel(node: Node, dims: tuple[int, ...], outputs: list[int], factors: list[float]) -> str:
    """Why the primitive does not resize so; empty if it does."""
    if tuple(outputs[:2]) != dims[:2] or not 3 <= len(dims) <= 5:
        return f"dims {dims} become {tuple(outputs)}: only spatial axes are resized"
    mode, algorithm = placed_as(node, dims, outputs, factors), node.get("mode", "nearest")
    if algorithm == "nearest" and len(roundings_of(node, dims, outputs, factors)) > 1:
        return "axes that grow and axes that shrink have different roundings here, and no kernel"
    if mode not in PLACED or algorithm not in ALGORITHMS:
        return f"mode {algorithm}, {mode} has no kernel; {', '.join(PLACED)} have"
    if node.get("antialias", 0) or node.get("exclude_outside", 0) or node.get("cubic_coeff_a", KEYS) != KEYS:
        return "antialias, exclude_outside and cubic_coeff_a have no kernel"
    if mode == "align_corners" and not is_whole(dims, outputs, factors):
        return "scales that make no whole sizes have no kernel with align_corners"
    return ""


def roundings_of(node: Node, dims: tuple[int, ...], outputs: list[int], factors: list[float]) -> set[str]:
    """Of all axes that are resized."""
    return {rounding_of(node, f) for f, n, o in zip(factors, dims, outputs, strict=True) if n != o or f != 1}


def check_resize(node: Node) -> None:
    """Raise ValueError for what has no definition here."""
    mode = node.get("mode", "nearest")
    if mode not in ("nearest", "linear", "cubic"):
        raise Unimplemented(f"{node}: mode {mode!r} is not defined here")
    if coordinates_of(node) not in (*COORDINATES, CROP):
        words = f"coordinate_transformation_mode {coordinates_of(node)!r}"
        raise Unimplemented(f"{node}: {words} is not defined")


def resize_types(node: Node, x: Value, *inputs: Value | None) -> list[Type]:
    check_resize(node)
    given = resize_inputs(node, tuple(None if value is None else value.data for value in inputs))
    if given[0] is not None or not inputs or inputs[0] is None:
        spans_of(node, len(x.shape), given[0])
    return [(tuple(resized(node, x.shape, *given)[0]), x.dtype)]
