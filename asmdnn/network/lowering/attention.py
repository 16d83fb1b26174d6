"""Attention as the primitive, which reads heads wherever they are."""

from collections.abc import Iterator
from math import isclose
from typing import Any

import numpy as np

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Node
from asmdnn.network.joining.place import Place
from asmdnn.network.operators.moves import permutation
from asmdnn.network.operators.own import OWN
from asmdnn.network.steps import Steps
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attention.tensors import MOST_SUM
from asmdnn.records import replace
from asmdnn.types import DataType, PropKind, f32

SUMS, ATTENTION, GRADIENT = "logsumexp", f"{OWN}.Attention", f"{OWN}.AttentionGradient"
SAME_SCALE = 2.0**-22  # of scales, some of which are products of two rounded roots
OPERANDS = ("query", "key", "value", "mask")
MATRIX = 2  # dims
OF_FUTURE = 3  # operands that remain where the mask is the future
ROWS_FIRST = (0, 2, 1, 3)  # (n, heads, rows, d) as (n, rows, heads, d), and back


def lower_attention(steps: Steps, group: Group) -> None:
    """The result is written as its reader turns it; a gradient finds the logsumexp of rows."""
    node = group.node
    dtype, stored = steps.factor_type(group.result), steps.type_of(group.result)
    gradient = next((x for x in gradients(steps) if forward_of(steps, x) == node), None)
    causal = gradient is not None and bool(gradient.get("causal"))
    names, types = OPERANDS[: OF_FUTURE if causal else None], (dtype, dtype, dtype, f32)
    places = {name: unblocked(steps, x, of) for name, x, of in zip(names, node.inputs, types, strict=False)}
    n, heads, rows, size = steps.shape(group.result)
    dst = row_major((n, heads, rows, size), stored)
    if is_turned(steps, group.result):
        dst = row_major((n, rows, heads, size), stored).permute_axes(ROWS_FIRST)
    descs: dict[str, Any] = {name: place.desc for name, place in places.items()}
    desc = AttentionForward(PropKind.forward_inference, dst=dst, scale=node.get("scale"), causal=causal, **descs)
    results = {"dst": group.result}
    if gradient is not None:
        desc, results[SUMS] = replace(desc, logsumexp=row_major((n, heads, rows, 1))), ""
    steps.add(group.nodes, group.label, desc, places, results)
    if desc.logsumexp is not None:
        steps.left[node.outputs[0]] = Place(steps.steps[-1].buffers[SUMS], desc.logsumexp)


def plain_attention(steps: Steps, node: Node, dtype: DataType) -> AttentionForward:
    """What multiplies a type, of tensors in row-major order."""
    shapes = [steps.shape(name) for name in node.inputs]
    types = (dtype, dtype, dtype, f32)
    descs: dict[str, Any] = {name: row_major(dims, of) for name, dims, of in zip(OPERANDS, shapes, types, strict=False)}
    rows = descs["query"].dims[:3]
    dst, sums = row_major((*rows, descs["value"].dims[3])), row_major((*rows, 1))
    return AttentionForward(PropKind.forward_inference, **descs, dst=dst, scale=node.get("scale"), logsumexp=sums)


def gradients(steps: Steps) -> Iterator[Node]:
    """The gradients of attention in a graph."""
    return (node for node in steps.graph.nodes if node.key == GRADIENT)


def forward_of(steps: Steps, gradient: Node) -> Node | None:
    """The node whose probabilities a gradient computes again from the logsumexp of rows.  Of causal ones the forward
    pass has the future as a mask."""
    query, key, value, _, *mask = gradient.inputs
    causal = bool(gradient.get("causal"))
    if not all(leaves_exact_sums(steps, name) for name in mask):
        return None

    def is_same(node: Node) -> bool:
        *operands, last = node.inputs
        found = operands if causal else node.inputs
        if [*found] != [query, key, value, *mask] or (causal and not is_future(steps, last)):
            return False
        return isclose(node.get("scale"), gradient.get("scale"), rel_tol=SAME_SCALE)

    return next((node for node in steps.graph.nodes if node.key == ATTENTION and is_same(node)), None)


def is_future(steps: Steps, mask: str) -> bool:
    """Whether it is constant, and hides from every row the keys after its own, and nothing else."""
    maker = next((node for node in steps.graph.nodes if mask in node.outputs), None)
    data = steps.value(maker.inputs[0] if maker is not None and maker.op == "Unsqueeze" else mask).data
    if data is None or data.ndim < MATRIX:
        return False
    rows, keys = data.shape[-MATRIX:]
    hidden = np.arange(keys) > np.arange(rows)[:, None] + keys - rows
    return rows <= keys and bool((data == np.where(hidden, -np.inf, 0.0)).all())


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
    """Of values as they lie where that is in no blocks; of what the forward pass has multiplied, in its type."""
    node = group.node
    names = ("query", "key", "value", "diff_dst", "mask")
    dtype = steps.factor_type(group.result)
    types = (dtype, dtype, dtype, f32, f32)
    places = {name: unblocked(steps, x, of) for name, x, of in zip(names, node.inputs, types, strict=False)}
    forward = forward_of(steps, node)
    if forward is not None and forward.outputs[0] in steps.left:
        places[SUMS] = steps.left[forward.outputs[0]]
    descs: dict[str, Any] = {name: place.desc for name, place in places.items()}
    results = [f"diff_{name}" for name in names[:3]]
    descs |= {name: row_major(steps.shape(x)) for name, x in zip(results, node.inputs, strict=False)}
    desc = AttentionBackward(**descs, scale=node.get("scale"), causal=bool(node.get("causal")))
    steps.add(group.nodes, group.label, desc, places, dict(zip(results, node.outputs, strict=True)))


LOWERINGS = {ATTENTION: lower_attention, GRADIENT: lower_attention_gradient}
