"""Sums of integers become f32 in the kernel that makes them: MatMulInteger or ConvInteger, and the Cast after it.

    (a - za) (b - zb) = (a - za) (b - s) - (a - za) 1 (zb - s)

with constant weights b, and s the shift that makes them signed bytes.  Where b - zb are bytes themselves, as those of
symmetric weights, nothing is left of the second term; else it is a product of one column, read by a map.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from asmdnn.network.fusion.exact import EXACT
from asmdnn.network.fusion.integers import with_names
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.numbers import BYTES
from asmdnn.network.quantized.weights import DEQUANTIZE
from asmdnn.network.static import StaticGraph, needed

PRODUCTS = {"MatMulInteger": -1, "ConvInteger": 0}  # and the axis of weights that results have
FLOAT, MIDDLE = np.dtype(np.float32), 128
WIDEST = 255  # a byte less a zero point
OPSET = 13  # of the maps that are written


class ShiftedWeights(NamedTuple):
    """integers: s8; rest: what the weights' zero points are above the shift, f32 by index of the axis, or None."""

    integers: Array
    rest: Array | None


def largest_sums(found: ShiftedWeights, axis: int) -> float:
    """What sums of products with bytes less a zero point are at most, without their signs."""
    rest = 0 if found.rest is None else np.abs(found.rest).max()
    sizes = np.abs(found.integers.astype(np.float64))
    if axis == 0:
        sizes = sizes.reshape(len(sizes), -1).T
    return float(WIDEST * (sizes.sum(-2).max(initial=0) + rest * sizes.shape[-2]))


def summed_as_floats(graph: StaticGraph) -> StaticGraph:
    """The graph with such products as own operators."""
    if not any(node.op in PRODUCTS and not node.domain for node in graph.nodes):
        return graph
    return Products(graph).graph()


class Products:
    """floats: the sums that the results of such Casts are now."""

    def __init__(self, graph: StaticGraph) -> None:
        self.source, self.values, self.nodes = graph, dict(graph.values), list[Node]()
        self.readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)
        self.floats: dict[str, str] = {}

    def graph(self) -> StaticGraph:
        for node in self.source.nodes:
            if not (node.op in PRODUCTS and not node.domain and self.replace(node)):
                self.nodes.append(with_names(node, [self.floats.get(x, x) for x in node.inputs], node.outputs))
        outputs = {name: self.floats.get(value, value) for name, value in self.source.outputs.items()}
        return StaticGraph(self.source.inputs, outputs, needed(self.nodes, outputs.values()), self.values)

    def replace(self, node: Node) -> bool:
        """Whether all that read a product want floats, which own nodes make now."""
        a, b, za, zb = (*node.inputs, NOTHING, NOTHING)[:4]
        casts, found = self.readers.get(node.outputs[0], []), self.weights(node, b, zb)
        are_floats = all(one.op == "Cast" and self.values[one.outputs[0]].dtype == FLOAT for one in casts)
        is_inner = node.outputs[0] not in self.source.outputs.values()
        zero = za or self.constant(f"{node.outputs[0]}, zero point", np.zeros((), self.values[a].dtype))
        if self.values[a].dtype not in BYTES:
            return False
        if found is None:
            return self.of_data(node, zero)
        if self.values[zero].shape not in ((), (1,)):
            return False
        is_read_as_float = bool(casts) and are_floats and is_inner
        most = float(largest_sums(found, PRODUCTS[node.op]))
        if not is_read_as_float and most > EXACT:
            return False
        signed = self.constant(f"{b} of {node.outputs[0]}, signed", found.integers)
        sums = self.product(node, (a, signed, zero), f"{node.outputs[0]} as floats", self.values[node.outputs[0]].shape)
        if found.rest is not None:
            sums = self.corrected(node, sums, (a, zero), found)
        if is_read_as_float:
            self.floats.update({cast.outputs[0]: sums for cast in casts})
        else:
            self.integers(node, sums, most)
        return True

    def integers(self, node: Node, sums: str, most: float) -> None:
        """The way back from sums that f32 has exactly."""
        self.nodes.append(Node("Integers", (sums,), node.outputs, {"bounds": (-most, most)}, node.name, domain=OWN))

    def of_data(self, node: Node, za: str) -> bool:
        """Whether a product of two tensors of data is exact in f32, as which it is computed then."""
        a, b, *points = node.inputs
        zb, axis = points[1] if len(points) > 1 else NOTHING, PRODUCTS[node.op]
        terms = prod(self.values[b].shape[1:]) if axis == 0 else self.values[b].shape[-2:][0]
        most = float(terms) * WIDEST * WIDEST
        if most > EXACT or self.values[b].dtype not in BYTES or len(self.values[b].shape) < len("kn"):
            return False
        dims = self.values[b].shape
        if self.values[za].shape not in ((), (1,)) or (
            zb != NOTHING and self.values[zb].shape not in ((), (1,), dims[axis : axis + 1 or None])
        ):
            return False
        own = node.outputs[0]
        operands = [
            self.around_zero(x, zero, f"{own}, operand {i}", axis) for i, (x, zero) in enumerate(((a, za), (b, zb)))
        ]
        sums = self.made(f"{own} as floats", self.values[own].shape)
        op = "Conv" if axis == 0 else "MatMul"
        self.nodes.append(Node(op, tuple(operands), (sums,), node.attributes, node.name, opset=OPSET))
        self.integers(node, sums, most)
        return True

    def around_zero(self, x: str, zero: str, name: str, axis: int) -> str:
        """Bytes less their zero points, one or several along an axis, as floats."""
        scale = self.constant(f"{name}, scale", np.ones((), FLOAT))
        inputs = (x, scale) if zero == NOTHING else (x, scale, zero)
        self.nodes.append(
            Node(DEQUANTIZE, inputs, (self.made(name, self.values[x].shape),), {"axis": axis}, opset=OPSET)
        )
        return name

    def weights(self, node: Node, b: str, zb: str) -> ShiftedWeights | None:
        """None for what is computed, or has fewer axes than a matrix or a kernel."""
        data, zeros = (self.values[name].data if name != NOTHING else np.zeros(1, np.int64) for name in (b, zb))
        is_matrix = node.op != "MatMulInteger" or (data is not None and data.ndim >= len("kn"))
        if data is None or zeros is None or data.dtype not in BYTES or not is_matrix:
            return None
        axis, wide, point = PRODUCTS[node.op], data.astype(np.int64), zeros.astype(np.int64).ravel()
        spread = point if axis or point.size == 1 else point.reshape(-1, *[1] * (data.ndim - 1))
        centred = wide - spread
        if not centred.size or (centred.min() >= -MIDDLE and centred.max() < MIDDLE):
            return ShiftedWeights(centred.astype(np.int8), None)
        shift = MIDDLE if data.dtype == np.uint8 else 0
        return ShiftedWeights((wide - shift).astype(np.int8), (point - shift).astype(np.float32))

    def corrected(self, node: Node, sums: str, operands: tuple[str, str], found: ShiftedWeights) -> str:
        """Sums less those of src alone, each times what is left of a zero point."""
        assert found.rest is not None, "callers have looked"
        dims, (a, zero) = found.integers.shape, operands
        is_conv = node.op == "ConvInteger"
        group = node.get("group", 1)
        ones = np.ones((group, *dims[1:]) if is_conv else (dims[-2], 1), np.int8)
        own = f"{node.outputs[0]}, of src"
        whole = self.values[sums].shape
        narrow = (whole[0], group, *whole[2:]) if is_conv else (*self.values[a].shape[:-1], 1)
        alone = self.product(node, (a, self.constant(f"{own}, ones", ones), zero), own, narrow)
        if is_conv and group > 1:
            return self.by_channel(node, (sums, alone), found.rest)
        rest = found.rest.reshape(-1, *[1] * (len(whole) - 2)) if is_conv else found.rest
        return self.less(sums, alone, rest)

    def by_channel(self, node: Node, operands: tuple[str, str], rest: Array) -> str:
        """As above for groups: each has sums of its own, which its channels share."""
        (sums, alone), whole = operands, self.values[operands[0]].shape
        every = np.repeat(np.arange(node.get("group", 1)), whole[1] // node.get("group", 1))
        indices = self.constant(f"{alone}, channels", every)
        spread = self.made(f"{alone} by channel", whole)
        self.nodes.append(Node("Gather", (alone, indices), (spread,), {"axis": 1}, opset=node.opset))
        return self.less(sums, spread, rest.reshape(-1, *[1] * (len(whole) - 2)))

    def less(self, sums: str, alone: str, rest: Array) -> str:
        name = self.constant(f"{sums}, rest", rest)
        dims = np.broadcast_shapes(self.values[alone].shape, rest.shape)
        times = self.made(f"{sums}, times rest", dims)
        result = self.made(f"{sums}, corrected", self.values[sums].shape)
        self.nodes.append(Node("Mul", (alone, name), (times,), {}, opset=OPSET))
        self.nodes.append(Node("Sub", (sums, times), (result,), {}, opset=OPSET))
        return result

    def product(self, node: Node, inputs: tuple[str, ...], name: str, dims: tuple[int, ...]) -> str:
        made = self.made(name, dims)
        kept = {key: value for key, value in node.attributes.items() if key != "kernel_shape"}
        self.nodes.append(Node(node.op, inputs, (made,), kept, node.name, domain=OWN, opset=node.opset))
        return made

    def made(self, name: str, dims: tuple[int, ...]) -> str:
        self.values[name] = Value(dims, FLOAT)
        return name

    def constant(self, name: str, data: Array) -> str:
        self.values[name] = Value(data.shape, data.dtype, data)
        return name
