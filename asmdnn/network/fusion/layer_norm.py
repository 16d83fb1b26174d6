"""Layer normalisation that files write with means becomes the operator that has a kernel.

    (x - mean x) / sqrt(variance + epsilon)   as a quotient, or as a product with the reciprocal of the root

with variance = mean (x - mean x)^2, or mean x^2 - (mean x)^2, kept from falling below 0 or not, over the
last axes.  Scale and shift stay the product and the sum after it.  The kernel sums the squares of differences: within
some roundings of the first form, and more accurate than the second one, which loses as many digits as mean^2 is
larger than the variance.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.reductions import axes_to_reduce
from asmdnn.network.static import StaticGraph, needed

LAYER_NORM_OPSET = 17
Makers = Mapping[str, Node]


def layers_normalized(graph: StaticGraph) -> StaticGraph:
    """The graph with layer normalisations as single nodes."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    values, nodes = dict(graph.values), list[Node]()
    for node in graph.nodes:
        found = normalized(graph, node, makers)
        nodes.append(node if found is None else layer_norm(values, node, *found))
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)


def normalized(graph: StaticGraph, node: Node, makers: Makers) -> tuple[str, int, float] | None:
    """(x, the first of its axes, epsilon) if a node is a layer normalisation."""
    for one, other in factors(graph, node, makers):
        difference, root = makers.get(one), makers.get(other)
        if difference is None or root is None or difference.op != "Sub" or root.op != "Sqrt":
            continue
        x, mean, total = difference.inputs[0], makers.get(difference.inputs[1]), makers.get(root.inputs[0])
        axis = mean_axes(graph, mean)
        if axis is None or mean is None or mean.inputs[0] != x or total is None or total.op != "Add":
            continue
        for name, number in (total.inputs, total.inputs[::-1]):
            epsilon = graph.values[number].data
            if epsilon is None or epsilon.size != 1:
                continue
            if variance_axes(graph, name, x, one, difference.inputs[1], makers) == axis:
                return x, axis, float(epsilon.ravel()[0])
    return None


def factors(graph: StaticGraph, node: Node, makers: Makers) -> list[tuple[str, str]]:
    """(dividend, divisor) of a quotient, also of a product with a reciprocal."""
    if node.op == "Div":
        return [(node.inputs[0], node.inputs[1])]
    found = []
    for one, other in (node.inputs, node.inputs[::-1]) if node.op == "Mul" else ():
        maker = makers.get(other)
        if maker is not None and maker.op == "Reciprocal":
            found.append((one, maker.inputs[0]))
        elif maker is not None and maker.op == "Div" and number_of(graph, maker.inputs[0]) == 1:
            found.append((one, maker.inputs[1]))
    return found


def variance_axes(graph: StaticGraph, name: str, x: str, difference: str, mean: str, makers: Makers) -> int | None:
    """The first axis of the variance of x that a value is, in either form."""
    node = makers.get(name)
    if node is not None and (node.op == "Relu" or (node.op == "Max" and number_of(graph, node.inputs[-1]) == 0)):
        node = makers.get(node.inputs[0])
    if node is None:
        return None
    if node.op != "Sub":
        squares = makers.get(node.inputs[0])
        return mean_axes(graph, node) if is_square(graph, squares, difference) else None
    of_squares = makers.get(node.inputs[0])
    axis = mean_axes(graph, of_squares)
    if axis is None or of_squares is None or not is_square(graph, makers.get(of_squares.inputs[0]), x):
        return None
    return axis if is_square(graph, makers.get(node.inputs[1]), mean) else None


def mean_axes(graph: StaticGraph, node: Node | None) -> int | None:
    """The first axis of a mean over all axes from one on, which keeps them."""
    if node is None or node.op != "ReduceMean" or not node.get("keepdims", 1):
        return None
    ndim = len(graph.shape(node.inputs[0]))
    given = graph.values[node.inputs[1]].data if len(node.inputs) > 1 and node.inputs[1] != NOTHING else None
    axes = axes_to_reduce(node, ndim, given)
    first = min(axes, default=ndim)
    return first if sorted(axes) == list(range(first, ndim)) and axes else None


def is_square(graph: StaticGraph, node: Node | None, x: str) -> bool:
    """Whether a node is the square of x."""
    if node is None or node.op not in ("Mul", "Pow"):
        return False
    return node.inputs == (x, x) if node.op == "Mul" else node.inputs[0] == x and number_of(graph, node.inputs[1]) == 2


def number_of(graph: StaticGraph, name: str) -> float | None:
    """The value of a constant that is one number."""
    data = graph.values[name].data if name != NOTHING else None
    return float(data.ravel()[0]) if data is not None and data.size == 1 else None


def layer_norm(values: dict[str, Value], node: Node, x: str, axis: int, epsilon: float) -> Node:
    """Without scale and shift: the scale is 1."""
    name, shape = f"ones of {node.outputs[0]}", values[x].shape[axis:]
    ones = np.ones(shape, np.float32)
    values[name] = Value(shape, ones.dtype, ones)
    attributes = {"axis": axis, "epsilon": epsilon}
    return Node(
        "LayerNormalization",
        (x, name),
        node.outputs,
        attributes=attributes,
        name=node.name,
        domain="",
        opset=LAYER_NORM_OPSET,
    )
