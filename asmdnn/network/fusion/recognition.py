"""Functions that files spell with several operators become the one that has a kernel.

gelu(x) = x / 2 (1 + erf(x / sqrt 2)): whatever products of x, constants and an Erf compute it is found by its values.
The expression is evaluated at some points in f64, and is gelu if it agrees to 1e-6 everywhere, which leaves
room for constants that were rounded to f32.  The kernel of gelu is exact to some units in the last place in both tails,
where 1 + erf cancels.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Operator, listed
from asmdnn.network.operators.table import operator_of
from asmdnn.network.static import StaticGraph, needed

POINTS = np.linspace(-6, 6, 49)
TOLERANCE = 1e-6
DEEPEST = 8  # operators between x and the result


def recognised(graph: StaticGraph) -> StaticGraph:
    """The graph with gelu as single nodes."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    nodes = list[Node]()
    bells = {x for node in graph.nodes if node.op == "Erf" and (x := scaled_operand(node, makers))}
    for node in graph.nodes:
        x = gelu_operand(graph, node, makers, bells)
        if x:
            node = Node("Gelu", (x,), node.outputs, {}, node.name, "", node.opset)
        nodes.append(node)
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), graph.values)


def scaled_operand(node: Node, makers: Mapping[str, Node]) -> str:
    """What an operand is a multiple of."""
    maker = makers.get(node.inputs[0])
    return maker.inputs[0] if maker is not None and maker.op in ("Div", "Mul") else ""


def gelu_operand(graph: StaticGraph, node: Node, makers: Mapping[str, Node], bells: set[str]) -> str:
    """x if a product is gelu of it, else nothing."""
    if node.op != "Mul" or not bells:
        return ""
    wanted = 0.5 * POINTS * (1 + listed(operator("Erf").evaluate(node, POINTS / np.sqrt(2)))[0])
    for x in bells:
        if graph.shape(x) == graph.shape(node.outputs[0]) and graph.values[x].dtype == np.float32:
            found = at_points(graph, node.outputs[0], x, makers, DEEPEST)
            if found is not None and found.shape == wanted.shape and np.abs(found - wanted).max() < TOLERANCE:
                return x
    return ""


def operator(name: str) -> Operator:
    """A definition by name."""
    found = operator_of(Node(name, (), (), {}))
    assert found is not None
    return found


def at_points(graph: StaticGraph, name: str, x: str, makers: Mapping[str, Node], depth: int) -> Array | None:
    """A value as a function of x at the points; None if it depends on more than x and single numbers."""
    if name == x:
        return POINTS
    data = graph.values[name].data
    if data is not None:
        return data.reshape(()).astype(np.float64) if data.size == 1 else None
    node = makers.get(name)
    if node is None or depth == 0 or node.op not in ("Add", "Mul", "Div", "Sub", "Erf"):
        return None
    inputs = [at_points(graph, one, x, makers, depth - 1) for one in node.inputs]
    if any(array is None for array in inputs):
        return None
    with np.errstate(all="ignore"):
        return listed(operator(node.op).evaluate(node, *inputs))[0]
