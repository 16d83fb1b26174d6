"""Look-ups along an axis: views where indices rise by equal steps, else a primitive."""

import numpy as np

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array
from asmdnn.network.lowering.indices import gather_rows, indices_of
from asmdnn.network.lowering.views import alias, cut
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.spans import AxisSpan, whole
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.gather.description import Gather


def lower_gather(steps: Steps, group: Group) -> None:
    """Of constant indices at equal distances a sub-memory, else a primitive."""
    node = group.node
    x, name = node.inputs
    indices, dims = steps.value(name).data, steps.shape(x)
    axis = normal(node.get("axis", 0), len(dims))
    taken = spaced(indices, dims[axis]) if indices is not None else None
    if taken is None:
        gather(steps, group, axis)
        return
    parts = [taken if i == axis else whole(n) for i, n in enumerate(dims)]
    alias(steps, x, group.result, lambda desc: cut(desc, parts).reshape(steps.shape(group.result) or (1,)))


def spaced(indices: Array, limit: int) -> AxisSpan | None:
    """The elements that indices choose, if these rise by equal steps."""
    wide = indices.astype(np.int64)
    found = np.where(wide < 0, wide + limit, wide).ravel()
    if not len(found) or not 0 <= found.min() <= found.max() < limit:
        return None
    step = int(found[1] - found[0]) if len(found) > 1 else 1
    if step < 1 or (np.diff(found) != step).any():
        return None
    return AxisSpan(int(found[0]), len(found), step)


def gather(steps: Steps, group: Group, axis: int) -> None:
    """By indices at any distances, or that are known when the network runs."""
    node = group.node
    x, name = node.inputs
    dims = steps.shape(x)
    if 0 in steps.shape(group.result):
        raise Refused("its result has no elements")
    gather_rows(steps, group, steps.plain(x, steps.kept(x).desc.dtype), indices_of(steps, name, dims[axis], axis), axis)


def lower_one_hot(steps: Steps, group: Group) -> None:
    """A table with its last row so often that indices up to twice too large, and as negative ones, choose it."""
    node = group.node
    name, table = node.inputs
    rows = np.asarray(steps.value(table).data)
    count, size = len(rows) - 1, rows.shape[1]
    numbers = indices_of(steps, name, 2 * count, 0)
    wide = np.concatenate((rows, np.repeat(rows[-1:], 2 * count - 1, 0)))
    source = steps.memory.add_weight(f"{table}, wide", wide, row_major(wide.shape))
    desc = Gather(source.desc, numbers.desc, row_major((*numbers.desc.dims, size)), 0)
    steps.add(group.nodes, group.label, desc, {"src": source, "indices": numbers}, {"dst": group.result})


LOWERINGS = {"Gather": lower_gather, f"{OWN}.OneHotRows": lower_one_hot}
