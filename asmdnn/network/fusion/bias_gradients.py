"""Gradients of biases join those of weights, whose kernel sums the gradient that it multiplies.

    dw = ConvWeightsGradient(x, dy);  db = ReduceSum(dy), over all but channels

become one node with two results.  Large weights stay apart, as updates follow their gradients in their own kernel, and
so do groups, whose kernels have no such sums.
"""

from math import prod

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.reductions import axes_to_reduce
from asmdnn.network.static import StaticGraph

GRADIENT = f"{OWN}.ConvWeightsGradient"
MOST_BYTES = 512 << 10  # of weights


def biases_beside_weights(graph: StaticGraph) -> StaticGraph:
    """The graph with such nodes, where the sum comes after the gradient of weights, as rules write them."""
    gradients = dict[str, Node]()  # by dy
    totals = dict[str, str]()  # the name of db, by that of dw
    for node in graph.nodes:
        if node.key == GRADIENT and len(node.outputs) == 1 and is_small(graph, node):
            gradients[node.inputs[1]] = node
        elif node.key == "ReduceSum" and node.inputs[0] in gradients and is_of_channels(graph, node):
            totals[gradients.pop(node.inputs[0]).outputs[0]] = node.outputs[0]
    if not totals:
        return graph
    left_out = {*totals.values()}
    nodes = tuple(
        with_total(node, totals[node.outputs[0]]) if node.outputs[0] in totals else node
        for node in graph.nodes
        if node.outputs[0] not in left_out
    )
    return StaticGraph(graph.inputs, graph.outputs, nodes, graph.values)


def with_total(node: Node, total: str) -> Node:
    return Node(
        node.op,
        node.inputs,
        (*node.outputs, total),
        attributes=node.attributes,
        name=node.name,
        domain=node.domain,
        opset=node.opset,
    )


def is_small(graph: StaticGraph, node: Node) -> bool:
    """Whether its weights are, and have no groups."""
    value = graph.values[node.outputs[0]]
    return prod(value.shape) * value.dtype.itemsize <= MOST_BYTES and node.get("group", 1) == 1


def is_of_channels(graph: StaticGraph, node: Node) -> bool:
    """Whether a sum is over all dims but channels, which it does not keep."""
    if node.get("keepdims", 1):
        return False
    rank = len(graph.shape(node.inputs[0]))
    given = graph.values[node.inputs[1]].data if len(node.inputs) > 1 and node.inputs[1] != NOTHING else None
    axes = axes_to_reduce(node, rank, given)
    return rank > 2 and sorted(axes) == [axis for axis in range(rank) if axis != 1]
