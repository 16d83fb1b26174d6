"""Attention as the primitive, which reads heads wherever they are."""

from math import isclose
from typing import Any

import numpy as np

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Node
from asmdnn.network.operators.moves import permutation
from asmdnn.network.operators.own import OWN
from asmdnn.network.place import Place
from asmdnn.network.steps import Steps
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attention.tensors import MOST_SUM
from asmdnn.records import replace
from asmdnn.types import DataType, PropKind, f32

SUMS, ATTENTION, GRADIENT = "logsumexp", f"{OWN}.Attention", f"{OWN}.AttentionGradient"
SAME_SCALE = 2.0**-22  # of scales, some of which are products of two rounded roots
ROWS_FIRST = (0, 2, 1, 3)  # (n, heads, rows, d) as (n, rows, heads, d), and back


def lower_attention(steps: Steps, group: Group) -> None:
    """The result is written as its reader turns it; a gradient finds the logsumexp of rows."""
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
    results = {"dst": group.result}
    if dtype == f32 and any(forward_of(steps, x) == node for x in steps.graph.nodes if x.key == GRADIENT):
        desc, results[SUMS] = replace(desc, logsumexp=row_major((n, heads, rows, 1))), ""
    steps.add(group.nodes, group.label, desc, places, results)
    if desc.logsumexp is not None:
        steps.left[node.outputs[0]] = Place(steps.steps[-1].buffers[SUMS], desc.logsumexp)


def forward_of(steps: Steps, gradient: Node) -> Node | None:
    """The node whose probabilities a gradient computes again from the logsumexp of rows."""
    query, key, value, _, *mask = gradient.inputs
    if gradient.get("causal") or not all(leaves_exact_sums(steps, name) for name in mask):
        return None
    same = (
        node
        for node in steps.graph.nodes
        if node.key == ATTENTION
        and node.inputs == (query, key, value, *mask)
        and isclose(node.get("scale"), gradient.get("scale"), rel_tol=SAME_SCALE)
    )
    return next(same, None)


def leaves_exact_sums(steps: Steps, mask: str) -> bool:
    """Whether it is constant, and hides no row with large numbers, beside which the log of a sum is rounded away."""
    data = steps.value(mask).data
    return data is not None and bool((np.abs(data.max(-1)) <= MOST_SUM).all())


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
    forward = forward_of(steps, node)
    if forward is not None and forward.outputs[0] in steps.left:
        places[SUMS] = steps.left[forward.outputs[0]]
    descs: dict[str, Any] = {name: place.desc for name, place in places.items()}
    results = [f"diff_{name}" for name in names[:3]]
    descs |= {name: row_major(steps.shape(x)) for name, x in zip(results, node.inputs, strict=False)}
    desc = AttentionBackward(**descs, scale=node.get("scale"), causal=bool(node.get("causal")))
    steps.add(group.nodes, group.label, desc, places, dict(zip(results, node.outputs, strict=True)))


LOWERINGS = {ATTENTION: lower_attention, GRADIENT: lower_attention_gradient}
