"""ArgMax, ArgMin, TopK, and boxes that others leave out: positions are counted as s32 and delivered as f32, which is
exact up to 2^24."""

from typing import Literal

import numpy as np

from asmdnn.definitions.rounding import MOST_EXACT
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING
from asmdnn.network.joining.place import Place
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.own import OWN
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.suppression.description import NonMaxSuppression
from asmdnn.primitives.topk.description import TopKForward
from asmdnn.types import s32


def lower_position(steps: Steps, group: Group) -> None:
    """Of the best one; its values are nobody's."""
    node = group.node
    best: Literal["max", "min"] = "max" if node.op == "ArgMax" else "min"
    source, axis = steps.place(node.inputs[0]), normal(node.get("axis", 0), len(steps.shape(node.inputs[0])))
    dims = with_k(source.desc.dims, axis, 1)
    last = bool(node.get("select_last_index", 0))
    desc = TopKForward(best, source.desc, MemoryDesc(dims, s32, "any"), axis, select_last=last)
    counted = f"positions of {group.label}"
    steps.add(group.nodes, group.label, desc, {"src": source}, {"dst": counted})
    deliver_positions(steps, counted, node.outputs[0], dims)


def lower_top(steps: Steps, group: Group) -> None:
    """Values, and their positions if somebody reads them; NaN is larger than every number, as in onnxruntime."""
    node = group.node
    x, *count = node.inputs
    known = steps.value(count[0]).data if count else np.array(node.get("k"))
    if known is None:
        raise Refused(f"its k {count[0]} is no constant")
    source, axis = steps.place(x), normal(node.get("axis", -1), len(steps.shape(x)))
    best: Literal["max", "min"] = "max" if node.get("largest", 1) else "min"
    dims = with_k(source.desc.dims, axis, int(np.ravel(known)[0]))
    values, positions = (*node.outputs, NOTHING)[:2]
    last = best == "min"
    desc = TopKForward(best, source.desc, MemoryDesc(dims, s32, "any"), axis, values=any_format(dims), nan_last=last)
    counted = f"positions of {group.label}"
    steps.add(group.nodes, group.label, desc, {"src": source}, {"values": values, "dst": counted})
    if positions != NOTHING and positions in steps.graph.values:
        deliver_positions(steps, counted, positions, dims)


def lower_suppressed(steps: Steps, group: Group) -> None:
    """Numbers of boxes."""
    node = group.node
    corners, scores = (steps.place(name) for name in node.inputs)
    dims = (*scores.desc.dims[:2], node.get("most"))
    if scores.desc.dims[2] > MOST_EXACT:
        raise Refused(f"{scores.desc.dims[2]} boxes, which are counted up to {MOST_EXACT}")
    numbers = {"overlap": node.get("overlap"), "least": node.get("least")}
    desc = NonMaxSuppression(corners.desc, scores.desc, MemoryDesc(dims, s32, "any"), **numbers)
    counted = f"boxes of {group.label}"
    steps.add(group.nodes, group.label, desc, {"corners": corners, "scores": scores}, {"dst": counted})
    deliver_positions(steps, counted, node.outputs[0], dims)


def with_k(dims: tuple[int, ...], axis: int, k: int) -> tuple[int, ...]:
    """Raises Refused for an axis whose positions f32 cannot count."""
    if dims[axis] > MOST_EXACT:
        raise Refused(f"axis {axis} has {dims[axis]} elements, positions are counted up to {MOST_EXACT}")
    return (*dims[:axis], k, *dims[axis + 1 :])


def deliver_positions(steps: Steps, counted: str, name: str, dims: tuple[int, ...]) -> None:
    """The s32 results of the last step as the value `name`, which is f32."""
    source = Place(counted, steps.steps[-1].pd.plan.tensors["dst"])
    made = Place(steps.memory.add(f"{name} as f32", row_major(dims)), row_major(dims))
    steps.reorder(source, made, name)
    steps.define(name, made)


LOWERINGS = {
    "ArgMax": lower_position, "ArgMin": lower_position, "TopK": lower_top, f"{OWN}.Suppressed": lower_suppressed,
}  # fmt: skip
