"""The first places of a count, or as many of what is not counted: slices from the start, and the best ones."""

from collections.abc import Mapping
from math import inf, nan

import numpy as np

from asmdnn.network.counted.choosing import Chooser, CountedChoice
from asmdnn.network.counted.dims import CountedDims
from asmdnn.network.counted.moving import FAR
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import ints, normal
from asmdnn.records import replace


def sliced(w: Chooser, node: Node, axis: int, choice: CountedChoice) -> CountedChoice | None:
    """What a Slice along the counted axis alone leaves, from the start to an end that is known; None for others."""
    if "starts" in node.attributes:
        starts, ends, axes, steps = (node.get(name) for name in ("starts", "ends", "axes", "steps"))
    else:
        known = [w.data(name) for name in node.inputs[1:]]
        if any(data is None and name for data, name in zip(known, node.inputs[1:], strict=True)):
            return None
        starts, ends, axes, steps = (None if data is None else ints(data) for data in (*known, None, None)[:4])
    if starts is None or ends is None or len(starts) != 1 or starts[0] != 0 or not 0 < ends[0] < FAR:
        return None
    own = normal(0 if axes is None else axes[0], len(w.shape(node.inputs[0])))
    return w.first_of(choice, ends[0]) if own == axis and (steps is None or steps[0] == 1) else None


def sliced_to_count(w: Chooser, node: Node, ends: CountedDims) -> tuple[Node, int, CountedChoice] | None:
    """A Slice from the start to the count, as of a mask, with its axis and what counts there; None for others."""
    dims, (starts, axes, steps) = w.shape(node.inputs[0]), [
        w.data(node.inputs[i]) if i < len(node.inputs) else None for i in (1, 3, 4)
    ]  # fmt: skip
    if any(name and w.data(name) is None for i, name in enumerate(node.inputs) if i not in (0, 2)):
        return None
    i, count = ends.place, ends.data.size
    if starts is None or i is None or ints(starts)[i] != 0 or (steps is not None and ints(steps)[i] != 1):
        return None
    axis = normal((range(count) if axes is None else ints(axes))[i], len(dims))
    if dims[axis] < 1:
        return None
    known = replace(node, inputs=(*node.inputs[:2], w.integers(ends.data), *node.inputs[3:]))
    return known, axis, w.first_of(ends.choice, dims[axis])


def smallest(w: Chooser, node: Node, dims: Mapping[int, CountedDims]) -> CountedDims | None:
    """A count or a known number, whichever is less: Min, or ReduceMin of both; None for others."""
    known = [w.data(name) for i, name in enumerate(node.inputs) if i not in dims]
    if len(dims) != 1 or any(data is None for data in known):
        return None
    ((i, given),) = dims.items()
    if node.op == "ReduceMin":
        if i != 0 or given.place is None or given.data.size < 2 or node.get("keepdims", 1) not in (0, 1):
            return None
        numbers = np.delete(given.data, given.place)
        shape = (1,) if node.get("keepdims", 1) else ()
    elif given.data.size == 1 and known and all(data is not None and data.size == 1 for data in known):
        numbers = np.array([data.reshape(()) for data in known if data is not None])
        shape = np.broadcast_shapes(given.data.shape, *(data.shape for data in known if data is not None))
    else:
        return None
    if numbers.min() < 1:
        return None
    choice = w.first_of(given.choice, int(numbers.min()))
    return CountedDims(np.full(shape, choice.most, np.int64), np.ones(shape, bool), choice)


def best(w: Chooser, node: Node, axis: int, choice: CountedChoice, k: CountedDims) -> Node | None:
    """A TopK along the counted axis, of at most as many places as count; the others come last among equals, as their
    places are higher; None for one along another axis, or of integers."""
    (x, _), largest = node.inputs, node.get("largest", 1)
    own = normal(node.get("axis", -1), len(w.shape(x)))
    if own != axis or k.data.size != 1 or w.first_of(choice, k.choice.most) != k.choice:
        return None
    if w.value(x).dtype.kind != "f":
        return None
    filled = w.filled(x, axis, choice, -inf if largest else nan)
    return replace(node, inputs=(filled, w.ints(k.choice.most)))
