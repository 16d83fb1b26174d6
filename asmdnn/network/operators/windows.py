"""Pooling, local normalisation, and resizing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.network.operators.geometry import WindowSizes, window_of
from asmdnn.network.operators.products import padded, windows
from asmdnn.network.operators.resizing import resize, resize_types


def pooling(node: Node, sizes: tuple[int, ...]) -> tuple[WindowSizes, tuple[int, ...]]:
    """The window, with padding behind so that it fits the outputs, and these."""
    if not sizes:
        raise ValueError("a pooling has dims behind batch and channels")
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
        lambda node, x: np.asarray(function(x, axis=tuple(range(2, x.ndim)), keepdims=True), x.dtype), whole_types
    )


def whole_types(node: Node, x: Value) -> list[Type]:
    if len(x.shape) < 2 or 0 in x.shape[2:]:
        raise ValueError(f"dims {x.shape}: a pooling has batch, channels, and something to pool")
    return [((*x.shape[:2], *[1] * (len(x.shape) - 2)), x.dtype)]


def lrn_types(node: Node, x: Value) -> list[Type]:
    if len(x.shape) < 2 or node.get("size") < 1:
        raise ValueError(f"size {node.get('size')} of dims {x.shape}")
    return [(x.shape, x.dtype)]


def lrn(node: Node, x: Array) -> Array:
    """Local response normalisation across channels."""
    size, channels = node.get("size"), x.shape[1]
    before, behind = (min(n, channels) for n in ((size - 1) // 2, size // 2))  # further off there are none
    squares = np.pad(np.square(x), [(0, 0), (before, behind), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, i : i + channels] for i in range(before + 1 + behind))
    scale = node.get("bias", 1.0) + node.get("alpha", 0.0001) / size * total
    return np.asarray(x / scale ** node.get("beta", 0.75), x.dtype)


OPERATORS = {
    "MaxPool": Operator(max_pool, pool_types),
    "AveragePool": Operator(average_pool, pool_types),
    "LpPool": Operator(lp_pool, pool_types),
    "GlobalAveragePool": whole(np.mean),
    "GlobalMaxPool": whole(np.max),
    "GlobalLpPool": Operator(
        lambda node, x: np.asarray(
            (np.abs(x) ** node.get("p", 2)).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / node.get("p", 2)),
            x.dtype,
        ),
        whole_types,
    ),
    "LRN": Operator(lrn, lrn_types),
    "Resize": Operator(resize, resize_types, (2, 3)),
    "Upsample": Operator(resize, resize_types, (1,)),
}
