"""Operators on integers in the words of the others: DequantizeLinear, the operator on floats, QuantizeLinear.

    QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b) = Quantize(Conv(Dequantize(x), Dequantize(w), b sx sw), sy, zy)

So there is one way in which networks of integers are known.  Sources: https://onnx.ai/onnx/operators, and for the
domain com.microsoft ContribOperators.md of onnxruntime.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.quantised.weights import DEQUANTIZE, QUANTIZE

MICROSOFT = "com.microsoft"
OPSET = 21  # whose words are used
Key = tuple[str, str]  # domain and operator


class Words:
    """The nodes that say what one says.  values: what is known, to which constants are added."""

    def __init__(self, node: Node, values: dict[str, Value]) -> None:
        self.node, self.values, self.nodes = node, values, list[Node]()

    def then(self, op: str, inputs: Sequence[str], result: str = "", **attributes: Any) -> str:
        """The result of a further node."""
        result = result or f"{self.node.outputs[0]}/{len(self.nodes)}"
        self.nodes.append(Node(op, tuple(inputs), (result,), attributes, self.node.name, "", OPSET))
        return result

    def floats(self, x: str, scale: str, zero: str, **attributes: Any) -> str:
        return self.then(DEQUANTIZE, (x, scale) if zero == NOTHING else (x, scale, zero), **attributes)

    def integers(self, x: str, scale: str, zero: str) -> None:
        """The last node."""
        self.then(QUANTIZE, (x, scale) if zero == NOTHING else (x, scale, zero), self.node.outputs[0])

    def operand(self, number: int) -> str:
        """An input, NOTHING if it is left out."""
        return self.node.inputs[number] if number < len(self.node.inputs) else NOTHING

    def operands(self, first: int, count: int) -> tuple[str, ...]:
        return tuple(self.operand(first + i) for i in range(count))

    def data(self, name: str) -> Array:
        """Raises Unimplemented for a value that is no constant."""
        found = self.values[name].data
        if found is None:
            raise Unimplemented(f"{self.node} has the scale {shown(name)}, which is no constant: pass it in constants=")
        return found

    def bias(self, name: str, scales: Sequence[str]) -> str:
        """s32[channels] in units of both scales, as floats."""
        if name == NOTHING:
            return NOTHING
        both = np.asarray(np.multiply(*(self.data(x).astype(np.float64).ravel() for x in scales)), np.float32)
        unit = f"{self.node.outputs[0]}/scale of {name}"
        self.values[unit] = Value(both.shape, both.dtype, both)
        return self.floats(name, unit, NOTHING, axis=0)


def conv(words: Words) -> None:
    x, sx, zx, w, sw, zw, sy, zy, b = words.operands(0, 9)
    inputs = [words.floats(x, sx, zx), words.floats(w, sw, zw, axis=0)]
    inputs += [words.bias(b, (sx, sw))] * (b != NOTHING)
    words.integers(words.then("Conv", inputs, **words.node.attributes), sy, zy)


def matmul(words: Words) -> None:
    a, sa, za, b, sb, zb, sy, zy = words.operands(0, 8)
    if words.values[sa].shape not in ((), (1,)):
        raise Unimplemented(f"{words.node} has a scale for each row of its first operand: only one for all is known")
    words.integers(words.then("MatMul", (words.floats(a, sa, za), words.floats(b, sb, zb, axis=-1))), sy, zy)


def gemm(words: Words) -> None:
    a, sa, za, b, sb, zb, c, sy, zy = words.operands(0, 9)
    columns = 0 if words.node.get("transB", 0) else 1
    inputs = [words.floats(a, sa, za), words.floats(b, sb, zb, axis=columns)]
    inputs += [words.bias(c, (sa, sb))] * (c != NOTHING)
    if sy == NOTHING:
        words.then("Gemm", inputs, words.node.outputs[0], **words.node.attributes)
    else:
        words.integers(words.then("Gemm", inputs, **words.node.attributes), sy, zy)


def of_two(op: str) -> Callable[[Words], None]:
    def spell(words: Words) -> None:
        a, sa, za, b, sb, zb, sy, zy = words.operands(0, 8)
        words.integers(words.then(op, (words.floats(a, sa, za), words.floats(b, sb, zb))), sy, zy)

    return spell


def of_one(op: str) -> Callable[[Words], None]:
    def spell(words: Words) -> None:
        x, sx, zx, sy, zy = words.operands(0, 5)
        attributes = dict(words.node.attributes)
        if attributes.pop("channels_last", 0):
            raise Unimplemented(f"{words.node} has its channels last: only channels behind the batch are known")
        attributes.pop("opset", None)
        words.integers(words.then(op, (words.floats(x, sx, zx),), **attributes), sy, zy)

    return spell


def concat(words: Words) -> None:
    sy, zy, *parts = words.node.inputs
    if len(parts) % 3:
        raise InvalidArguments(f"{words.node} has {len(parts)} inputs behind its first two: three for each part")
    floats = [words.floats(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    words.integers(words.then("Concat", floats, **words.node.attributes), sy, zy)


def by_itself(words: Words) -> None:
    """What another domain has under the same name."""
    words.then(words.node.op, words.node.inputs, words.node.outputs[0], **words.node.attributes)


SPELLINGS: Mapping[Key, Callable[[Words], None]] = {
    ("", "QLinearConv"): conv,
    ("", "QLinearMatMul"): matmul,
    (MICROSOFT, "QGemm"): gemm,
    (MICROSOFT, "QLinearAdd"): of_two("Add"),
    (MICROSOFT, "QLinearMul"): of_two("Mul"),
    (MICROSOFT, "QLinearSigmoid"): of_one("Sigmoid"),
    (MICROSOFT, "QLinearLeakyRelu"): of_one("LeakyRelu"),
    (MICROSOFT, "QLinearSoftmax"): of_one("Softmax"),
    (MICROSOFT, "QLinearAveragePool"): of_one("AveragePool"),
    (MICROSOFT, "QLinearGlobalAveragePool"): of_one("GlobalAveragePool"),
    (MICROSOFT, "QLinearConcat"): concat,
    **{(MICROSOFT, op): by_itself for op in (QUANTIZE, DEQUANTIZE)},
}
LEAST_INPUTS = {"QLinearConv": 8, "QLinearMatMul": 8, "QGemm": 6, "QLinearAdd": 7, "QLinearMul": 7, "QLinearConcat": 5}
OTHERS_LEAST = 2


def spelt_out(node: Node, values: dict[str, Value]) -> list[Node] | None:
    """The node in other words, which make its result; None if it needs none.

    Raises InvalidArguments, Unimplemented."""
    spell = SPELLINGS.get((node.domain, node.op))
    if spell is None:
        return None
    least = LEAST_INPUTS.get(node.op, OTHERS_LEAST)
    if len(node.inputs) < least or len(node.outputs) != 1:
        raise InvalidArguments(
            f"{node} has {len(node.inputs)} inputs and {len(node.outputs)} outputs: {least} and 1 are due"
        )
    words = Words(node, values)
    spell(words)
    return words.nodes
