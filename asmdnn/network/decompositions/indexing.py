"""Elements by indices that are data: look-ups of rows, whose numbers are sums of indices and the sizes of axes.

Indices along an axis are counted from its start (Index), and looked at, so that none is out of range.
"""

from math import prod

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN

Names = tuple[str, ...] | None
MOST_PLACES = 1 << 24  # that are counted exactly


def gather_elements(w: Decomposer, node: Node, x: str, indices: str) -> Names:
    """dst[i, j, k] = src[i, indices[i, j, k], k], of axis 1 of three."""
    dims, shape = w.shape(x), w.shape(indices)
    axis = normal(node.get("axis", 0), len(dims))
    if not fits(w, x, indices):
        return None
    steps = [prod(dims[i + 1 :]) for i in range(len(dims))]
    own = np.indices(shape, sparse=True)
    others = sum(np.asarray(own[i] * step) for i, step in enumerate(steps) if i != axis)
    base = np.broadcast_to(np.asarray(others), tuple(1 if i == axis else n for i, n in enumerate(shape)))
    place = w("Add", w("Mul", index(w, indices, dims[axis], axis), w.like(indices, steps[axis])), w.like(indices, base))
    return (w("Gather", w.reshaped(x, prod(dims)), place, axis=0),)


def gather_nd(w: Decomposer, node: Node, x: str, indices: str) -> Names:
    """dst[b, i] = src[b, indices[b, i, 0], indices[b, i, 1], ...], b being `batch_dims` axes."""
    dims, shape, batch = w.shape(x), w.shape(indices), node.get("batch_dims", 0)
    depth = shape[-1]
    if not fits(w, x, indices):
        return None
    row, places = prod(dims[batch + depth :]), dims[: batch + depth]
    base = np.arange(prod(dims[:batch])).reshape((*shape[:batch], *[1] * (len(shape) - 1 - batch)))
    total = w.like(indices, base * prod(places[batch:]))
    for i in range(depth):
        one = w("Gather", indices, w.constant(i, np.int64), axis=len(shape) - 1)
        step = w.like(indices, prod(places[batch + i + 1 :]))
        total = w("Add", w("Mul", index(w, one, places[batch + i], batch + i), step), total)
    rows = w("Gather", w.reshaped(x, prod(places), row), total, axis=0)
    return (w.reshaped(rows, *shape[:-1], *dims[batch + depth :]),)


def fits(w: Decomposer, x: str, indices: str) -> bool:
    """Whether indices are data, and there are elements, as many as are counted exactly."""
    some = 0 not in (*w.shape(x), *w.shape(indices))
    return some and w.data(indices) is None and prod(w.shape(x)) <= MOST_PLACES and w.value(x).dtype != np.bool_


def index(w: Decomposer, indices: str, limit: int, axis: int) -> str:
    """Indices along an axis from 0 on."""
    return w("Index", indices, domain=OWN, limit=limit, axis=axis)


DECOMPOSITIONS = {"GatherElements": gather_elements, "GatherND": gather_nd}
