"""Elements put where indices say, as rows of a matrix by numbers that are sums of indices and the sizes of axes.

As look-ups (indexing.py), with constants, too: of these the numbers are known.
"""

from math import prod

import numpy as np

from asmdnn.network.decompositions.indexing import MOST_PLACES, Names, index
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN


def scatter_elements(w: Decomposer, node: Node, x: str, indices: str, updates: str) -> Names:
    """dst = x, and then dst[i, indices[i, j, k], k] = updates[i, j, k], of axis 1 of three; every element is a row."""
    dims, shape = w.shape(x), w.shape(indices)
    axis = normal(node.get("axis", 0), len(dims))
    steps = [prod(dims[i + 1 :]) for i in range(len(dims))]
    own = np.indices(shape, sparse=True)
    base = np.broadcast_to(
        np.asarray(sum(np.asarray(own[i] * step) for i, step in enumerate(steps) if i != axis)), shape
    )
    parts = [(indices, dims[axis], axis, steps[axis])]
    return rows_scattered(w, node, (x, updates), places_of(w, parts, base), (prod(dims), 1))


def scatter_nd(w: Decomposer, node: Node, x: str, indices: str, updates: str) -> Names:
    """dst = x, and then dst[indices[i, 0], indices[i, 1], ...] = updates[i]."""
    dims, shape = w.shape(x), w.shape(indices)
    depth = shape[-1]
    data = w.data(indices)
    parts = [
        (
            w.constant(data[..., i], data.dtype)
            if data is not None
            else w("Gather", indices, w.constant(i, np.int64), axis=len(shape) - 1),
            dims[i],
            i,
            prod(dims[i + 1 : depth]),
        )
        for i in range(depth)
    ]
    places = places_of(w, parts, np.zeros(shape[:-1], np.int64))
    return rows_scattered(w, node, (x, updates), places, (prod(dims[:depth]), prod(dims[depth:])))


Part = tuple[str, int, int, int]  # indices along an axis: their name, its size, its number, and its distance


def places_of(w: Decomposer, parts: list[Part], base: Array) -> str | None:
    """The number of a row for each update; None for constants out of range, which are refused as they are."""
    known = [w.data(name) for name, *_ in parts]
    if all(data is not None for data in known):
        total = base.astype(np.int64)
        for data, (_, size, _, step) in zip(known, parts, strict=True):
            numbers = np.asarray(data).astype(np.int64)
            if numbers.size and not -size <= numbers.min() <= numbers.max() < size:
                return None
            total = total + step * np.where(numbers < 0, numbers + size, numbers)
        return w.constant(total.ravel(), np.int64)
    name = parts[0][0]
    total_name = w.like(name, base)
    for one, size, axis, step in parts:
        total_name = w("Add", w("Mul", index(w, one, size, axis), w.like(one, step)), total_name)
    return w.reshaped(total_name, base.size)


def rows_scattered(
    w: Decomposer, node: Node, given: tuple[str, str], places: str | None, matrix: tuple[int, int]
) -> Names:
    x, updates = given
    rows, size = matrix
    if places is None or 0 in (rows, size, *w.shape(places)) or rows > MOST_PLACES:
        return None
    operands = w.reshaped(x, rows, size), places, w.reshaped(updates, *w.shape(places), size)
    result = w("ScatterRows", *operands, domain=OWN, reduction=node.get("reduction", "none"))
    return (w.reshaped(result, *w.shape(x)),)


DECOMPOSITIONS = {"ScatterElements": scatter_elements, "Scatter": scatter_elements, "ScatterND": scatter_nd}
