"""Attention as the primitive, which reads heads wherever they are."""

from typing import Any

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.operators.moves import permutation
from asmdnn.network.operators.own import OWN
from asmdnn.network.place import Place
from asmdnn.network.steps import Steps
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.types import DataType, PropKind, f32

ROWS_FIRST = (0, 2, 1, 3)  # (n, heads, rows, d) as (n, rows, heads, d), and back


def lower_attention(steps: Steps, group: Group) -> None:
    """The result is written as its reader turns it."""
    node = group.node
    dtype = steps.factor_type(group.result)
    types = (dtype, dtype, dtype, f32)
    found = (unblocked(steps, x, dtype) for x, dtype in zip(node.inputs, types, strict=False))
    places = dict(zip(("query", "key", "value", "mask"), found, strict=False))
    n, heads, rows, size = steps.shape(group.result)
    dst = row_major((n, heads, rows, size), dtype)
    if is_turned(steps, group.result):
        dst = row_major((n, rows, heads, size), dtype).permute_axes(ROWS_FIRST)
    descs: dict[str, Any] = {name: place.desc for name, place in places.items()}
    desc = AttentionForward(PropKind.forward_inference, dst=dst, scale=node.get("scale"), **descs)
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result})


def unblocked(steps: Steps, name: str, dtype: DataType) -> Place:
    """A value of a type as it lies, if it lies in no blocks."""
    place = steps.as_type(name, dtype)
    return steps.plain(name, dtype) if place.desc.inner_blocks else place


def is_turned(steps: Steps, name: str) -> bool:
    """Whether all that read a value are transposes that put rows in front of heads."""
    readers = [node for node in steps.graph.nodes if name in node.inputs]
    return bool(readers) and all(x.op == "Transpose" and permutation(x, len(ROWS_FIRST)) == ROWS_FIRST for x in readers)


def lower_attention_gradient(steps: Steps, group: Group) -> None:
    """Of values as they lie where that is in no blocks."""
    node = group.node
    names = ("query", "key", "value", "diff_dst", "mask")
    places = {name: unblocked(steps, x, f32) for name, x in zip(names, node.inputs, strict=False)}
    descs: dict[str, Any] = {name: place.desc for name, place in places.items()}
    results = [f"diff_{name}" for name in names[:3]]
    descs |= {name: row_major(steps.shape(x)) for name, x in zip(results, node.inputs, strict=False)}
    desc = AttentionBackward(**descs, scale=node.get("scale"), causal=bool(node.get("causal")))
    steps.add(group.nodes, group.label, desc, places, dict(zip(results, node.outputs, strict=True)))


LOWERINGS = {f"{OWN}.Attention": lower_attention, f"{OWN}.AttentionGradient": lower_attention_gradient}
