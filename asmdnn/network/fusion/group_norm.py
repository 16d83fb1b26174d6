"""Group normalisation written with instance normalisation becomes one operator, in the format that is there.

    (n, c, ...) to (n, g, -1), each of the g normalised and scaled, back to (n, c, ...)

is group normalisation of g groups whose channels have their group's scale and shift; exporters write it so before
operator set 21.  The same sums, so the same bits but for the order in which formats store elements.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.static import StaticGraph, needed

PER_CHANNEL_OPSET = 21  # since when scale and shift have a value a channel


def grouped_norms(graph: StaticGraph) -> StaticGraph:
    """The graph with GroupNormalization in the place of such three."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    values, nodes = dict(graph.values), list[Node]()
    for node in graph.nodes:
        middle = middle_of(graph, node, makers)
        nodes.append(node if middle is None else group_norm(values, node, middle, makers[middle.inputs[0]].inputs[0]))
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)


def middle_of(graph: StaticGraph, last: Node, makers: Mapping[str, Node]) -> Node | None:
    """The instance normalisation between a Reshape and one that undoes it."""
    middle = makers.get(last.inputs[0]) if last.op == "Reshape" else None
    first = makers.get(middle.inputs[0]) if middle is not None and middle.op == "InstanceNormalization" else None
    if middle is None or first is None or first.op != "Reshape":
        return None
    dims, split = graph.shape(first.inputs[0]), graph.shape(first.outputs[0])
    is_back = graph.shape(last.outputs[0]) == dims and len(dims) > 2 and len(split) > 2 and split[0] == dims[0]
    return middle if is_back and not dims[1] % split[1] and all(map(graph.is_constant, middle.inputs[1:])) else None


def group_norm(values: dict[str, Value], last: Node, middle: Node, x: str) -> Node:
    """With the scale and shift of its group for every channel."""
    channels, names = values[x].shape[1], list[str]()
    for name in middle.inputs[1:]:
        array = np.asarray(values[name].data)
        wide = np.repeat(array, channels // array.size)
        names.append(f"{name} of channels of {last.outputs[0]}")
        values[names[-1]] = Value(wide.shape, wide.dtype, wide)
    attributes = {"num_groups": values[middle.inputs[0]].shape[1], "epsilon": middle.get("epsilon", 1e-5)}
    return Node(
        "GroupNormalization",
        (x, *names),
        last.outputs,
        attributes=attributes,
        name=middle.name,
        domain="",
        opset=PER_CHANNEL_OPSET,
    )
