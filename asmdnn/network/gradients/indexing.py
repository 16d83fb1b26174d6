"""Rules of look-ups: rows of a table get the sums of what was read from them."""

from math import prod

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN


def gather(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of a table's rows: added up in the order of indices.  Along another axis, of the table with that axis first."""
    d, (table, indices) = given_of(given), node.inputs
    dims = w.shape(table)
    axis, places = normal(node.get("axis", 0), len(dims)), len(w.shape(indices))
    if axis:
        d = w.turned(d, *range(axis, axis + places), *range(axis), *range(axis + places, len(w.shape(d))))
        dims = (dims[axis], *dims[:axis], *dims[axis + 1 :])
    count, size = prod(w.shape(indices)), prod(dims[1:])
    zeros = w.expanded(w.constant(np.zeros((1, 1))), dims[0], size)
    rows = zeros, w.reshaped(indices, count), w.reshaped(d, count, size)
    found = w.reshaped(w("ScatterRows", *rows, domain=OWN, reduction="add"), *dims)
    return w.turned(found, *range(1, axis + 1), 0, *range(axis + 1, len(dims))) if axis else found, None


RULES: dict[str, Rule] = {"Gather": gather}
