"""Rules of look-ups: rows of a table get the sums of what was read from them."""

from math import prod

import numpy as np

from asmdnn.network.gradients.activations import given_of
from asmdnn.network.gradients.table import Gradients, Rule
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import normal


def gather(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of a table's rows: a product of rows that have a single one, in which the order of sums is fixed.  Along another
    axis, of the table with that axis first."""
    d, (table, indices) = given_of(given), node.inputs
    dims = w.shape(table)
    axis, places = normal(node.get("axis", 0), len(dims)), len(w.shape(indices))
    if axis:
        d = w.turned(d, *range(axis, axis + places), *range(axis), *range(axis + places, len(w.shape(d))))
        dims = (dims[axis], *dims[:axis], *dims[axis + 1 :])
    count = prod(w.shape(indices))
    where = w.expanded(w.reshaped(w.number(indices), 1, count), dims[0], count)
    below = w.where(w("Less", where, w.constant(0.0)), w.add(where, float(dims[0])), where)
    number = w.constant(np.arange(dims[0]).reshape(-1, 1))
    ones = w.where(w("Equal", below, w.expanded(number, dims[0], count)), w.constant(np.ones((dims[0], count))), 0.0)
    rows = w.reshaped(d, count, prod(dims[1:]))
    found = w.reshaped(w("MatMul", ones, rows), *dims)
    return w.turned(found, *range(1, axis + 1), 0, *range(axis + 1, len(dims))) if axis else found, None


RULES: dict[str, Rule] = {"Gather": gather}
