"""Views between a kernel and the maps after it change places with the maps, which the kernel then computes.

    f(view(x), constants)  =  view(f(x, constants'))

for views that drop or add dims of 1 or transpose, constants' being the constants seen through the view: a convolution
of two dims, Squeeze, bias and activation is how files write one of a single dim.  The same bits.
"""

import numpy as np

from asmdnn.network.fusion.maps import FUSED_INTO, is_map
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Shape, Value
from asmdnn.network.operators.moves import permutation
from asmdnn.network.static import StaticGraph, needed

RESHAPES = ("Squeeze", "Unsqueeze", "Reshape")
OPSET = 13


def sunk(graph: StaticGraph) -> StaticGraph:
    """The graph with views after such maps."""
    return Sinking(graph).graph()


class Sinking:
    """inside: for a value after a view, the value in front of it, and the view."""

    def __init__(self, graph: StaticGraph) -> None:
        self.source, self.values = graph, dict(graph.values)
        self.makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
        self.readers = graph.readers()
        self.inside: dict[str, tuple[str, Node]] = {}

    def graph(self) -> StaticGraph:
        nodes = list[Node]()
        for node in self.source.nodes:
            if self.is_view(node):
                self.inside[node.outputs[0]] = (node.inputs[0], node)
            nodes += self.exchanged(node) or [node]
        kept = needed(nodes, self.source.outputs.values())
        return StaticGraph(self.source.inputs, self.source.outputs, kept, self.values)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def is_view(self, node: Node) -> bool:
        """Whether a node shows what a kernel with post-ops makes for it alone."""
        maker = self.makers.get(node.inputs[0]) if node.inputs and not node.domain else None
        if maker is None or maker.key not in FUSED_INTO or self.readers[node.inputs[0]] != 1:
            return False
        if node.op not in RESHAPES:
            return node.op == "Transpose"
        dims, shown = changed(self.shape(node.inputs[0]), self.shape(node.outputs[0]))
        return [n for n in dims if n != 1] == [n for n in shown if n != 1]

    def exchanged(self, node: Node) -> list[Node]:
        """The map in front of the view of its operands, and the view; nothing if it is none."""
        found = {name: self.inside[name] for name in node.inputs if name in self.inside}
        views = {view.outputs[0]: view for _, view in found.values()}
        if len(views) != 1 or not is_map(self.source, node) or self.source.is_constant(node.outputs[0]):
            return []
        (view,), (result,) = views.values(), node.outputs
        if self.shape(result) != self.shape(view.outputs[0]):
            return []
        inputs = [found[name][0] if name in found else self.seen(name, view) for name in node.inputs]
        if any(name is None for name in inputs):
            return []
        made = f"{result} in front of {view.outputs[0]}"
        self.values[made] = Value(self.shape(view.inputs[0]), self.values[result].dtype)
        self.inside[result] = (made, view)
        names = tuple(name for name in inputs if name is not None)
        return [
            Node(node.op, names, (made,), attributes=node.attributes, name=node.name, domain="", opset=node.opset),
            self.view_of(made, result, view),
        ]

    def view_of(self, x: str, result: str, view: Node) -> Node:
        """The same view of another value."""
        if view.op == "Transpose":
            return Node("Transpose", (x,), (result,), attributes=view.attributes, name="", domain="", opset=view.opset)
        dims, name = np.array(self.shape(result), np.int64), f"dims of {result}"
        self.values[name] = Value(dims.shape, dims.dtype, dims)
        return Node("Reshape", (x, name), (result,), attributes={}, name="", domain="", opset=OPSET)

    def seen(self, name: str, view: Node) -> str | None:
        """A constant as it is in front of the view; None if it is no constant."""
        if name == NOTHING:
            return name
        data = self.values[name].data
        if data is None:
            return None
        if data.size == 1:
            return name
        array = self.through(np.asarray(data), view)
        made = f"{name} in front of {view.outputs[0]}"
        self.values[made] = Value(array.shape, array.dtype, array)
        return made

    def through(self, data: Array, view: Node) -> Array:
        before, after = self.shape(view.inputs[0]), self.shape(view.outputs[0])
        data = data.reshape((1,) * (len(after) - data.ndim) + data.shape)
        if view.op == "Transpose":
            return data.transpose(np.argsort(permutation(view, len(after))))
        sizes = iter(n for n, whole in zip(data.shape, after, strict=True) if whole != 1)
        return data.reshape([next(sizes) if whole != 1 else 1 for whole in before])


def changed(one: Shape, two: Shape) -> tuple[Shape, Shape]:
    """Both without the dims in which they begin and end alike: whether such a one is 1, which is a decision where it
    stands for several, does not matter."""
    most = min(len(one), len(two))
    begin = next((i for i in range(most) if one[i] is not two[i]), most)
    end = next((i for i in range(most - begin) if one[-1 - i] is not two[-1 - i]), most - begin)
    return one[begin : len(one) - end], two[begin : len(two) - end]
