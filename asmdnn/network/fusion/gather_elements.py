"""GatherElements by constant indices as Gather: of rows, where neighbours are taken together.

    dst[l, i, t] = src[l, p(i), t]

Let l run over the axes in front along which the indices are the same, t over those after; what is between is one axis,
in which every element of the result has a place p(i) that is known.  So the scores of relative positions, which depend
on query and key alone, are taken of all heads alike.  Moves only: the same bits.
"""

from math import prod

import numpy as np

from asmdnn.network.arrays import Array
from asmdnn.network.fusion.replacement import Replacement, with_replaced_nodes
from asmdnn.network.operators.definition import Shape, normal
from asmdnn.network.static import StaticGraph


def taken(graph: StaticGraph) -> StaticGraph:
    """The graph without GatherElements of f32 by constant indices."""
    return with_replaced_nodes(graph, ("GatherElements",), replace_node)


def replace_node(new: Replacement) -> None:
    node = new.node
    x, indices = node.inputs
    data, dims = new.values[indices].data, new.dims(x)
    if data is None or not data.size or new.values[x].dtype != np.float32:
        return
    axis = normal(node.get("axis", 0), len(dims))
    numbers = np.where(data < 0, data + dims[axis], data)
    if numbers.min() < 0 or numbers.max() >= dims[axis]:
        return  # refused where it is lowered
    front, after = alike(numbers, dims, range(axis)), alike(numbers, dims, range(len(dims) - 1, axis, -1))
    inner = slice(front, len(dims) - after)
    outer, row = prod(dims[:front]), prod(dims[len(dims) - after :])
    places = places_in(numbers[(0,) * front][(..., *(0,) * after)], dims[inner], axis - front)
    flat = new.shaped("Reshape", x, (outer, prod(dims[inner]), row))
    rows = new.then("Gather", (flat, new.constant(places)), (outer, places.size, row), axis=1)
    new.shaped("Reshape", rows, data.shape, is_last=True)


def alike(numbers: Array, dims: Shape, axes: range) -> int:
    """How many of these axes, from the first on, are taken whole and have the same indices everywhere."""
    for i, axis in enumerate(axes):
        if numbers.shape[axis] != dims[axis] or (numbers != numbers.take([0], axis)).any():
            return i
    return len(axes)


def places_in(numbers: Array, dims: Shape, axis: int) -> Array:
    """Where each element lies among all, in row-major order."""
    at: list[Array] = list(np.indices(numbers.shape))
    at[axis] = numbers
    return np.ravel_multi_index(tuple(at), dims).ravel()
