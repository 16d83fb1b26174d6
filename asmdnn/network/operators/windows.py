"""Pooling, local normalisation, and resizing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, axes_of, bounded, ints, same_as_first
from asmdnn.network.operators.geometry import Window, window_of
from asmdnn.network.operators.products import padded, windows


def pooling(node: Node, sizes: tuple[int, ...]) -> tuple[Window, tuple[int, ...]]:
    """The window, with padding behind so that it fits the outputs, and these."""
    window = window_of(node, sizes, node.get("kernel_shape", ()))
    outputs = window.outputs(sizes, bool(node.get("ceil_mode", 0)))
    behind = tuple(
        max(b, (o - 1) * s + (k - 1) * d + 1 - n - a)
        for o, n, k, s, d, a, b in zip(outputs, sizes, *window.fields(), strict=True)
    )
    return replace(window, behind=behind), outputs


def pool_types(node: Node, x: Value) -> list[Type]:
    dims = (*x.shape[:2], *pooling(node, x.shape[2:])[1])
    return [(dims, x.dtype), (dims, np.int64)]


def over_windows(x: Array, function: Callable[..., Any]) -> Any:
    """A reduction of windows, over their kernel's axes."""
    axes = (x.ndim - 2) // 2
    return function(x, axis=tuple(range(2 + axes, x.ndim)))


def max_pool(node: Node, x: Array) -> Array | tuple[Array, Array]:
    window, outputs = pooling(node, x.shape[2:])
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    seen = windows(padded(x, window, lowest), window)
    if len(node.outputs) < 2:
        return np.asarray(over_windows(seen, np.max))
    places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    if node.get("storage_order", 0):
        places = np.arange(x.size).reshape(*x.shape[:2], *x.shape[:1:-1]).transpose(0, 1, *range(x.ndim)[:1:-1])
    flat = seen.reshape(*x.shape[:2], *outputs, -1)
    where = windows(padded(places, window), window).reshape(flat.shape)
    best = np.argmax(flat, -1)[..., None]
    return np.take_along_axis(flat, best, -1)[..., 0], np.take_along_axis(where, best, -1)[..., 0]


def average_pool(node: Node, x: Array) -> Array:
    window, _ = pooling(node, x.shape[2:])
    total = over_windows(windows(padded(x, window), window), np.sum)
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    if node.get("count_include_pad", 0):
        given = window_of(node, x.shape[2:], window.kernel)  # the padding that was asked for counts, what ceil adds not
        ones = padded(ones, given, 1)
        window = replace(window, before=(0,) * len(window.kernel), behind=tuple(
            max(0, b - g) for b, g in zip(window.behind, given.behind, strict=True)
        ))  # fmt: skip
    count = over_windows(windows(padded(ones, window), window), np.sum)
    return np.asarray(total / count, x.dtype)


def lp_pool(node: Node, x: Array) -> Array:
    window, p = pooling(node, x.shape[2:])[0], node.get("p", 2)
    seen = windows(padded(x, window), window)
    return np.asarray(over_windows(np.abs(seen) ** p, np.sum) ** (1 / p), x.dtype)


def whole(function: Callable[..., Any]) -> Operator:
    """Pooling of all that there is."""
    return Operator(
        lambda node, x: np.asarray(function(x, axis=tuple(range(2, x.ndim)), keepdims=True), x.dtype),
        lambda node, x: [((*x.shape[:2], *[1] * (len(x.shape) - 2)), x.dtype)],
    )


def lrn(node: Node, x: Array) -> Array:
    """Local response normalisation across channels."""
    size, channels = node.get("size"), x.shape[1]
    before = (size - 1) // 2
    squares = np.pad(np.square(x), [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, i : i + channels] for i in range(size))
    scale = node.get("bias", 1.0) + node.get("alpha", 0.0001) / size * total
    return np.asarray(x / scale ** node.get("beta", 0.75), x.dtype)


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


OPERATORS = {
    "MaxPool": Operator(max_pool, pool_types),
    "AveragePool": Operator(average_pool, pool_types),
    "LpPool": Operator(lp_pool, pool_types),
    "GlobalAveragePool": whole(np.mean),
    "GlobalMaxPool": whole(np.max),
    "GlobalLpPool": Operator(
        lambda node, x: (
            (np.abs(x) ** node.get("p", 2)).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / node.get("p", 2))
        )
    ),
    "LRN": Operator(lrn, same_as_first),
    "Resize": Operator(resize, resize_types, (2, 3)),
    "Upsample": Operator(resize, resize_types, (1,)),
}
