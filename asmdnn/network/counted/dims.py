"""Dims as data: integers of which some are a count, as Shape says them, and what goes by such dims.

Of a vector of dims those that do not depend on a count are known; what takes only these is planned as ever.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from asmdnn.network.counted.choosing import Chooser, CountedChoice
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Shape, Value
from asmdnn.network.operators.evaluation import results_of
from asmdnn.records import replace

MOVES_DIMS = {"Concat", "Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape"}


class CountedDims(NamedTuple):
    """data: i64, with the bound in the place of the count; is_total: where that is."""

    data: Array
    is_total: Array
    choice: CountedChoice

    @property
    def place(self) -> int | None:
        """Where the count is in a vector, if it is there once."""
        found = np.flatnonzero(self.is_total)
        return int(found[0]) if len(found) == 1 and self.data.ndim == 1 else None


def seen(node: Node, dims: Shape, axis: int, choice: CountedChoice) -> CountedDims:
    """What Shape says of a value that is counted along an axis."""
    part = slice(node.get("start", 0), node.get("end", len(dims)))
    return CountedDims(np.array(dims, np.int64)[part], (np.arange(len(dims)) == axis)[part], choice)


def moved(node: Node, values: Sequence[Value | None], dims: Mapping[int, CountedDims]) -> CountedDims | None:
    """Such dims where a node puts them; None for others that data decide."""
    if node.op != "Concat" and dims.keys() != {0}:
        return None
    if any(value is not None and value.data is None and i not in dims for i, value in enumerate(values)):
        return None
    data = [dims[i].data if i in dims else value and value.data for i, value in enumerate(values)]
    places = [dims[i].is_total if i in dims else array for i, array in enumerate(data)]
    if node.op == "Concat":
        places = [x if i in dims else np.zeros_like(x, bool) for i, x in enumerate(places)]
    (found,), (is_total,) = results_of(node, data), results_of(node, places)
    return CountedDims(found, is_total, next(iter(dims.values())).choice)


def written(w: Chooser, dims: CountedDims) -> str:
    """The integers, as they are in a call."""
    if not dims.is_total.any():
        return w.integers(dims.data)
    total = dims.choice.total if dims.data.ndim else w.reshaped(dims.choice.total)
    return w("Where", w.constant(dims.is_total, np.bool_), total, w.integers(dims.data))


def reshaping(w: Chooser, node: Node, dims: CountedDims) -> Node | None:
    """A Reshape whose counted dim is the one that is left open."""
    x, i, copies = w.shape(node.inputs[0]), dims.place, not node.get("allowzero", 0)
    if i is None or 0 in x:
        return None
    sizes = [x[j] if n == 0 and copies and j < len(x) else n for j, n in enumerate(dims.data.tolist())]
    if 0 in sizes:
        return None
    sizes = [prod(x) // -prod(sizes) if n == -1 else n for n in sizes]
    sizes[i] = -1
    return replace(node, inputs=(node.inputs[0], w.ints(*sizes)))


def expanding(w: Chooser, node: Node, dims: CountedDims, own: int | None) -> tuple[Node, int] | None:
    """An Expand along a counted dim, and the axis.  own: the axis of what is expanded that is of this count."""
    x, i = w.shape(node.inputs[0]), dims.place
    if i is None:
        return None
    axis = i - len(dims.data)
    if own is not None and own - len(x) != axis:
        return None
    if own is None and len(x) >= -axis and x[axis] != 1:
        return None
    known = replace(node, inputs=(node.inputs[0], w.integers(dims.data)))
    return known, axis + max(len(x), len(dims.data))


def filling(w: Chooser, node: Node, dims: CountedDims) -> tuple[Node, int] | None:
    """A ConstantOfShape, and the axis that is counted."""
    if dims.place is None:
        return None
    return replace(node, inputs=(w.integers(dims.data),)), dims.place


def ranging(w: Chooser, node: Node, dims: Mapping[int, CountedDims]) -> tuple[Node, int] | None:
    """A Range from 0 to the count."""
    start, step = (w.data(node.inputs[i]) for i in (0, 2))
    if dims.keys() != {1} or start is None or step is None or start.ravel()[0] != 0 or step.ravel()[0] != 1:
        return None
    return replace(node, inputs=(node.inputs[0], w.integers(dims[1].data), node.inputs[2])), 0
