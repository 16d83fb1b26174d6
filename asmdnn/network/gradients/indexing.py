"""Rules of look-ups: rows of a table get the sums of what was read from them."""

from math import prod

import numpy as np

from asmdnn.network.gradients.activations import given_of
from asmdnn.network.gradients.table import Gradients, Rule
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node


def gather(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of a table's rows: a product of rows that have a single one, in which the order of sums is fixed."""
    d, (table, indices) = given_of(given), node.inputs
    dims = w.shape(table)
    if node.get("axis", 0) not in (0, -len(dims)):
        return None, None
    count = prod(w.shape(indices))
    where = w.expanded(w.reshaped(w.number(indices), 1, count), dims[0], count)
    below = w.where(w("Less", where, w.constant(0.0)), w.add(where, float(dims[0])), where)
    number = w.constant(np.arange(dims[0]).reshape(-1, 1))
    ones = w.where(w("Equal", below, w.expanded(number, dims[0], count)), w.constant(np.ones((dims[0], count))), 0.0)
    rows = w.reshaped(d, count, prod(dims[1:]))
    return w.reshaped(w("MatMul", ones, rows), *dims), None


RULES: dict[str, Rule] = {"Gather": gather}
