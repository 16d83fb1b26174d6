"""A body in the making: nodes and constants with names that nothing else has."""

import numpy as np

from asmdnn.network.graph import Array, Body, Node, captured
from asmdnn.records import replace

Names = tuple[str, ...]


class BodyWriter:
    """The nodes and constants that a body becomes.  ready: what several nodes read, by what it is made of."""

    def __init__(self, body: Body, opset: int) -> None:
        self.given, self.opset = body, opset
        self.taken = {*body.inputs, *body.constants, *(name for node in body.nodes for name in node.outputs)}
        self.nodes = list[Node]()
        self.constants = dict(body.constants)
        self.ready: dict[Names, Names] = {}

    def node(self, op: str, inputs: Names, outputs: Names, name: str = "", **attributes: int) -> Node:
        return Node(op, inputs, outputs, attributes=attributes, name=name, opset=self.opset)

    def add(self, op: str, inputs: Names, results: Names, name: str = "", **attributes: int) -> Names:
        """A node with results of its own; their names."""
        outputs = tuple(self.fresh(result) for result in results)
        self.nodes.append(self.node(op, inputs, outputs, name, **attributes))
        return outputs

    def constant(self, name: str, array: Array) -> str:
        name = self.fresh(name)
        self.constants[name] = np.ascontiguousarray(array).reshape(array.shape)  # which makes vectors of scalars
        return name

    def fresh(self, name: str) -> str:
        """A name that no value has."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def body(self) -> Body:
        """Without constants that nobody reads any more."""
        read = {name for node in self.nodes for name in (*node.inputs, *captured(node))} | {*self.given.outputs}
        nodes = tuple(node for node in self.nodes if node.key != "Constant" or read & {*node.outputs})
        constants = {name: array for name, array in self.constants.items() if name in read}
        return replace(self.given, nodes=nodes, constants=constants)
