"""Integers stay integers: what only moves elements, or chooses the largest, does so before they become floats.

    move(dequantize(x)) = dequantize(move(x)),    quantize(concat(dequantize(a), ...)) = concat(requantize(a), ...)

and what becomes floats and the same integers again is left out.  Every reader of floats gets a node of its own that
makes them, so that it can read the integers instead.  The same bits.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.quantized.numbers import common_numbers, quantization_of
from asmdnn.network.quantized.weights import DEQUANTIZE, QUANTIZE, is_move
from asmdnn.network.static import StaticGraph, needed


def integers_kept(graph: StaticGraph) -> StaticGraph:
    """The graph with such nodes on integers."""
    if not any(node.op == DEQUANTIZE for node in graph.nodes):
        return graph
    for rewrite in (moved, without_pairs, one_each):
        graph = rewrite(graph)
    return graph


def is_common(values: Mapping[str, Value], node: Node) -> bool:
    """Whether a node makes floats of bytes, or bytes of floats, with one scale above 0 for all."""
    return node.op in (QUANTIZE, DEQUANTIZE) and not node.domain and common_numbers(values, node) is not None


def key(values: Mapping[str, Value], node: Node) -> tuple[float, int, str]:
    """Scale, zero point and type of the integers."""
    return quantization_of(values, node).key


def moved(graph: StaticGraph) -> StaticGraph:
    """The graph with moves in front of what makes floats."""
    return Moving(graph).graph()


class Moving:
    """floats: the node that makes a value of integers, by the value."""

    def __init__(self, graph: StaticGraph) -> None:
        self.source, self.values, self.nodes = graph, dict(graph.values), list[Node]()
        self.readers, self.floats = graph.readers(), dict[str, Node]()
        self.users = {name: node for node in graph.nodes for name in node.inputs}
        self.delivered = {*graph.outputs.values()}

    def graph(self) -> StaticGraph:
        for node in self.source.nodes:
            if is_move(node) and node.inputs[0] in self.floats and len(node.outputs) >= 1:
                self.move(node)
            elif node.op == "Concat" and not node.domain and self.floats.keys() >= {*node.inputs}:
                self.concat(node)
            else:
                self.add(node)
        kept = needed(self.nodes, self.source.outputs.values())
        return StaticGraph(self.source.inputs, self.source.outputs, kept, self.values)

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        if node.op == DEQUANTIZE and is_common(self.values, node):
            self.floats[node.outputs[0]] = node

    def made(self, name: str, like: str, dtype: np.dtype[np.generic]) -> str:
        """A value with the dims of another one."""
        self.values[name] = Value(self.values[like].shape, np.dtype(dtype))
        return name

    def move(self, node: Node) -> None:
        floats = self.floats[node.inputs[0]]
        if node.op == "MaxPool" and len(node.outputs) > 1:
            self.add(node)
            return
        dtype = self.values[floats.inputs[0]].dtype
        outputs = tuple(name and self.made(f"{name} as integers", name, dtype) for name in node.outputs)
        self.nodes.append(with_names(node, (floats.inputs[0], *node.inputs[1:]), outputs))
        for name, result in zip(outputs, node.outputs, strict=True):
            if name != NOTHING:
                self.add(with_names(floats, (name, *floats.inputs[1:]), (result,)))

    def concat(self, node: Node) -> None:
        """In the integers of all its parts, or of the only reader."""
        parts, (result,) = [self.floats[name] for name in node.inputs], node.outputs
        user = self.users.get(result)
        is_read_once = self.readers[result] == 1 and result not in self.delivered
        if len({key(self.values, part) for part in parts}) == 1:
            like = parts[0]
        elif user is not None and is_read_once and user.op == QUANTIZE and is_common(self.values, user):
            like = user
        else:
            self.add(node)
            return
        dtype = np.dtype(key(self.values, like)[2])
        inputs = [self.requantized(part, like, dtype) for part in parts]
        made = self.made(f"{result} as integers", result, dtype)
        self.nodes.append(with_names(node, inputs, (made,)))
        self.add(
            Node(
                DEQUANTIZE,
                (made, *like.inputs[1:]),
                (result,),
                attributes={},
                name=node.name,
                domain="",
                opset=like.opset,
            )
        )

    def requantized(self, part: Node, like: Node, dtype: np.dtype[np.generic]) -> str:
        """The part in other integers."""
        if key(self.values, part) == key(self.values, like):
            return part.inputs[0]
        made = self.made(f"{part.outputs[0]} in integers of {like.outputs[0]}", part.outputs[0], dtype)
        if all(made not in node.outputs for node in self.nodes):
            self.nodes.append(
                Node(
                    QUANTIZE,
                    (part.outputs[0], *like.inputs[1:]),
                    (made,),
                    attributes={},
                    name=part.name,
                    domain="",
                    opset=like.opset,
                )
            )
        return made


def with_names(node: Node, inputs: Sequence[str], outputs: Sequence[str]) -> Node:
    return Node(
        node.op,
        tuple(inputs),
        tuple(outputs),
        attributes=node.attributes,
        name=node.name,
        domain=node.domain,
        opset=node.opset,
    )


def without_pairs(graph: StaticGraph) -> StaticGraph:
    """The graph without floats that become what they were."""
    floats = {node.outputs[0]: node for node in graph.nodes if node.op == DEQUANTIZE and is_common(graph.values, node)}
    known, nodes = dict[str, str](), list[Node]()
    for node in graph.nodes:
        before = floats.get(node.inputs[0]) if node.op == QUANTIZE and is_common(graph.values, node) else None
        if before is not None and key(graph.values, before) == key(graph.values, node):
            known[node.outputs[0]] = known.get(before.inputs[0], before.inputs[0])
        else:
            nodes.append(with_names(node, [known.get(name, name) for name in node.inputs], node.outputs))
    outputs = {name: known.get(value, value) for name, value in graph.outputs.items()}
    return StaticGraph(graph.inputs, outputs, needed(nodes, outputs.values()), graph.values)


def floats_apart(graph: StaticGraph) -> StaticGraph:
    """As one_each, where other rewrites have given floats of integers further readers."""
    users: dict[str, set[int]] = {}
    for number, node in enumerate(graph.nodes):
        for name in node.inputs:
            users.setdefault(name, set()).add(number)
    made = [node.outputs[0] for node in graph.nodes if node.op == DEQUANTIZE and not node.domain]
    return one_each(graph) if any(len(users.get(name, ())) > 1 for name in made) else graph


def one_each(graph: StaticGraph) -> StaticGraph:
    """The graph with a node that makes floats for each of their readers."""
    makers = {node.outputs[0]: node for node in graph.nodes if node.op == DEQUANTIZE and not node.domain}
    values, nodes = dict(graph.values), list[Node]()
    for number, node in enumerate(graph.nodes):
        own = {name: f"{name} for reader {number}" for name in node.inputs if name in makers}
        for name, made in own.items():
            values[made] = values[name]
            nodes.append(with_names(makers[name], makers[name].inputs, (made,)))
        nodes.append(with_names(node, [own.get(name, name) for name in node.inputs], node.outputs))
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)
