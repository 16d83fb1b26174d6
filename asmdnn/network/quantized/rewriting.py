"""Nodes with constant weights as nodes with weights of 8 bits: what `quantize` writes.

Weights become s8 by output channel, symmetric: the largest magnitude of a channel is 127 steps, or 64.  "weights" puts
a DequantizeLinear after them and computes in f32.  "dynamic" rounds what MatMul and Gemm multiply to u8, too, by the
range of the data at hand (DynamicQuantizeLinear, once for all that read it), and multiplies integers (MatMulInteger).
Source: https://onnx.ai/onnx/operators, and how onnxruntime's quantisers write the two.
"""

from collections.abc import Collection

import numpy as np

from asmdnn.network.graph import Array, Body, Model, Node
from asmdnn.network.quantized.writing import BodyWriter
from asmdnn.records import replace

KINDS = {"dynamic": ("MatMul", "Gemm"), "weights": ("MatMul", "Gemm", "Conv")}
MOST = 127
REDUCED = 64  # with which two products, each by a u8, fit into 16 bits
FLOAT = 1  # ONNX's number of f32


def quantized(
    model: Model, opset: int, method: str, kept: Collection[str], most: int = MOST
) -> tuple[Model, tuple[str, ...]]:
    """(the model, the nodes whose weights became bytes).  kept: names of nodes or results that stay as they are.  most:
    the largest magnitude of a weight."""
    rewriting = BodyQuantizer(model.body, opset, kept, most)
    done = list[str]()
    for node in model.body.nodes:
        if rewriting.takes(node, method):
            done.append(node.name or node.outputs[0])
            (rewriting.multiply_integers if method == "dynamic" else rewriting.widen_weights)(node)
        else:
            rewriting.nodes.append(node)
    return replace(model, body=rewriting.body()), tuple(done)


def symmetric(weights: Array, axis: int, most: int = MOST) -> tuple[Array, Array]:
    """(s8, a scale for each channel along the axis), where all zeros have the scale 1."""
    others = tuple(i for i in range(weights.ndim) if i != axis)
    largest = np.abs(weights).max(axis=others, keepdims=True)
    scales = np.where(largest > 0, np.maximum(largest / most, np.finfo(np.float32).tiny), 1).astype(np.float32)
    integers = np.clip(np.rint(weights / scales), -most, most).astype(np.int8)
    return integers, scales.reshape(-1)


class BodyQuantizer(BodyWriter):
    """known: constants, of nodes too; kept: names of nodes or results that stay as they are."""

    def __init__(self, body: Body, opset: int, kept: Collection[str], most: int) -> None:
        super().__init__(body, opset)
        self.kept, self.most = kept, most
        values = {node.outputs[0]: node.get("value") for node in body.nodes if node.key == "Constant"}
        self.known = {**body.constants, **{name: x for name, x in values.items() if isinstance(x, np.ndarray)}}

    def takes(self, node: Node, method: str) -> bool:
        """Whether its weights are constants of f32 that bytes can stand for, and nobody keeps it."""
        if node.domain or node.op not in KINDS[method] or {node.name, *node.outputs} & {*self.kept}:
            return False
        weights, bias = self.known.get(node.inputs[1]), (*node.inputs, "", "")[2]
        is_plain = weights is not None and weights.dtype == np.float32 and weights.size and np.isfinite(weights).all()
        if weights is None or not is_plain or (weights.ndim != 2 and node.op != "Conv"):
            return False
        scales_bias = node.op == "Gemm" and node.get("beta", 1.0) != 1.0 and bias and bias not in self.known
        return method == "weights" or not (node.get("transA", 0) or scales_bias)

    def widen_weights(self, node: Node) -> None:
        """The node, with weights that are s8 in the file."""
        source = node.inputs[1]
        axis = 0 if node.op == "Conv" or node.get("transB", 0) else 1
        key = (source, str(axis))
        if key not in self.ready:
            integers, scales = symmetric(self.known[source], axis, self.most)
            ends = self.constant(f"{source} s8", integers), self.constant(f"{source} scale", scales)
            zero = self.constant(f"{source} zero", np.zeros(len(scales), np.int8))
            self.ready[key] = self.add("DequantizeLinear", (*ends, zero), (f"{source} f32",), axis=axis)
        inputs = (node.inputs[0], *self.ready[key], *node.inputs[2:])
        self.nodes.append(replace(node, inputs=inputs))

    def multiply_integers(self, node: Node) -> None:
        """Quantised operand times s8, as f32 by both scales, and the bias."""
        x, source = node.inputs[:2]
        if (x,) not in self.ready:
            self.ready[x,] = self.add("DynamicQuantizeLinear", (x,), (f"{x} u8", f"{x} scale", f"{x} zero"))
        operand, scale, zero = self.ready[x,]
        is_gemm, transposed = node.op == "Gemm", bool(node.get("transB", 0))
        key = (source, "product", str(transposed))
        if key not in self.ready:
            integers, scales = symmetric(self.known[source].T if transposed else self.known[source], 1, self.most)
            self.ready[key] = self.constant(f"{source} s8", integers), self.constant(f"{source} scale", scales)
        weights, by_channel = self.ready[key]
        if is_gemm and node.get("alpha", 1.0) != 1.0:
            by_channel = self.constant(f"{source} scale", self.constants[by_channel] * np.float32(node.get("alpha")))
        y = node.outputs[0]
        (sums,) = self.add("MatMulInteger", (operand, weights, zero), (f"{y} sums",), name=node.name)
        (floats,) = self.add("Cast", (sums,), (f"{y} f32",), to=FLOAT)
        (factor,) = self.add("Mul", (scale, by_channel), (f"{y} scale",))
        bias = node.inputs[2] if len(node.inputs) > 2 else ""
        if not bias:
            self.nodes.append(self.node("Mul", (floats, factor), (y,)))
            return
        if node.get("beta", 1.0) != 1.0:
            bias = self.constant(f"{y} bias", self.known[bias] * np.float32(node.get("beta")))
        (product,) = self.add("Mul", (floats, factor), (f"{y} product",))
        self.nodes.append(self.node("Add", (product, bias), (y,)))
