"""Moves without an effect are left out: a slice of everything, a reshape to the same dims, padding by nothing, an
image that is resized to its own size.

Exporters write them where dims were open.  Whoever reads the result reads the operand; the same bits.
"""

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.moves import permutation, slices
from asmdnn.network.operators.resizing import CROP, coordinates_of, resize_inputs, resized
from asmdnn.network.static import StaticGraph, needed

SAME_IF_DIMS = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile"}
MOVES = {*SAME_IF_DIMS, "Slice", "Pad", "Resize", "Upsample", "Concat"}


def without_no_ops(graph: StaticGraph) -> StaticGraph:
    """The graph without such nodes."""
    known, nodes = dict[str, str](), list[Node]()
    for node in graph.nodes:
        if is_idle(graph, node):
            known[node.outputs[0]] = known.get(node.inputs[0], node.inputs[0])
            continue
        inputs = tuple(known.get(name, name) for name in node.inputs)
        nodes.append(
            Node(
                node.op,
                inputs,
                node.outputs,
                attributes=node.attributes,
                name=node.name,
                domain=node.domain,
                opset=node.opset,
            )
        )
    outputs = {name: known.get(value, value) for name, value in graph.outputs.items()}
    return StaticGraph(graph.inputs, outputs, needed(nodes, outputs.values()), graph.values)


def is_idle(graph: StaticGraph, node: Node) -> bool:
    """Whether a node's result is its first operand.

    Dims are compared only where it matters: to compare open ones is a decision, which other shapes have to share."""
    if node.domain or not node.inputs or len(node.outputs) != 1 or node.inputs[0] == NOTHING:
        return False
    shape = graph.shape(node.inputs[0])
    if node.op == "Transpose":
        return permutation(node, len(shape)) == tuple(range(len(shape)))
    if node.op not in MOVES or graph.shape(node.outputs[0]) != shape:
        return False
    data = [graph.values[name].data if name != NOTHING else None for name in node.inputs[1:]]
    if node.op == "Slice":
        return all(part.step in (None, 1) for part in slices(node, shape, *data))
    if node.op == "Pad":
        widths = node.get("pads", ()) if len(data) < 1 else data[0]
        return widths is not None and not np.any(widths)
    if node.op in ("Resize", "Upsample"):
        if any(one is None and name != NOTHING for name, one in zip(node.inputs[1:], data, strict=True)):
            return False
        outputs, factors = resized(node, shape, *resize_inputs(node, tuple(data)))
        return tuple(outputs) == shape and all(factor == 1.0 for factor in factors) and coordinates_of(node) != CROP
    return node.op in SAME_IF_DIMS or (node.op == "Concat" and len(node.inputs) == 1)
