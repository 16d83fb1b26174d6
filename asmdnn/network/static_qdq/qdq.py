"""A body in which bytes stand for values: QuantizeLinear and DequantizeLinear around operators, as published files are.

    conv(x, w, b)  becomes  Quantize(function(conv(Dequantize(x), Dequantize(w s8), Dequantize(b s32))))

Weights are s8 by output channel, symmetric; a bias is s32 in steps of both scales.  Files below operator set 13, in
which scales have no axis, take com.microsoft's two operators of the same names.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Array, Body, Node
from asmdnn.network.quantized.rewriting import symmetric
from asmdnn.network.quantized.weights import DEQUANTIZE, QUANTIZE, is_move
from asmdnn.network.quantized.writing import BodyWriter, Names
from asmdnn.network.static_qdq.ranges import ByteNumbers
from asmdnn.network.static_qdq.roles import Roles
from asmdnn.records import replace

WITH_AXES = 13  # the operator set
MICROSOFT = "com.microsoft"
MOST_BIAS = 2.0**30  # steps, so that sums of 32 bits do not wrap
FINE_BIAS = 2.0**20  # steps of a bias whose channel has no weights


def in_qdq(
    roles: Roles, opset: int, numbers: Mapping[str, ByteNumbers], biases: Mapping[str, Array], most: int
) -> Body:
    """The body with such nodes.  biases: what is added to those of products, by result.  most: the largest weight."""
    return QdqWriter(roles, opset, numbers, biases, most).body_of_bytes()


class QdqWriter(BodyWriter):
    """floats: what stands for a value that is bytes."""

    def __init__(
        self, roles: Roles, opset: int, numbers: Mapping[str, ByteNumbers], biases: Mapping[str, Array], most: int
    ) -> None:
        super().__init__(roles.body, opset)
        self.roles, self.biases, self.most = roles, biases, most
        self.numbers = dict(numbers)
        self.floats: dict[str, str] = {}

    def body_of_bytes(self) -> Body:
        for node in self.given.nodes:
            if is_move(node) and id(node) in self.roles.carriers:
                self.numbers.update(dict.fromkeys(node.outputs, self.numbers[node.inputs[0]]))
        for name in self.given.inputs:
            self.store(name)
        for node in self.given.nodes:
            is_product = id(node) in self.roles.products
            bytes_read = {*self.roles.operands(node)} if is_product or id(node) in self.roles.carriers else set()
            inputs = [self.floats.get(x, x) if x in bytes_read or x in self.roles.made else x for x in node.inputs]
            one = replace(node, inputs=tuple(inputs))
            self.nodes.append(self.product(one, node.inputs[0]) if is_product else one)
            for name in node.outputs:
                self.store(name)
        return self.body()

    def store(self, name: str) -> None:
        """Bytes after a value that is read as such, and floats of them."""
        if name not in self.roles.stored:
            return
        ends = self.ends(self.numbers[name])
        (quantized,) = self.of_own(QUANTIZE, (name, *ends), (f"{name} bytes",))
        (self.floats[name],) = self.of_own(DEQUANTIZE, (quantized, *ends), (f"{name} of bytes",))

    def of_own(self, op: str, inputs: Names, results: Names, **attributes: int) -> Names:
        """One of the two operators, in the domain that knows it."""
        outputs = self.add(op, inputs, results, "", **attributes)
        if self.opset < WITH_AXES:
            self.nodes[-1] = replace(self.nodes[-1], domain=MICROSOFT, opset=1)
        return outputs

    def ends(self, numbers: ByteNumbers) -> Names:
        """The constants of a scale and a zero point."""
        key = ("numbers", str(numbers))
        if key not in self.ready:
            label = f"{numbers.scale:.6g} {numbers.zero}"
            scale = self.constant(f"scale {label}", np.array(numbers.scale, np.float32))
            self.ready[key] = scale, self.constant(f"zero {label}", np.array(numbers.zero, numbers.dtype))
        return self.ready[key]

    def product(self, node: Node, x: str) -> Node:
        """The node with weights and bias of integers."""
        source, plain = node.inputs[1], node.op != "Gemm" or node.get("alpha", 1.0) == node.get("beta", 1.0) == 1.0
        axis = 0 if node.op == "Conv" or node.get("transB", 0) else 1
        integers, scales = symmetric(self.constants[source], axis, self.most)
        unit, bias = self.numbers[x].scale, self.bias(node)
        if bias is not None and plain:
            integers, scales = with_room(self.constants[source], axis, scales, np.abs(bias) / unit)
        weights = self.of_channels(source, integers, scales, axis)
        if node.op == "MatMul" or len(node.inputs) + (bias is not None) == len("xw"):
            return replace(node, inputs=(node.inputs[0], weights))
        if bias is None:
            return replace(node, inputs=(node.inputs[0], weights, *node.inputs[2:]))
        label = f"{node.outputs[0]} bias"
        if not plain:
            return replace(node, inputs=(node.inputs[0], weights, self.constant(label, bias.astype(np.float32))))
        steps = (scales.astype(np.float64) * unit).astype(np.float32)
        whole = np.clip(np.rint(bias / steps), -(2**31), 2**31 - 1).astype(np.int32)
        return replace(node, inputs=(node.inputs[0], weights, self.of_channels(label, whole, steps, 0)))

    def bias(self, node: Node) -> Array | None:
        """f64 by channel, corrected; None if there is none, or one that is no vector of constants."""
        if node.op == "MatMul":
            return None
        name, correction = (*node.inputs, NOTHING)[2], self.biases.get(node.outputs[0])
        given = self.constants.get(name)
        if (name != NOTHING and (given is None or given.ndim != 1)) or (given is None and correction is None):
            return None
        parts = [array.astype(np.float64) for array in (given, correction) if array is not None]
        return np.asarray(sum(parts))

    def of_channels(self, name: str, integers: Array, scales: Array, axis: int) -> str:
        """Floats of constant integers with a scale for each channel."""
        bits = integers.dtype.itemsize * 8
        ends = (
            self.constant(f"{name} s{bits}", integers),
            self.constant(f"{name} scale", scales),
            self.constant(f"{name} zero", np.zeros(len(scales), integers.dtype)),
        )
        return self.of_own(DEQUANTIZE, ends, (f"{name} f32",), axis=axis)[0]


def with_room(weights: Array, axis: int, scales: Array, bias: Array) -> tuple[Array, Array]:
    """Weights and scales whose products with src's have room for a bias, which is in units of src's scale."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    is_empty = ~weights.any(axis=others)
    bias = np.broadcast_to(bias, scales.shape)
    fine = np.where(bias > 0, bias / FINE_BIAS, 1.0)
    wide = np.where(is_empty, fine, np.maximum(scales, bias / MOST_BIAS)).astype(np.float32)
    wide = np.maximum(wide, np.finfo(np.float32).tiny)
    spread = wide.reshape([-1 if i == axis else 1 for i in range(weights.ndim)])
    return np.clip(np.rint(weights / spread), -127, 127).astype(np.int8), wide
