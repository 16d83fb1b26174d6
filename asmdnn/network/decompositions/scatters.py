"""Elements put where indices say, as rows of a matrix by numbers that are sums of indices and the sizes of axes."""

from math import prod

import numpy as np

from asmdnn.network.decompositions.indexing import (
    Names,
    elements_beside,
    fits,
    in_type_of,
    numbers_of,
    parts_of,
    places_of,
)  # fmt: skip
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN


def scatter_elements(w: Decomposer, node: Node, x: str, indices: str, updates: str) -> Names:
    """dst = x, and then dst[i, indices[i, j, k], k] = updates[i, j, k], of axis 1 of three; every element is a row."""
    dims, shape = w.shape(x), w.shape(indices)
    axis = normal(node.get("axis", 0), len(dims))
    if not fits(w, x, indices):
        return None
    places = places_of(w, [(indices, dims[axis], axis, prod(dims[axis + 1 :]))], elements_beside(dims, shape, axis))
    return rows_scattered(w, node, (x, updates), places, (prod(dims), 1))


def scatter_nd(w: Decomposer, node: Node, x: str, indices: str, updates: str) -> Names:
    """dst = x, and then dst[indices[i, 0], indices[i, 1], ...] = updates[i]."""
    dims, shape = w.shape(x), w.shape(indices)
    depth = shape[-1]
    if not fits(w, x, indices):
        return None
    places = places_of(w, parts_of(w, indices, dims[:depth], 0), np.zeros(shape[:-1], np.int64))
    return rows_scattered(w, node, (x, updates), places, (prod(dims[:depth]), prod(dims[depth:])))


def rows_scattered(
    w: Decomposer, node: Node, given: tuple[str, str], places: str | None, matrix: tuple[int, int]
) -> Names:
    """(x, updates) as matrices, x of so many rows of so many elements.  Truths are only moved."""
    (x, updates), (rows, size), reduction = given, matrix, node.get("reduction", "none")
    if places is None or (w.value(x).dtype == np.bool_ and reduction != "none"):
        return None
    source, new = w.reshaped(numbers_of(w, x), rows, size), w.reshaped(numbers_of(w, updates), *w.shape(places), size)
    result = w("ScatterRows", source, places, new, domain=OWN, reduction=reduction)
    return (in_type_of(w, w.reshaped(result, *w.shape(x)), x),)


DECOMPOSITIONS = {"ScatterElements": scatter_elements, "Scatter": scatter_elements, "ScatterND": scatter_nd}
