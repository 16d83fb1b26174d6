"""Products of floats of integers whose weights have zero points: sums of integers, and their scales after them.

    conv(dequantize(x), dequantize(w)) = float(ConvInteger(x, w)) (scale of x) (scales of w)

where w less its zero points is no signed byte.  integer_products.py writes what the zero points add as a product of
one column.  Depthwise convolutions stay as they are: they sum few products, which f32 has exactly, and would sum them
twice.
"""

import numpy as np

from asmdnn.network.fusion.integer_products import summed_as_floats
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.quantised.numbers import Integers, around_zero, quantization_of
from asmdnn.network.quantised.weights import DEQUANTIZE
from asmdnn.network.static import StaticGraph, needed
from asmdnn.planning.refusal import Refused

INTEGERS = {"Conv": "ConvInteger", "MatMul": "MatMulInteger", "Gemm": "MatMulInteger"}
OPSET, FLOAT = 13, 1
F32 = np.dtype(np.float32)


def zero_points_apart(graph: StaticGraph) -> StaticGraph:
    """The graph with such products as sums of integers."""
    if not any(node.op == DEQUANTIZE for node in graph.nodes):
        return graph
    writer = Writer(graph)
    found = writer.graph()
    return summed_as_floats(found) if writer.has_written else graph


class Writer:
    """floats: the node that makes floats of integers, by its result."""

    def __init__(self, graph: StaticGraph) -> None:
        self.source, self.values, self.nodes = graph, dict(graph.values), list[Node]()
        self.floats = {node.outputs[0]: node for node in graph.nodes if node.op == DEQUANTIZE and not node.domain}
        self.has_written = False

    def graph(self) -> StaticGraph:
        for node in self.source.nodes:
            if (
                node.op in INTEGERS
                and not node.domain
                and {*node.inputs[:2]} <= self.floats.keys()
                and self.write(node)
            ):
                self.has_written = True
            else:
                self.nodes.append(node)
        outputs = self.source.outputs
        return StaticGraph(self.source.inputs, outputs, needed(self.nodes, outputs.values()), self.values)

    def write(self, node: Node) -> bool:
        """Whether there is something to write."""
        x, w = (self.floats[name] for name in node.inputs[:2])
        try:
            source, weights = (quantization_of(self.source.values, one) for one in (x, w))
        except Refused:
            return False
        data, bias = self.values[w.inputs[0]].data, self.constant_of((*node.inputs, NOTHING)[2])
        if data is None or bias is None or not source.is_common or not self.has_axes(node, data, weights):
            return False
        if node.get("transB", 0):
            data, axis = data.T, 1
        else:
            axis = 0 if node.op == "Conv" else 1
        if is_signed(data, weights, axis) or not np.isfinite(factor_of(node, source, weights).astype(F32)).all():
            return False
        self.sums(node, (x.inputs[0], data), (source, weights), bias)
        return True

    def has_axes(self, node: Node, data: Array, weights: Integers) -> bool:
        """Whether it is a product that ONNX has of integers, with scales and zero points by what results have."""
        axis = 0 if node.op == "Conv" or node.get("transB", 0) else data.ndim - 1
        if max(weights.scale.size, weights.zero.size) > 1 and weights.axis != axis:
            return False
        if node.op == "Conv":
            return data.ndim > 2 and (data.shape[1] > 1 or node.get("group", 1) == 1)
        return data.ndim == 2 and len(self.values[node.inputs[0]].shape) >= 2 and not node.get("transA", 0)

    def constant_of(self, name: str) -> Array | None:
        """A bias; zero for none, None for data."""
        if name == NOTHING:
            return np.zeros((), F32)
        node = self.floats.get(name)
        if node is None:
            return self.values[name].data
        found = [self.values[x].data if x != NOTHING else None for x in node.inputs]
        is_known = all(self.source.is_constant(x) for x in node.inputs if x != NOTHING)
        return results_of(node, found)[0] if is_known else None

    def sums(self, node: Node, operands: tuple[str, Array], numbers: tuple[Integers, Integers], bias: Array) -> None:
        (x, data), (source, weights), own = operands, numbers, node.outputs[0]
        is_conv, shape = node.op == "Conv", self.values[own].shape
        by_result = (-1, *[1] * (len(shape) - 2)) if is_conv else (-1,)
        factor = factor_of(node, source, weights)
        zeros = self.constant(f"{own}, zero of src", source.zero.astype(source.dtype).reshape(()))
        points = self.constant(f"{own}, zeros of weights", weights.zero.astype(weights.dtype))
        read = (x, self.constant(f"{own}, weights", data), zeros, points)
        kept = node.attributes if is_conv else {}
        sums = self.made(INTEGERS[node.op], read, f"{own}, integers", Value(shape, np.dtype(np.int32)), kept, node.name)
        floats = self.made("Cast", (sums,), f"{own}, sums", Value(shape, F32), {"to": FLOAT})
        scales = self.constant(f"{own}, scales", factor.reshape(by_result if factor.size > 1 else ()).astype(F32))
        if not bias.any():
            self.nodes.append(Node("Mul", (floats, scales), node.outputs, {}, node.name, opset=OPSET))
            return
        scaled = self.made("Mul", (floats, scales), f"{own}, scaled", Value(shape, F32))
        known = bias.reshape(by_result) if is_conv else bias * np.float32(node.get("beta", 1.0))
        addend = self.constant(f"{own}, bias", known.astype(F32))
        self.nodes.append(Node("Add", (scaled, addend), node.outputs, {}, node.name, opset=OPSET))

    def made(
        self, op: str, inputs: tuple[str, ...], name: str, value: Value, attributes: object = None, label: str = ""
    ) -> str:
        self.values[name] = value
        given = dict(attributes) if attributes else {}  # type: ignore[call-overload]
        self.nodes.append(Node(op, inputs, (name,), given, label, opset=OPSET))
        return name

    def constant(self, name: str, data: Array) -> str:
        self.values[name] = Value(data.shape, data.dtype, data)
        return name


def factor_of(node: Node, source: Integers, weights: Integers) -> Array:
    """What sums are multiplied by, f64."""
    return source.scale.reshape(()) * weights.scale * (node.get("alpha", 1.0) if node.op == "Gemm" else 1.0)


def is_signed(data: Array, numbers: Integers, axis: int) -> bool:
    """Whether weights less their zero points are s8."""
    centred, held = around_zero(data, numbers, axis), np.iinfo(np.int8)
    return bool(centred.min(initial=0) >= held.min and centred.max(initial=0) <= held.max)
