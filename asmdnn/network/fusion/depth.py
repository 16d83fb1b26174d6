"""Depth to space and back, as what they are: another view of six dims.

    (n, c, h, w) as six dims with the block's two, turned, as four dims

Apart they are Reshape, Transpose and Reshape, which cost at most one pass, and whose Transpose is a stride where the
reader takes any strides.  Moves only: the same bits.
"""

import numpy as np

from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.static import StaticGraph

OPSET = 13


def unfolded(graph: StaticGraph) -> StaticGraph:
    """The graph without DepthToSpace and SpaceToDepth."""
    values, nodes = dict(graph.values), list[Node]()
    for node in graph.nodes:
        nodes += spelt(values, node) if node.op in ("DepthToSpace", "SpaceToDepth") and not node.domain else [node]
    return StaticGraph(graph.inputs, graph.outputs, tuple(nodes), values)


def spelt(values: dict[str, Value], node: Node) -> list[Node]:
    x, result = node.inputs[0], node.outputs[0]
    six, order = split_of(node, values[x].shape)
    names, dims = [f"{result} of six dims", f"{result} turned"], (six, tuple(six[axis] for axis in order))
    for name, shape in zip(names, dims, strict=True):
        values[name] = Value(shape, values[x].dtype)
    for name, shape in ((f"dims of {names[0]}", six), (f"dims of {result}", values[result].shape)):
        array = np.array(shape, np.int64)
        values[name] = Value(array.shape, array.dtype, array)
    return [
        Node("Reshape", (x, f"dims of {names[0]}"), (names[0],), {}, "", "", OPSET),
        Node("Transpose", (names[0],), (names[1],), {"perm": order}, "", "", OPSET),
        Node("Reshape", (names[1], f"dims of {result}"), (result,), {}, node.name, "", OPSET),
    ]


def split_of(node: Node, dims: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The six dims, and the order of them that makes the result."""
    b, (n, c, h, w), is_deep = node.get("blocksize"), dims, node.get("mode", "DCR") == "DCR"
    if node.op == "SpaceToDepth":
        return (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4) if is_deep else (0, 1, 3, 5, 2, 4)
    if is_deep:
        return (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2)
    return (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3)
