"""Elements put where indices say, as rows of a matrix by numbers that are sums of indices and the sizes of axes."""

from math import prod

import numpy as np

from asmdnn.network.decompositions.indexing import (
    MOST_PLACES,
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
    whole = whole_rows(w, indices, axis)
    if whole and shape == (*dims[:axis], shape[axis], *dims[axis + 1 :]):
        return rows_along(w, node, (x, updates), whole, axis)
    if not fits(w, x, indices):
        return None
    places = places_of(w, [(indices, dims[axis], axis, prod(dims[axis + 1 :]))], elements_beside(dims, shape, axis))
    return rows_scattered(w, node, (x, updates), places, (prod(dims), 1), most_often=shape[axis])


def scatter_nd(w: Decomposer, node: Node, x: str, indices: str, updates: str) -> Names:
    """dst = x, and then dst[indices[i, 0], indices[i, 1], ...] = updates[i]."""
    dims, shape = w.shape(x), w.shape(indices)
    depth = shape[-1]
    turned = w.maker(x, "Transpose") if depth == 1 else None
    if turned is not None:
        return turned_rows(w, node, turned, (indices, updates))
    if not fits(w, x, indices):
        return None
    places = places_of(w, parts_of(w, indices, dims[:depth], 0), np.zeros(shape[:-1], np.int64))
    return rows_scattered(w, node, (x, updates), places, (prod(dims[:depth]), prod(dims[depth:])))


def whole_rows(w: Decomposer, indices: str, axis: int) -> str:
    """The integers that say where whole rows go, if the same ones are repeated along all other axes; "" if not."""
    node = w.maker(indices, "Expand")
    if node is None or prod(w.shape(node.inputs[0])) != w.shape(indices)[axis]:
        return ""
    first = len(w.shape(indices)) - len(w.shape(node.inputs[0]))
    is_along = first <= axis and w.shape(node.inputs[0])[axis - first] == w.shape(indices)[axis]
    return w.reshaped(node.inputs[0], w.shape(indices)[axis]) if is_along else ""


def turned_rows(w: Decomposer, node: Node, turned: Node, given: tuple[str, str]) -> Names:
    """Rows along the first axis of a transposed tensor, which are put into the tensor itself: as exports of caches have
    it, whose axis of tokens comes third.  given: indices and updates."""
    (x, *_), perm = turned.inputs, turned.get("perm", tuple(reversed(range(len(w.shape(turned.inputs[0]))))))
    indices, updates = given
    count = prod(w.shape(indices))
    rows = w.reshaped(updates, count, *(w.shape(x)[axis] for axis in perm[1:]))
    back = tuple(perm.index(axis) for axis in range(len(perm)))
    found = rows_along(w, node, (x, w.turned(rows, *back)), w.reshaped(indices, count), perm[0], said=0)
    return None if found is None else (w.turned(found[0], *perm),)


def rows_along(
    w: Decomposer, node: Node, given: tuple[str, str], places: str, axis: int, said: int | None = None
) -> Names:
    """(x, updates), whose rows along an axis go where a vector of integers says.  said: the axis for a message."""
    dims, count = w.shape(given[0]), w.shape(places)[0]
    before, room = prod(dims[:axis]), dims[axis]
    if 0 in (*dims, count) or before * room > MOST_PLACES:
        return None
    begins = np.broadcast_to(room * np.arange(before)[:, None], (before, count))
    every = places_of(w, [(places, room, axis if said is None else said, 1)], begins)
    return rows_scattered(w, node, given, every, (before * room, prod(dims[axis + 1 :])), most_often=count)


def rows_scattered(
    w: Decomposer,
    node: Node,
    given: tuple[str, str],
    places: str | None,
    matrix: tuple[int, int],
    most_often: int | None = None,
) -> Names:
    """(x, updates) as matrices, x of so many rows of so many elements.  Truths are only moved.

    most_often: how many places may be one row, where it is known; it bounds sums of integers."""
    (x, updates), (rows, size), reduction = given, matrix, node.get("reduction", "none")
    if places is None or (w.value(x).dtype == np.bool_ and reduction != "none"):
        return None
    source, new = w.reshaped(numbers_of(w, x), rows, size), w.reshaped(numbers_of(w, updates), *w.shape(places), size)
    known = {} if most_often is None else {"most_often": most_often}
    result = w("ScatterRows", source, places, new, domain=OWN, reduction=reduction, **known)
    return (in_type_of(w, w.reshaped(result, *w.shape(x)), x),)


DECOMPOSITIONS = {"ScatterElements": scatter_elements, "Scatter": scatter_elements, "ScatterND": scatter_nd}
