"""Elements by indices that are data: look-ups of rows, whose numbers are sums of indices and the sizes of axes.

Indices along an axis are counted from its start (Index), and looked at, so that none is out of range.
"""

from math import prod

import numpy as np

from asmdnn.network.decompositions.looked_at import index
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import normal

Names = tuple[str, ...] | None
Part = tuple[str, int, int, int]  # indices along an axis: their name, its size, its number, and its distance
MOST_PLACES = 1 << 24  # that are counted exactly


def gather_elements(w: Decomposer, node: Node, x: str, indices: str) -> Names:
    """dst[i, j, k] = src[i, indices[i, j, k], k], of axis 1 of three.  Of f32 by constants fusion takes whole rows."""
    dims, shape = w.shape(x), w.shape(indices)
    axis = normal(node.get("axis", 0), len(dims))
    if not fits(w, x, indices) or (w.data(indices) is not None and w.value(x).dtype == np.float32):
        return None
    places = places_of(w, [(indices, dims[axis], axis, prod(dims[axis + 1 :]))], elements_beside(dims, shape, axis))
    return looked_up(w, x, places, (prod(dims), 1), shape)


def gather_nd(w: Decomposer, node: Node, x: str, indices: str) -> Names:
    """dst[b, i] = src[b, indices[b, i, 0], indices[b, i, 1], ...], b being `batch_dims` axes."""
    dims, shape, batch = w.shape(x), w.shape(indices), node.get("batch_dims", 0)
    end = batch + shape[-1]
    if not fits(w, x, indices):
        return None
    base = np.arange(prod(dims[:batch])).reshape((*shape[:batch], *[1] * (len(shape) - 1 - batch)))
    parts = parts_of(w, indices, dims[batch:end], batch)
    places = places_of(w, parts, np.broadcast_to(base * prod(dims[batch:end]), shape[:-1]))
    return looked_up(w, x, places, (prod(dims[:end]), prod(dims[end:])), (*shape[:-1], *dims[end:]))


def fits(w: Decomposer, x: str, indices: str) -> bool:
    """Whether there are elements, as many as are counted exactly."""
    return 0 not in (*w.shape(x), *w.shape(indices)) and prod(w.shape(x)) <= MOST_PLACES


def looked_up(w: Decomposer, x: str, places: str | None, matrix: tuple[int, int], made: tuple[int, ...]) -> Names:
    """Rows of x as a matrix, in the dims `made`."""
    if places is None:
        return None
    rows = w("Gather", w.reshaped(numbers_of(w, x), *matrix), places, axis=0)
    return (in_type_of(w, w.reshaped(rows, *made), x),)


def numbers_of(w: Decomposer, x: str) -> str:
    """Truths as numbers, which alone are moved; others as they are."""
    return w("Cast", x, to=CODES["float32"]) if w.value(x).dtype == np.bool_ else x


def in_type_of(w: Decomposer, found: str, x: str) -> str:
    """What was moved of such numbers, in the type of x."""
    return w("Cast", found, to=CODES["bool"]) if w.value(x).dtype == np.bool_ else found


def elements_beside(dims: tuple[int, ...], shape: tuple[int, ...], axis: int) -> Array:
    """Where elements of `shape` are in a tensor of `dims`, but for the axis."""
    own = np.indices(shape, sparse=True)
    places = sum(np.asarray(own[i] * prod(dims[i + 1 :])) for i in range(len(dims)) if i != axis)
    return np.broadcast_to(np.asarray(places), shape)


def parts_of(w: Decomposer, indices: str, dims: tuple[int, ...], first: int) -> list[Part]:
    """Of the last axis of indices, whose elements are along these dims, the axes from `first` on."""
    data, found = w.data(indices), list[Part]()
    for i, size in enumerate(dims):
        if data is not None:
            one = w.constant(data[..., i], data.dtype)
        else:
            one = w("Gather", indices, w.constant(i, np.int64), axis=len(w.shape(indices)) - 1)
        found.append((one, size, first + i, prod(dims[i + 1 :])))
    return found


def places_of(w: Decomposer, parts: list[Part], base: Array) -> str | None:
    """A vector of the numbers of rows: `base` and what indices add to it; None for constants out of range, which are
    refused as they are."""
    known = [w.data(name) for name, *_ in parts]
    if all(data is not None for data in known):
        total = base.astype(np.int64)
        for data, (_, size, _, step) in zip(known, parts, strict=True):
            numbers = np.asarray(data).astype(np.int64)
            if not -size <= numbers.min() <= numbers.max() < size:
                return None
            total = total + step * np.where(numbers < 0, numbers + size, numbers)
        return w.constant(total.ravel(), np.int64)
    name = w.like(parts[0][0], base)
    for one, size, axis, step in parts:
        name = w("Add", w("Mul", index(w, one, size, axis), w.like(one, step)), name)
    return w.reshaped(name, base.size)


def compressed(w: Decomposer, node: Node, x: str, condition: str) -> Names:
    """What a constant chooses; without an axis of all elements in a row."""
    chosen, dims = w.data(condition), w.shape(x)
    if chosen is None:
        return None
    axis = normal(node.get("axis"), len(dims)) if "axis" in node.attributes else 0
    dims = dims if "axis" in node.attributes else (prod(dims),)
    places = np.flatnonzero(chosen)
    if not places.size:
        return (w.like(x, np.zeros((*dims[:axis], 0, *dims[axis + 1 :]))),)
    if places[-1] >= dims[axis]:
        return None  # the definition says what is wrong
    return (in_type_of(w, w("Gather", numbers_of(w, w.reshaped(x, *dims)), w.ints(*places), axis=axis), x),)


DECOMPOSITIONS = {"Compress": compressed, "GatherElements": gather_elements, "GatherND": gather_nd}
