"""Operators on integers in the words of others: DequantizeLinear, the operator on floats, QuantizeLinear.

    QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b) = Quantize(Conv(Dequantize(x), Dequantize(w), b sx sw), sy, zy)

So there is one way in which networks of integers are known.  Sources: https://onnx.ai/onnx/operators, and for the
domain com.microsoft docs/ContribOperators.md of onnxruntime.
"""

from collections.abc import Callable, Mapping

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.quantised.weights import DEQUANTIZE, QUANTIZE
from asmdnn.network.spelling.words import OPSET, Sentences, Speller

MICROSOFT = "com.microsoft"


class IntegerSpeller(Speller):
    """inputs: NOTHING for those that are left out."""

    def __init__(self, folding: Sentences, node: Node) -> None:
        super().__init__(folding, node)
        self.inputs = (*node.inputs, *[NOTHING] * 9)

    def floats(self, x: str, scale: str, zero: str, axis: int = 1) -> str:
        return self(DEQUANTIZE, *named(x, scale, zero), axis=axis)

    def operand_floats(self, first: int) -> str:
        """Of integers, scale and zero point that are inputs behind one another."""
        x, scale, zero = self.inputs[first : first + 3]
        return self.floats(x, scale, zero)

    def weights(self, w: str, scale: str, zero: str, axis: int) -> str:
        """Floats that are not made of constants."""
        name = self.name("weights")
        self.folding.kept_integers.add(name)
        self.folding.node(Node(DEQUANTIZE, named(w, scale, zero), (name,), {"axis": axis}, "", "", OPSET))
        return name

    def integers(self, y: str, scale: str, zero: str) -> str:
        return self(QUANTIZE, *named(y, scale, zero))

    def scale(self, name: str) -> Array:
        """f64.  Raises Unimplemented for what is no constant."""
        found = self.data(name)
        if found is None:
            raise Unimplemented(
                f"{self.spelt} has the scale {shown(name)}, which is no constant: pass it in constants="
            )
        return found.astype(np.float64).ravel()

    def bias(self, name: str, *scales: str) -> tuple[str, ...]:
        """s32 in units of both scales, as floats; nothing if there is none."""
        if name == NOTHING:
            return ()
        unit = self.constant(np.prod(np.broadcast_arrays(*map(self.scale, scales)), axis=0))
        return (self(DEQUANTIZE, name, unit, axis=0),)


def named(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != NOTHING)


def conv(w: IntegerSpeller, node: Node) -> str:
    x, sx, zx, weights, sw, zw, sy, zy, bias = w.inputs[:9]
    inputs = (w.floats(x, sx, zx), w.weights(weights, sw, zw, 0), *w.bias(bias, sx, sw))
    return w.integers(w("Conv", *inputs, **node.attributes), sy, zy)


def matmul(w: IntegerSpeller, node: Node) -> str:
    a, sa, za, b, sb, zb, sy, zy = w.inputs[:8]
    if w.shape(sa) not in ((), (1,)):
        raise Unimplemented(f"{node} has a scale for each row of its first operand: only one for all is known")
    return w.integers(w("MatMul", w.floats(a, sa, za), w.weights(b, sb, zb, -1)), sy, zy)


def gemm(w: IntegerSpeller, node: Node) -> str:
    """With floats as the result where it has no scale."""
    a, sa, za, b, sb, zb, c, sy, zy = w.inputs[:9]
    columns = 0 if node.get("transB", 0) else 1
    inputs = (w.floats(a, sa, za), w.weights(b, sb, zb, columns), *w.bias(c, sa, sb))
    y = w("Gemm", *inputs, **node.attributes)
    return y if sy == NOTHING else w.integers(y, sy, zy)


def of_two(op: str) -> Callable[[IntegerSpeller, Node], str]:
    def spell(w: IntegerSpeller, node: Node) -> str:
        return w.integers(w(op, w.operand_floats(0), w.operand_floats(3)), *w.inputs[6:8])

    return spell


def of_one(op: str) -> Callable[[IntegerSpeller, Node], str]:
    def spell(w: IntegerSpeller, node: Node) -> str:
        if node.get("channels_last", 0):
            raise Unimplemented(f"{node} has its channels last: only channels behind the batch are known")
        kept = {name: value for name, value in node.attributes.items() if name not in ("channels_last", "opset")}
        return w.integers(w(op, w.operand_floats(0), **kept), *w.inputs[3:5])

    return spell


def concat(w: IntegerSpeller, node: Node) -> str:
    scale, zero, *parts = node.inputs
    if len(parts) % 3:
        raise InvalidArguments(f"{node} has {len(parts)} inputs behind its first two, it must have three for each part")
    floats = [w.operand_floats(2 + i) for i in range(0, len(parts), 3)]
    return w.integers(w("Concat", *floats, **node.attributes), scale, zero)


def as_onnx(w: IntegerSpeller, node: Node) -> str:
    """What another domain has under the same name."""
    return w(node.op, *node.inputs, **node.attributes)


SPELLINGS: Mapping[tuple[str, str], tuple[int, Callable[[IntegerSpeller, Node], str]]] = {
    ("", "QLinearConv"): (8, conv),
    ("", "QLinearMatMul"): (8, matmul),
    (MICROSOFT, "QGemm"): (6, gemm),
    (MICROSOFT, "QLinearAdd"): (7, of_two("Add")),
    (MICROSOFT, "QLinearMul"): (7, of_two("Mul")),
    (MICROSOFT, "QLinearSigmoid"): (4, of_one("Sigmoid")),
    (MICROSOFT, "QLinearLeakyRelu"): (4, of_one("LeakyRelu")),
    (MICROSOFT, "QLinearSoftmax"): (4, of_one("Softmax")),
    (MICROSOFT, "QLinearAveragePool"): (4, of_one("AveragePool")),
    (MICROSOFT, "QLinearGlobalAveragePool"): (4, of_one("GlobalAveragePool")),
    (MICROSOFT, "QLinearConcat"): (5, concat),
    **{(MICROSOFT, op): (2, as_onnx) for op in (QUANTIZE, DEQUANTIZE)},
}  # by domain and operator: how many inputs there are at least, and what it says


def spelt_integers(folding: Sentences, node: Node) -> str | None:
    """The value behind a node's result, whose nodes are taken in; None for other operators.

    Raises InvalidArguments, Unimplemented."""
    least, spell = SPELLINGS.get((node.domain, node.op), (0, None))
    if spell is None:
        return None
    if len(node.inputs) < least or NOTHING in node.inputs[:2] or len(node.outputs) != 1:
        counts = f"{len(node.inputs)} inputs and {len(node.outputs)} outputs"
        raise InvalidArguments(f"{node} has {counts}, {least} or more inputs and 1 output are due")
    return spell(IntegerSpeller(folding, node), node)
