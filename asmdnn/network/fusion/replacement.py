"""Several nodes in the place of one, whose result keeps its name."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from asmdnn.network.arrays import Array
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Shape, Value
from asmdnn.network.static import StaticGraph

OPSET = 13


class Replacement:
    """The nodes that replace `node`, in order; values: of the graph, to which theirs are added."""

    def __init__(self, values: dict[str, Value], node: Node) -> None:
        self.values, self.node, self.nodes = values, node, list[Node]()

    def dims(self, name: str) -> Shape:
        return self.values[name].shape

    def constant(self, array: Array) -> str:
        name = f"{self.node.outputs[0]}, constant {len(self.nodes)}"
        self.values[name] = Value(array.shape, array.dtype, array)
        return name

    def then(self, op: str, inputs: Sequence[str], dims: Shape, is_last: bool = False, **attributes: Any) -> str:
        """The result of a further node; that of the last one is the node's own."""
        result = self.node.outputs[0]
        if not is_last:
            name = f"{result}, part {len(self.nodes)}"
            self.values[name] = Value(dims, self.values[result].dtype)
            result = name
        self.nodes.append(
            Node(
                op,
                tuple(inputs),
                (result,),
                attributes=attributes,
                name=self.node.name * is_last,
                domain="",
                opset=OPSET,
            )
        )
        return result

    def shaped(self, op: str, x: str, dims: Shape, is_last: bool = False) -> str:
        """A Reshape or an Expand."""
        return self.then(op, (x, self.constant(np.array(dims, np.int64))), dims, is_last)


def with_replaced_nodes(
    graph: StaticGraph, ops: Collection[str], replace_node: Callable[[Replacement], None]
) -> StaticGraph:
    """The graph with the nodes that `replace_node` gives for each of these operators, the node itself where it gives
    none."""
    if not any(node.op in ops for node in graph.nodes):
        return graph
    values, nodes = dict(graph.values), list[Node]()
    for node in graph.nodes:
        new = Replacement(values, node)
        if node.op in ops and not node.domain:
            replace_node(new)
        nodes += new.nodes or [node]
    return StaticGraph(graph.inputs, graph.outputs, tuple(nodes), values)
