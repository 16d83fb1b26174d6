"""Scales and zero points that are data, or several: what no kernel reads beside integers is arithmetic of f32.

    dequantize(x) = (dequantize(x, 1, 0) - zero) scale,    quantize(x) = quantize(round(x / scale) + zero, 1, 0)

where scales and zero points lie along an axis, or by blocks of one.  The same roundings as the definitions have.
"""

from math import prod

import numpy as np

from asmdnn.network.fusion.narrow import WORDS, range_of
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value, normal
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.quantization import spread
from asmdnn.network.quantized.numbers import BYTES
from asmdnn.network.quantized.weights import DEQUANTIZE, QUANTIZE
from asmdnn.network.static import StaticGraph, needed

OPSET, FLOAT = 22, 1
F32 = np.dtype(np.float32)


def scales_apart(graph: StaticGraph) -> StaticGraph:
    """The graph with such nodes decomposed."""
    found = [node for node in graph.nodes if is_apart(graph, node)]
    return Apart(graph, {id(node) for node in found}).graph() if found else graph


def is_apart(graph: StaticGraph, node: Node) -> bool:
    """Whether a node of bytes, words or sums has several scales for data, or makes floats by data or below 0."""
    if node.op not in (QUANTIZE, DEQUANTIZE) or node.domain or graph.is_constant(node.inputs[0]):
        return False
    floats, integers = (node.inputs[0], node.outputs[0])[:: 1 if node.op == QUANTIZE else -1]
    parameters = [name for name in node.inputs[1:] if name != NOTHING]
    are_known = all(map(graph.is_constant, parameters))
    types = (*BYTES, *WORDS, np.int32) if node.op == DEQUANTIZE else (*BYTES, *WORDS)
    if graph.values[integers].dtype not in types or graph.values[floats].dtype != F32:
        return False
    if node.get("block_size", 0) and not are_known:
        return False
    is_several = any(prod(graph.shape(name)) != 1 for name in parameters)
    scale = graph.values[node.inputs[1]].data
    if node.op == DEQUANTIZE and scale is not None and (scale < 0).any():
        return True  # kernels of integers know scales above 0
    return is_several or graph.values[integers].dtype not in BYTES or (node.op == DEQUANTIZE and not are_known)


class Apart:
    """One pass; wanted: ids of nodes."""

    def __init__(self, graph: StaticGraph, wanted: set[int]) -> None:
        self.source, self.wanted = graph, wanted
        self.values, self.nodes = dict(graph.values), list[Node]()

    def graph(self) -> StaticGraph:
        for node in self.source.nodes:
            if id(node) not in self.wanted:
                self.nodes.append(node)
            elif node.op == DEQUANTIZE:
                self.dequantize(node)
            else:
                self.quantize(node)
        outputs = self.source.outputs
        return StaticGraph(self.source.inputs, outputs, needed(self.nodes, outputs.values()), self.values)

    def dequantize(self, node: Node) -> None:
        (x, scale, *zeros), (result,) = node.inputs, node.outputs
        floats = self.floats(node, x, f"{result}, unscaled")
        for zero in zeros:
            if zero != NOTHING:
                floats = self.made(node, "Sub", (floats, self.numbers(node, zero, "zero")), f"{result}, around 0")
        self.add(node, "Mul", (floats, self.numbers(node, scale, "scale")), result)

    def quantize(self, node: Node) -> None:
        (x, scale, *zeros), (result,) = node.inputs, node.outputs
        quotient = self.made(node, "Div", (x, self.numbers(node, scale, "scale")), f"{result}, quotient")
        steps = self.made(node, "Round", (quotient,), f"{result}, steps")
        for zero in zeros:
            if zero != NOTHING:
                steps = self.made(node, "Add", (steps, self.numbers(node, zero, "zero")), f"{result}, shifted")
        dtype = self.values[result].dtype
        if dtype in BYTES:
            self.add(node, QUANTIZE, (steps, *self.units(result, dtype)), result)
            return
        bounds = range_of(dtype)
        ends = tuple(self.constant(f"{result}, {number:g}", np.array(number, F32)) for number in bounds)
        held = self.made(node, "Clip", (steps, *ends), f"{result}, held")
        truth = f"{result}, no number"
        self.values[truth] = Value(self.source.shape(result), np.dtype(np.bool_))
        self.add(node, "IsNaN", (steps,), truth)
        held = self.made(node, "Where", (truth, ends[0], held), f"{result}, a number")
        self.nodes.append(Node("Integers", (held,), (result,), {"bounds": tuple(bounds)}, node.name, domain=OWN))

    def constant(self, name: str, data: Array) -> str:
        self.values[name] = Value(data.shape, data.dtype, data)
        return name

    def units(self, result: str, dtype: np.dtype[np.generic]) -> tuple[str, str]:
        """A scale of 1, and a zero point of 0."""
        one, none = np.ones((), F32), np.zeros((), dtype)
        return self.constant(f"{result}, scale of 1", one), self.constant(f"{result}, zero of 0", none)

    def numbers(self, node: Node, name: str, what: str) -> str:
        """Scales or zero points as f32 that broadcast to the tensor."""
        known, shape, made = self.values[name], self.source.shape(node.inputs[0]), f"{node.outputs[0]}, {what}"
        if known.data is not None:
            data = spread(node, known.data.astype(np.float32), shape)
            return self.constant(made, data)
        size = prod(known.shape)
        axis = normal(node.get("axis", 1), len(shape)) if size > 1 else 0
        dims = tuple(size if i == axis else 1 for i in range(len(shape))) if size > 1 else ()
        if known.dtype != F32:
            name = self.floats(node, name, f"{made} as f32")
        if dims == known.shape:
            return name
        places = self.constant(f"{made}, dims", np.array(dims, np.int64))
        return self.made(node, "Reshape", (name, places), made, dims)

    def floats(self, node: Node, name: str, made: str) -> str:
        """Integers as f32."""
        known = self.values[name]
        if known.dtype in BYTES:
            inputs = (name, *self.units(made, known.dtype))
            return self.made(node, DEQUANTIZE, inputs, made, known.shape)
        self.add(node, "Cast", (name,), made, {"to": FLOAT})
        self.values[made] = Value(known.shape, F32)
        return made

    def made(self, node: Node, op: str, inputs: tuple[str, ...], name: str, dims: tuple[int, ...] | None = None) -> str:
        self.values[name] = Value(self.source.shape(node.outputs[0]) if dims is None else dims, F32)
        self.add(node, op, inputs, name)
        return name

    def add(self, node: Node, op: str, inputs: tuple[str, ...], result: str, attributes: object = None) -> None:
        found = dict(attributes) if isinstance(attributes, dict) else {}
        self.nodes.append(Node(op, inputs, (result,), found, name=node.name, domain="", opset=OPSET))
