"""Operators that take elements by indices, or put them there."""

import numpy as np

from asmdnn.definitions.moves import UPDATES
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Shape, Type, Value, axis_of, bounded, normal, number


def gather(node: Node, x: Array, indices: Array) -> Array:
    return np.asarray(np.take(x, indices, node.get("axis", 0)))


def gather_types(node: Node, x: Value, indices: Value) -> list[Type]:
    axis = axis_of(node, len(x.shape), 0)
    check_integers(indices)
    check_axis(x.shape, indices.shape, axis)
    return [((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)]


def check_axis(dims: Shape, indices: Shape, axis: int) -> None:
    """Raise ValueError for indices that choose from an axis without elements."""
    if not dims[axis] and 0 not in indices:
        raise ValueError(f"axis {axis} of dims {dims} has no elements, indices of dims {indices} choose from it")


def check_integers(indices: Value) -> None:
    """Raise ValueError for indices that are none."""
    if indices.dtype not in (np.int32, np.int64):
        raise ValueError(f"indices of type {indices.dtype.name}")


def gather_elements(node: Node, x: Array, indices: Array) -> Array:
    axis = normal(node.get("axis", 0), x.ndim)
    corner = x[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(indices.shape))]
    return np.take_along_axis(corner, np.where(indices < 0, indices + x.shape[axis], indices), axis)


def elements_types(node: Node, x: Value, indices: Value) -> list[Type]:
    axis = axis_of(node, len(x.shape), 0)
    check_integers(indices)
    if not covers(x.shape, indices.shape, axis):
        raise ValueError(f"indices of dims {indices.shape} choose along axis {axis} of dims {x.shape}")
    check_axis(x.shape, indices.shape, axis)
    return [(indices.shape, x.dtype)]


def covers(dims: Shape, part: Shape, axis: int) -> bool:
    """Whether dims have as many axes, and but for one none shorter."""
    return len(part) == len(dims) and all(i == axis or m <= n for i, (n, m) in enumerate(zip(dims, part, strict=True)))


def gather_nd(node: Node, x: Array, indices: Array) -> Array:
    batch = node.get("batch_dims", 0)
    if not batch:
        return np.asarray(x[tuple([indices[..., i] for i in range(indices.shape[-1])])])
    outer = np.indices(x.shape[:batch]).reshape(batch, *x.shape[:batch], *[1] * (indices.ndim - batch - 1))
    return np.asarray(x[(*outer, *np.moveaxis(indices, -1, 0))])


def nd_types(node: Node, x: Value, indices: Value) -> list[Type]:
    batch, last = node.get("batch_dims", 0), indices.shape[-1:]
    if not last or not 0 <= batch < len(indices.shape) or x.shape[:batch] != indices.shape[:batch]:
        raise ValueError(f"indices of dims {indices.shape} and {batch} batch dims for dims {x.shape}")
    check_integers(indices)
    if not 1 <= last[0] <= len(x.shape) - batch:
        raise ValueError(f"indices of {last[0]} axes for dims {x.shape} after {batch}")
    return [((*indices.shape[:-1], *x.shape[batch + last[0] :]), x.dtype)]


def scatter_types(node: Node, x: Value, indices: Value, updates: Value) -> list[Type]:
    axis = axis_of(node, len(x.shape), 0)
    check_integers(indices)
    if indices.shape != updates.shape or not covers(x.shape, indices.shape, axis):
        raise ValueError(f"indices of dims {indices.shape} put dims {updates.shape} into {x.shape}")
    return [(x.shape, x.dtype)]


def scatter_nd_types(node: Node, x: Value, indices: Value, updates: Value) -> list[Type]:
    check_integers(indices)
    depth = indices.shape[-1] if indices.shape else 0
    if not 1 <= depth <= len(x.shape) or updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        raise ValueError(f"indices of dims {indices.shape} put dims {updates.shape} into {x.shape}")
    return [(x.shape, x.dtype)]


def scatter_elements(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    axis, result = normal(node.get("axis", 0), x.ndim), x.copy()
    places: list[Array] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    places[axis] = indices + x.shape[axis] * (indices < 0)  # where() waits for branches that nobody foresees
    flat = np.ravel_multi_index(tuple(np.broadcast_arrays(*places)), x.shape)  # of one index `at` is 3 times as fast
    updated(node, result.reshape(-1), (flat.ravel(),), updates.ravel())
    return result


def scatter_nd(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    return updated(node, x.copy(), tuple(np.moveaxis(indices, -1, 0)), updates)


def updated(node: Node, result: Array, places: tuple[Array, ...], updates: Array) -> Array:
    kind = node.get("reduction", "none")
    if kind == "none":
        result[places] = updates
    else:
        UPDATES[kind].at(result, places, updates)
    return result


def one_hot(node: Node, indices: Array, depth: Array, values: Array) -> Array:
    count, axis = int(number(depth)), normal(node.get("axis", -1), indices.ndim + 1)
    found = np.asarray(indices).astype(np.int64)
    where = np.expand_dims(np.where(found < 0, found + count, found), axis)  # others are nowhere
    along = np.arange(count).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    return np.asarray(np.where(where == along, values[1], values[0]), values.dtype)


def one_hot_types(node: Node, indices: Value, depth: Value, values: Value) -> list[Type]:
    count, axis = int(number(depth.data)), normal(node.get("axis", -1), len(indices.shape) + 1)
    if values.shape != (2,):
        raise ValueError(f"values of dims {values.shape}, which must be two")
    return [(bounded((*indices.shape[:axis], count, *indices.shape[axis:])), values.dtype)]


def reverse_sequence(node: Node, x: Array, lengths: Array) -> Array:
    batch, time = node.get("batch_axis", 1), node.get("time_axis", 0)
    result = x.copy()
    for i, n in enumerate(lengths):
        at: list[int | slice] = [slice(None)] * x.ndim
        at[batch] = i
        source = x[tuple(at)]
        axis = time - (time > batch)
        order = np.r_[np.arange(n)[::-1], n : source.shape[axis]]
        result[tuple(at)] = np.take(source, order, axis)
    return result


def reversed_types(node: Node, x: Value, lengths: Value) -> list[Type]:
    axes = {node.get("batch_axis", 1), node.get("time_axis", 0)}
    if axes != {0, 1} or len(x.shape) < 2 or lengths.shape != x.shape[node.get("batch_axis", 1) :][:1]:
        raise ValueError(f"lengths of dims {lengths.shape} for dims {x.shape}, batch and time being axes {axes}")
    return [(x.shape, x.dtype)]


OPERATORS = {
    "Gather": Operator(gather, gather_types),
    "GatherElements": Operator(gather_elements, elements_types),
    "GatherND": Operator(gather_nd, nd_types),
    "ScatterElements": Operator(scatter_elements, scatter_types),
    "Scatter": Operator(scatter_elements, scatter_types),
    "ScatterND": Operator(scatter_nd, scatter_nd_types),
    "OneHot": Operator(one_hot, one_hot_types, (1,)),
    "ReverseSequence": Operator(reverse_sequence, reversed_types),
}
