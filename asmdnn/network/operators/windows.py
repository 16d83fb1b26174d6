"""Pooling, local normalisation, and resizing."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.definitions.normalization import local_response
from asmdnn.definitions.windows import SlidingWindow, largest, padded, window_means, window_sums
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.products import guarded
from asmdnn.network.operators.resizing import resize, resize_types
from asmdnn.records import replace


def pooling(node: Node, sizes: tuple[int, ...]) -> tuple[SlidingWindow, tuple[int, ...]]:
    """The window, with padding after so that it fits the outputs, and these."""
    if not sizes:
        raise ValueError("a pooling has dims after batch and channels")
    window = window_of(node, sizes, node.get("kernel_shape", ()))
    outputs = window.outputs(sizes, bool(node.get("ceil_mode", 0)))
    after = tuple(
        max(b, (o - 1) * s + (k - 1) * d + 1 - n - a)
        for o, n, k, s, d, a, b in zip(outputs, sizes, *window.fields(), strict=True)
    )
    return replace(window, after=after), outputs


def pool_types(node: Node, x: Value) -> list[Type]:
    dims = (*x.shape[:2], *pooling(node, x.shape[2:])[1])
    return [(dims, x.dtype), (dims, np.int64)]


def max_pool(node: Node, x: Array) -> Array | tuple[Array, Array]:
    window, _ = pooling(node, x.shape[2:])
    places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    if node.get("storage_order", 0):
        places = np.arange(x.size).reshape(*x.shape[:2], *x.shape[:1:-1]).transpose(0, 1, *range(x.ndim)[:1:-1])
    found = largest(guarded(x, window), window, places)
    return found if len(node.outputs) > 1 else found[0]


def average_pool(node: Node, x: Array) -> Array:
    window, _ = pooling(node, x.shape[2:])
    if not node.get("count_include_pad", 0):
        return window_means(guarded(x, window), window, includes_padding=False)[0]
    given = window_of(node, x.shape[2:], window.kernel)  # the padding that was asked for counts, what ceil adds not
    after = tuple(max(0, b - g) for b, g in zip(window.after, given.after, strict=True))
    whole = replace(window, before=(0,) * len(after), after=after)
    return window_means(padded(guarded(x, window), given), whole, includes_padding=False)[0]


def lp_pool(node: Node, x: Array) -> Array:
    window, p = pooling(node, x.shape[2:])[0], node.get("p", 2)
    return np.asarray(window_sums(np.abs(guarded(x, window)) ** p, window) ** (1 / p), x.dtype)


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
    numbers = node.get("alpha", 0.0001), node.get("beta", 0.75), node.get("bias", 1.0)
    return np.asarray(local_response(x, (1,), node.get("size"), *numbers), x.dtype)


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
