"""Operators on integers in the words of others: DequantizeLinear, the operator on floats, QuantizeLinear.

    QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b) = Quantize(Conv(Dequantize(x), Dequantize(w), b sx sw), sy, zy)

So there is one way in which networks of integers are known.  Sources: https://onnx.ai/onnx/operators, and for the
domain com.microsoft docs/ContribOperators.md of onnxruntime.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.network.decompositions.foreign import DOMAIN, Decompose, ForeignOperator
from asmdnn.network.decompositions.words import OPSET, Decomposer
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.attributes import AXIS, INT, POOLING, WINDOW, Attributes, needed
from asmdnn.network.operators.attributes import FLOAT as NUMBER
from asmdnn.network.quantized.weights import DEQUANTIZE, QUANTIZE

Names = tuple[str, ...]


def named(*names: str) -> Names:
    return tuple(name for name in names if name != NOTHING)


def floats(w: Decomposer, x: str, scale: str, zero: str) -> str:
    return w(DEQUANTIZE, *named(x, scale, zero))


def weights(w: Decomposer, x: str, scale: str, zero: str, axis: int) -> str:
    """Floats that nobody makes, if x is a constant."""
    name = w.name("weights")
    w.folding.kept_integers.add(name)
    w.folding.node(
        Node(DEQUANTIZE, named(x, scale, zero), (name,), attributes={"axis": axis}, name="", domain="", opset=OPSET)
    )
    return name


def integers(w: Decomposer, y: str, scale: str, zero: str) -> Names:
    return (w(QUANTIZE, *named(y, scale, zero)),)


def scale_of(w: Decomposer, name: str) -> Array:
    """f64.  Raises Unimplemented for what is no constant."""
    found = w.data(name)
    if found is None:
        raise Unimplemented(f"{w.node} has the scale {shown(name)}, which is no constant: pass it in constants=")
    return found.astype(np.float64).ravel()


def bias(w: Decomposer, name: str, *scales: str) -> Names:
    """s32 in units of both scales, as floats; nothing if there is none."""
    if name == NOTHING:
        return ()
    unit = w.constant(np.prod(np.broadcast_arrays(*(scale_of(w, scale) for scale in scales)), axis=0))
    return (w(DEQUANTIZE, name, unit, axis=0),)


def conv(w: Decomposer, node: Node, *inputs: str) -> Names:
    x, sx, zx, k, sk, zk, sy, zy, b = inputs
    if "channels_last" in node.attributes and node.domain != DOMAIN:
        raise InvalidArguments(f"{node} has the attribute channels_last, which is that of domain {DOMAIN}: say it")
    read = (floats(w, channels_second(w, x), sx, zx), weights(w, k, sk, zk, 0), *bias(w, b, sx, sk))
    return in_place(w, *integers(w, w("Conv", *read, **without_last(node)), sy, zy))


def channels_second(w: Decomposer, x: str) -> str:
    """Images whose channels are last where a node says so, as ONNX has them."""
    count = len(w.shape(x))
    return w.turned(x, 0, count - 1, *range(1, count - 1)) if w.node.get("channels_last", 0) else x


def in_place(w: Decomposer, y: str) -> Names:
    """The way back."""
    count = len(w.shape(y))
    return (w.turned(y, 0, *range(2, count), 1) if w.node.get("channels_last", 0) else y,)


def without_last(node: Node) -> Mapping[str, Any]:
    """The attributes of ONNX's own operator."""
    return {name: value for name, value in node.attributes.items() if name not in ("channels_last", "opset")}


def matmul(w: Decomposer, node: Node, *inputs: str) -> Names:
    a, sa, za, b, sb, zb, sy, zy = inputs
    if w.shape(sa) not in ((), (1,)):
        raise Unimplemented(f"{node} has a scale for each row of its first operand: only one for all is known")
    return integers(w, w("MatMul", floats(w, a, sa, za), weights(w, b, sb, zb, -1)), sy, zy)


def gemm(w: Decomposer, node: Node, *inputs: str) -> Names:
    """With floats as the result where it has no scale."""
    a, sa, za, b, sb, zb, c, sy, zy = inputs
    columns = 0 if node.get("transB", 0) else 1
    read = (floats(w, a, sa, za), weights(w, b, sb, zb, columns), *bias(w, c, sa, sb))
    y = w("Gemm", *read, **node.attributes)
    return (y,) if sy == NOTHING else integers(w, y, sy, zy)


def of_two(op: str) -> Decompose:
    def decompose(w: Decomposer, node: Node, *inputs: str) -> Names:
        a, sa, za, b, sb, zb, sy, zy = inputs
        return integers(w, w(op, floats(w, a, sa, za), floats(w, b, sb, zb)), sy, zy)

    return decompose


def of_one(op: str) -> Decompose:
    def decompose(w: Decomposer, node: Node, *inputs: str) -> Names:
        x, sx, zx, sy, zy = inputs
        y = w(op, floats(w, channels_second(w, x), sx, zx), **without_last(node))
        return in_place(w, *integers(w, y, sy, zy))

    return decompose


def concat(w: Decomposer, node: Node, scale: str, zero: str, *rest: str) -> Names:
    parts = rest[: len(node.inputs) - 2]
    if len(parts) % 3:
        raise InvalidArguments(
            f"{node} has {counted(len(parts), 'input')} after its first two, it must have three for each part"
        )
    every = [floats(w, *parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return integers(w, w("Concat", *every, **node.attributes), scale, zero)


def as_onnx(w: Decomposer, node: Node, x: str, scale: str, zero: str) -> Names:
    """What has the same name there."""
    return (w(node.op, *named(x, scale, zero), **node.attributes),)


LAST: Attributes = {"channels_last": INT}
GEMM: Attributes = {"alpha": NUMBER, "transA": INT, "transB": INT}
POOL: Attributes = {**POOLING, "count_include_pad": INT, **LAST}
DECOMPOSITIONS = {
    name: ForeignOperator(decompose, inputs, 1, attributes, of_integers=True)
    for name, decompose, inputs, attributes in (
        ("QLinearConv", conv, "xxxxxxxx?", {**WINDOW, "group": INT, **LAST}),
        ("QLinearMatMul", matmul, "xxxxxxxx", {}),
        ("QGemm", gemm, "xx?xx????", GEMM),
        ("QLinearAdd", of_two("Add"), "xx?xx?x?", {}),
        ("QLinearMul", of_two("Mul"), "xx?xx?x?", {}),
        ("QLinearSigmoid", of_one("Sigmoid"), "xx?x?", {}),
        ("QLinearLeakyRelu", of_one("LeakyRelu"), "xx?x?", {"alpha": NUMBER}),
        ("QLinearSoftmax", of_one("Softmax"), "xx?x?", {**AXIS, "opset": needed(INT)}),
        ("QLinearAveragePool", of_one("AveragePool"), "xx?x?", POOL),
        ("QLinearGlobalAveragePool", of_one("GlobalAveragePool"), "xx?x?", LAST),
        ("QLinearConcat", concat, "xxxxx~", {"axis": needed(INT)}),
        (QUANTIZE, as_onnx, "xx?", AXIS),
        (DEQUANTIZE, as_onnx, "xx?", AXIS),
    )
}
