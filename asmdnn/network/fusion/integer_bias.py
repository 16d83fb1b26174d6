"""A bias of integers after MatMulInteger or ConvInteger changes places with the Cast after it.

    float(sums + int(floor(bias / scale)))  =  float(sums) + floor(bias / scale)

onnxruntime's first quantiser writes biases so.  Equal where both are below 2^24, else but for the rounding of a sum.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.fusion.exact import EXACT
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.static import StaticGraph, needed

PRODUCTS = {"MatMulInteger", "ConvInteger"}
WHOLE = {"Floor", "Ceil", "Round"}  # what makes whole numbers of floats
VIEWS = {"Reshape", "Unsqueeze", "Squeeze"}
INTEGER, FLOAT = np.dtype(np.int32), np.dtype(np.float32)


def biases_as_floats(graph: StaticGraph) -> StaticGraph:
    """The graph with such biases after the Cast."""
    if not any(node.op in PRODUCTS and not node.domain for node in graph.nodes):
        return graph
    return Biases(graph).graph()


class Biases:
    """makers: the node that makes each value; casts: of sums with a bias, the node that makes floats of them."""

    def __init__(self, graph: StaticGraph) -> None:
        self.source, self.values, self.nodes = graph, dict(graph.values), list[Node]()
        self.makers: Mapping[str, Node] = {name: node for node in graph.nodes for name in node.outputs}
        self.readers = graph.readers()

    def graph(self) -> StaticGraph:
        for node in self.source.nodes:
            add = self.makers.get(node.inputs[0]) if self.is_cast(node) else None
            if add is None or add.op != "Add" or add.domain or not self.exchange(node, add):
                self.nodes.append(node)
        outputs = self.source.outputs
        return StaticGraph(self.source.inputs, outputs, needed(self.nodes, outputs.values()), self.values)

    def is_cast(self, node: Node) -> bool:
        """Whether it makes floats of integers that nobody else reads."""
        if node.op != "Cast" or node.domain or self.readers[node.inputs[0]] != 1:
            return False
        return self.values[node.inputs[0]].dtype == INTEGER and self.values[node.outputs[0]].dtype == FLOAT

    def exchange(self, cast: Node, add: Node) -> bool:
        """Write the Cast of the product, and a sum of floats; whether that can be."""
        for sums, bias in (add.inputs, add.inputs[::-1]):
            maker = self.makers.get(sums)
            is_product = maker is not None and maker.op in PRODUCTS and not maker.domain and self.readers[sums] == 1
            whole = self.values[sums].shape == self.values[cast.outputs[0]].shape
            number = self.floats(bias) if is_product and whole else NOTHING
            if number:
                made = self.value(f"{sums} as floats, without a bias", self.values[sums].shape)
                self.nodes.append(Node("Cast", (sums,), (made,), cast.attributes, cast.name, opset=cast.opset))
                self.nodes.append(Node("Add", (made, number), cast.outputs, {}, add.name, opset=add.opset))
                return True
        return False

    def floats(self, name: str) -> str:
        """Integers as the floats that they were made of, or as constants; NOTHING where they are neither."""
        made, node, data = f"{name} as floats", self.makers.get(name), self.values[name].data
        if data is not None:
            wide = np.abs(data.astype(np.int64)).max(initial=0)
            self.values[made] = Value(data.shape, FLOAT, data.astype(np.float32))
            return made if wide <= EXACT else NOTHING
        if node is None or node.domain or node.op not in (*VIEWS, "Cast"):
            return NOTHING
        x, *others = node.inputs
        if node.op == "Cast":
            before = self.makers.get(x)
            return x if before is not None and before.op in WHOLE and self.values[x].dtype == FLOAT else NOTHING
        inner = self.floats(x)
        if not inner:
            return NOTHING
        self.value(made, self.values[name].shape)
        self.nodes.append(Node(node.op, (inner, *others), (made,), node.attributes, node.name, opset=node.opset))
        return made

    def value(self, name: str, dims: tuple[int, ...]) -> str:
        self.values[name] = Value(dims, FLOAT)
        return name
