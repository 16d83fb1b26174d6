"""Caches of keys and values: tensors with room along an axis, of which every call writes some rows.

Where a cache is a state, rows are written into its memory, and nothing is copied.  Source of TensorScatter:
https://onnx.ai/onnx/operators.
"""

from math import prod

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.looked_at import index
from asmdnn.network.decompositions.scatters import rows_scattered
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import INT, one_of
from asmdnn.network.operators.definition import normal


def cache_written(w: Decomposer, node: Node, cache: str, new: str, places: str, axis: int) -> str:
    """The cache (n, .., room, ..) after rows `new` (n, .., rows, ..) have been put along `axis`.

    places: integers (n, rows), where the rows of each item go, from 0 to room - 1.
    """
    dims, rows = w.shape(cache), w.shape(new)[axis]
    if 0 in (*dims, rows):
        return cache
    before, room, dtype = prod(dims[:axis]), dims[axis], w.value(places).dtype
    begins = w.constant(room * np.arange(before).reshape(dims[0], -1, 1), dtype)
    every = w.reshaped(w("Add", w.reshaped(places, dims[0], 1, rows), begins), before * rows)
    found = rows_scattered(w, node, (cache, new), every, (before * room, prod(dims[axis + 1 :])))
    assert found is not None, "rows are moved, whatever their type"
    return found[0]


def tensor_scatter(w: Decomposer, node: Node, past: str, update: str, first: str) -> tuple[str]:
    """Rows that follow one another, from an own one on for each item; those after the last one are the first again."""
    dims, new = w.shape(past), w.shape(update)
    axis, is_circular = normal(node.get("axis", -2), len(dims)), node.get("mode", "linear") == "circular"
    if axis == 0 or new != (*dims[:axis], *new[axis : axis + 1], *dims[axis + 1 :]) or new[axis] > dims[axis]:
        raise InvalidArguments(f"{node} puts dims {new} into {dims} along axis {axis}")
    start = w.ints(*[0] * dims[0]) if first == NOTHING else first
    if not is_circular:
        start = index(w, start, dims[axis] - new[axis] + 1, axis)
    dtype = w.value(start).dtype
    places = w("Add", w.reshaped(start, dims[0], 1), w.constant(np.arange(new[axis]), dtype))
    places = w("Mod", places, w.constant(dims[axis], dtype)) if is_circular else places
    return (cache_written(w, node, past, update, places, axis),)


DECOMPOSITIONS = {
    "TensorScatter": ForeignOperator(
        tensor_scatter, "xx?", 1, {"axis": INT, "mode": one_of("linear", "circular")}, of_integers=True
    )
}
