"""Rules of look-ups: rows of a table get the sums of what was read from them.  And of scatters, which put it there."""

from math import prod

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Shape, normal
from asmdnn.network.operators.own import OWN


def gather(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    table, indices = node.inputs
    dims = w.shape(table)
    return added_where_read(w, given_of(given), dims, normal(node.get("axis", 0), len(dims)), indices), None


def added_where_read(w: GradientWords, d: str, dims: Shape, axis: int, indices: str) -> str:
    """Of a table of these dims: added up in the order of indices.  Along another axis, of the table with that axis
    first."""
    places = len(w.shape(indices))
    if axis:
        d = w.turned(d, *range(axis, axis + places), *range(axis), *range(axis + places, len(w.shape(d))))
        dims = (dims[axis], *dims[:axis], *dims[axis + 1 :])
    count, size = prod(w.shape(indices)), prod(dims[1:])
    zeros = w.expanded(w.constant(np.zeros((1, 1))), dims[0], size)
    rows = zeros, w.reshaped(indices, count), w.reshaped(d, count, size)
    found = w.reshaped(w("ScatterRows", *rows, domain=OWN, reduction="add"), *dims)
    return w.turned(found, *range(1, axis + 1), 0, *range(axis + 1, len(dims))) if axis else found


def compress(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By a condition that is constant; without an axis of all elements in a row."""
    condition, dims = w.data_of(node, 1), w.shape(node.inputs[0])
    if condition is None:
        return None, None
    places = w.constant(np.flatnonzero(condition), np.int64)
    if "axis" in node.attributes:
        return added_where_read(w, given_of(given), dims, normal(node.get("axis"), len(dims)), places), None
    return w.reshaped(added_where_read(w, given_of(given), (prod(dims),), 0, places), *dims), None


def gather_elements(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    x, indices = node.inputs
    zeros = w.constant(np.zeros(w.shape(x)))
    how = {"axis": node.get("axis", 0), "reduction": "add"}
    return w("ScatterElements", zeros, indices, given_of(given), **how), None


def topk(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """To where the best come from; by places there is no gradient."""
    d, _ = given
    if d is None:
        return [None] * len(node.inputs)
    x, axis = node.inputs[0], node.get("axis", -1)
    _, places = w.results("TopK", node.inputs, 2, **node.attributes)
    by_x = w("ScatterElements", w.constant(np.zeros(w.shape(x))), places, d, axis=axis)
    return by_x, *[None] * (len(node.inputs) - 1)


def scatter_rows(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of updates that are added, and of those that take a row's place: of several the last one, which x then lacks.

    Raises Unimplemented for other reductions."""
    d, (_, places, _), reduction = given_of(given), node.inputs, node.get("reduction")
    read = w("Gather", d, places, axis=0)
    if reduction == "add":
        return d, None, read
    if reduction != "none":
        raise w.asked.refused(f"reduction {reduction!r} has none, 'none' and 'add' have one")
    (rows, size), count = w.shape(d), w.shape(places)[0]
    zeros, number = w.expanded(w.constant(np.zeros((1, 1))), count, size), w.constant(np.arange(count)[:, None])
    (bare,) = w.own("ScatterRows", d, places, zeros, reduction="none")
    (last,) = w.own("ScatterRows", w.constant(np.zeros((rows, 1))), places, number, reduction="none")
    stays = w("Equal", w("Gather", last, places, axis=0), number)
    return bare, None, w.where(w.expanded(stays, count, size), read, 0.0)


RULES: dict[str, Rule] = {
    "Gather": gather, "GatherElements": gather_elements, "TopK": topk, "Compress": compress,
    f"{OWN}.ScatterRows": scatter_rows,
}  # fmt: skip
