"""Functions that files write with several operators become the one that has a kernel.

gelu(x) = x / 2 (1 + erf(x / sqrt 2)), or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): whatever sums and products
of x, constants and one Erf or Tanh compute it is found by its values.  The expression is evaluated at some points in
f64, and is gelu if it agrees to 1e-6 everywhere, which leaves room for constants that were rounded to f32.  The
kernels of gelu are exact to some units in the last place in both tails, where 1 + erf and 1 + tanh cancel.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.static import StaticGraph, needed

POINTS = np.linspace(-6, 6, 49)
TOLERANCE = 1e-6
DEEPEST = 10  # operators between x and the result
BEHIND_BELL = 4  # operators between Erf or Tanh and the result
BEFORE_BELL = 5  # operators between x and the operand of Erf or Tanh
ARITHMETIC = ("Add", "Mul", "Div", "Sub", "Pow")


def recognised(graph: StaticGraph) -> StaticGraph:
    """The graph with gelu as single nodes."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    nodes = list[Node]()
    for node in graph.nodes:
        if (gelu := gelu_node(graph, node, makers)) is not None:
            node = gelu
        nodes.append(node)
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), graph.values)


def gelu_node(graph: StaticGraph, node: Node, makers: Mapping[str, Node]) -> Node | None:
    """Gelu of x if a product is that, in the form that its Erf or Tanh says."""
    bell = bell_before(node, makers, BEHIND_BELL) if node.op == "Mul" else None
    if bell is None:
        return None
    attributes = {} if bell.op == "Erf" else {"approximate": "tanh"}
    for x in names_before(bell, makers, BEFORE_BELL):
        if graph.shape(x) == graph.shape(node.outputs[0]) and graph.values[x].dtype == np.float32:
            gelu = Node("Gelu", (x,), node.outputs, attributes=attributes, name=node.name, domain="", opset=node.opset)
            wanted = evaluated(gelu, POINTS)
            found = at_points(graph, node.outputs[0], x, makers, DEEPEST)
            if found is not None and found.shape == wanted.shape and np.abs(found - wanted).max() < TOLERANCE:
                return gelu
    return None


def bell_before(node: Node, makers: Mapping[str, Node], steps: int) -> Node | None:
    """The nearest Erf or Tanh from which sums and products lead to a node."""
    before = [makers[name] for name in node.inputs if name in makers]
    bell = next((one for one in before if one.op in ("Erf", "Tanh")), None)
    if bell is not None or steps == 1:
        return bell
    deeper = (bell_before(one, makers, steps - 1) for one in before if one.op in ARITHMETIC)
    return next((found for found in deeper if found is not None), None)


def names_before(node: Node, makers: Mapping[str, Node], steps: int) -> dict[str, None]:
    """Values from which arithmetic leads to a node, the nearest first."""
    names = dict[str, None]()
    layer = [node]
    for _ in range(steps):
        inputs = [name for one in layer for name in one.inputs if name not in names]
        names |= dict.fromkeys(inputs)
        layer = [makers[name] for name in inputs if name in makers and makers[name].op in ARITHMETIC]
    return names


def evaluated(node: Node, *inputs: Array) -> Array:
    """What an operator computes in f64."""
    return results_of(node, inputs)[0]


def at_points(graph: StaticGraph, name: str, x: str, makers: Mapping[str, Node], depth: int) -> Array | None:
    """A value as a function of x at the points; None if it depends on more than x and single numbers."""
    if name == x:
        return POINTS
    data = graph.values[name].data
    if data is not None:
        return data.reshape(()).astype(np.float64) if data.size == 1 else None
    node = makers.get(name)
    if node is None or depth == 0 or node.op not in (*ARITHMETIC, "Erf", "Tanh"):
        return None
    inputs = [array for one in node.inputs if (array := at_points(graph, one, x, makers, depth - 1)) is not None]
    return evaluated(node, *inputs) if len(inputs) == len(node.inputs) else None
