"""Depth to space and back, as a transpose of a view with six dims.

    (n, c, h, w) as six dims with the block's two, turned, as four dims

Apart they are Reshape, Transpose and Reshape, which cost at most one pass, and whose Transpose is a stride where the
reader takes any strides.  Moves only: the same bits.
"""

from asmdnn.network.fusion.replacement import Replacement, with_replaced_nodes
from asmdnn.network.graph import Node
from asmdnn.network.static import StaticGraph


def unfolded(graph: StaticGraph) -> StaticGraph:
    """The graph without DepthToSpace and SpaceToDepth."""
    return with_replaced_nodes(graph, ("DepthToSpace", "SpaceToDepth"), replace_node)


def replace_node(new: Replacement) -> None:
    node = new.node
    six, order = split_of(node, new.dims(node.inputs[0]))
    split = new.shaped("Reshape", node.inputs[0], six)
    turned = new.then("Transpose", (split,), tuple(six[axis] for axis in order), perm=order)
    new.shaped("Reshape", turned, new.dims(node.outputs[0]), is_last=True)


def split_of(node: Node, dims: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The six dims, and the order of them that makes the result."""
    b, (n, c, h, w), is_deep = node.get("blocksize"), dims, node.get("mode", "DCR") == "DCR"
    if node.op == "SpaceToDepth":
        return (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4) if is_deep else (0, 1, 3, 5, 2, 4)
    if is_deep:
        return (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2)
    return (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3)
