"""Reshape, Transpose, Reshape that shuffle channels become one operator, which works in the format that is there.

    (n, c, ...) to (n, g, c/g, ...), axes 1 and 2 swapped, back to (n, c, ...)

moves elements along the channels alone, as ShuffleNet's shuffle does; formats whose blocks are of channels have no view
of five dims, so that apart from each other the three would cost two passes.  Moves only: the same bits.
"""

from collections.abc import Mapping

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.moves import permutation
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph, needed


def shuffled(graph: StaticGraph) -> StaticGraph:
    """The graph with ChannelShuffle in the place of such three."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    nodes = []
    for node in graph.nodes:
        found = shuffle_of(graph, node, makers)
        if found is not None:
            x, groups = found
            node = Node("ChannelShuffle", (x,), node.outputs, {"groups": groups}, node.name, OWN)
        nodes.append(node)
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), graph.values)


def shuffle_of(graph: StaticGraph, last: Node, makers: Mapping[str, Node]) -> tuple[str, int] | None:
    """(x, groups) if a Reshape ends a shuffle of x."""
    middle = makers.get(last.inputs[0]) if last.op == "Reshape" else None
    first = makers.get(middle.inputs[0]) if middle is not None and middle.op == "Transpose" else None
    if middle is None or first is None or first.op != "Reshape":
        return None
    x = first.inputs[0]
    dims, split = graph.shape(x), graph.shape(first.outputs[0])
    if graph.shape(last.outputs[0]) != dims or len(dims) < 3 or (split[0], *split[3:]) != (dims[0], *dims[2:]):
        return None
    swapped = (0, 2, 1, *range(3, len(split)))
    return (x, split[1]) if permutation(middle, len(split)) == swapped else None
