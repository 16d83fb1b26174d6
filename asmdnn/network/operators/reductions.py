"""Reductions along axes, and where their extremes are."""

from collections.abc import Callable
from math import prod
from typing import Any, Literal

import numpy as np

from asmdnn.definitions.reduction import cumulated, log_sum_exp
from asmdnn.definitions.reduction import top as highest
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, axes_of, axis_of, normal, number


def axes_to_reduce(node: Node, ndim: int, given: Any) -> tuple[int, ...]:
    """All axes if none is said, unless that means to do nothing."""
    axes = axes_of(node, given, ndim)
    if axes is None or (not axes and given is not None and np.size(given) == 0):
        return () if node.get("noop_with_empty_axes", 0) else tuple(range(ndim))
    return axes


def reduced(node: Node, x: Value, axes: Value | None = None) -> list[Type]:
    chosen = axes_to_reduce(node, len(x.shape), None if axes is None else axes.data)
    keeps = node.get("keepdims", 1)
    kept = (1 if i in chosen else n for i, n in enumerate(x.shape) if keeps or i not in chosen)
    return [(tuple(kept), x.dtype)]


def reduction(function: Callable[..., Any]) -> Operator:
    def evaluate(node: Node, x: Array, axes: Array | None = None) -> Array:
        chosen = axes_to_reduce(node, x.ndim, axes)
        return np.asarray(function(x, axis=chosen, keepdims=bool(node.get("keepdims", 1))), x.dtype)

    return Operator(evaluate, reduced, (1,))


def limits_of(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest number of a type."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    return (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def extreme(function: Callable[..., Any]) -> Operator:
    """Of an empty axis the least or the largest number that there is."""

    def evaluate(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
        if 0 in x.shape:
            limits = limits_of(x.dtype)
            return function(x, axis=axis, keepdims=keepdims, initial=limits[0 if function is np.max else 1])
        return function(x, axis=axis, keepdims=keepdims)

    return reduction(evaluate)


def mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Of nothing no number, without numpy's warning."""
    return np.mean(x, axis=axis, keepdims=keepdims) if x.size else np.sum(x, axis=axis, keepdims=keepdims) * np.nan


def floats(x: Array) -> Array:
    """Integers in double precision."""
    return x.astype(np.float64) if x.dtype.kind in "iu" else x


def position(function: Callable[..., Any]) -> Operator:
    def evaluate(node: Node, x: Array) -> Array:
        axis = normal(node.get("axis", 0), x.ndim)
        if node.get("select_last_index", 0):
            found = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis)
        else:
            found = function(x, axis=axis)
        return np.asarray(np.expand_dims(found, axis) if node.get("keepdims", 1) else found, np.int64)

    def types(node: Node, x: Value) -> list[Type]:
        axis = normal(node.get("axis", 0), len(x.shape))
        kept = tuple(1 if i == axis else n for i, n in enumerate(x.shape) if node.get("keepdims", 1) or i != axis)
        return [(kept, np.int64)]

    return Operator(evaluate, types)


def cumulative(alg: Literal["sum", "mul"]) -> Operator:
    def evaluate(node: Node, x: Array, axis: Array) -> Array:
        flags = (bool(node.get(name, 0)) for name in ("exclusive", "reverse"))
        return cumulated(alg, x, normal(int(number(axis)), x.ndim), *flags)

    def types(node: Node, x: Value, axis: Value) -> list[Type]:
        if not x.shape or prod(axis.shape) != 1:
            raise ValueError(f"an axis of dims {axis.shape} for dims {x.shape}")
        if axis.data is not None:
            normal(int(number(axis.data)), len(x.shape))
        return [(x.shape, x.dtype)]

    return Operator(evaluate, types)


def top_types(node: Node, x: Value, count: Value | None = None) -> list[Type]:
    k = node.get("k") if count is None else int(number(count.data))
    axis = axis_of(node, len(x.shape), -1)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"k is {k} of {x.shape[axis]} elements")
    dims = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [(dims, x.dtype), (dims, np.int64)]


def top(node: Node, x: Array, count: Array | None = None) -> tuple[Array, Array]:
    k = node.get("k") if count is None else int(number(count))
    axis = normal(node.get("axis", -1), x.ndim)
    values, places = highest(x, k, axis, bool(node.get("largest", 1)))
    return values, places.astype(np.int64)


OPERATORS = {
    "ReduceSum": reduction(np.sum),
    "ReduceMean": reduction(mean),
    "ReduceProd": reduction(np.prod),
    "ReduceMax": extreme(np.max),
    "ReduceMin": extreme(np.min),
    "ReduceSumSquare": reduction(lambda x, **how: np.sum(np.square(x), **how)),
    "ReduceL1": reduction(lambda x, **how: np.sum(np.abs(x), **how)),
    "ReduceL2": reduction(lambda x, **how: np.sqrt(np.sum(np.square(x), **how))),
    "ReduceLogSum": reduction(lambda x, **how: np.log(np.sum(x, **how))),
    "ReduceLogSumExp": reduction(lambda x, **how: log_sum_exp(floats(x), **how)),
    "ArgMax": position(np.argmax),
    "ArgMin": position(np.argmin),
    "CumSum": cumulative("sum"),
    "CumProd": cumulative("mul"),
    "TopK": Operator(top, top_types, (1,)),
}
