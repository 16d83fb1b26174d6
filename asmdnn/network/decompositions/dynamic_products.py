"""Products of com.microsoft that quantise their operand as it comes, in ONNX's operators.

Source: docs/ContribOperators.md of onnxruntime.
"""

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.attributes import ATTRIBUTES
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.quantization import check_scale
from asmdnn.network.operators.recurrent import missing_kernel, of_floats

Names = tuple[str, ...]


def as_floats(w: Decomposer, sums: str, scales: str, bias: str) -> Names:
    """Sums of integers in units of scales, with a bias."""
    y = w("Mul", w.number(sums), scales)
    return (y if bias == NOTHING else w("Add", y, bias),)


def dynamic_matmul(w: Decomposer, node: Node, a: str, b: str, scale: str, zero: str, bias: str) -> Names:
    """DynamicQuantizeMatMul: of floats by weights of integers."""
    check_scale(scale, w.value(scale))
    x, own, point = w.results("DynamicQuantizeLinear", (a,), 3)
    return as_floats(w, w("MatMulInteger", x, b, point, zero), w("Mul", own, scale), bias)


def matmul_to_float(w: Decomposer, node: Node, a: str, b: str, *rest: str) -> Names:
    """MatMulIntegerToFloat: a scale of the first operand for all its elements."""
    scale_a, scale_b, zero_a, zero_b, bias = rest
    for name in (scale_a, scale_b):
        check_scale(name, w.value(name))
    if w.shape(scale_a) not in ((), (1,)):
        raise Unimplemented(f"{node} has a scale for each row of its first operand: only one for all is known")
    return as_floats(w, w("MatMulInteger", a, b, zero_a, zero_b), w("Mul", scale_a, scale_b), bias)


Weights = tuple[Array, Array]  # whole numbers [directions, gates, k], and scales f32[directions, gates]


def weights_of(w: Decomposer, weights: str, scale: str, zero: str) -> Weights:
    """Weights without their zero point, from integers [directions, k, gates], which ONNX's LSTM has the other way
    round."""
    found = [w.data(name) for name in (weights, scale, zero)]
    integers, scales, zeros = found
    if integers is None or scales is None or (zero != NOTHING and zeros is None):
        raise Unimplemented(f"{w.node} has weights {shown(weights)}, which are no constants")
    if integers.ndim != len("dkg") or integers.dtype not in (np.uint8, np.int8):
        raise InvalidArguments(f"{w.node} has weights {shown(weights)} of dims {integers.shape}, {integers.dtype}")
    directions, _, gates = integers.shape
    for one in (scales, zeros):
        if one is not None and one.shape not in ((directions,), (directions, gates)):
            raise InvalidArguments(f"{w.node} has scales or zero points of dims {one.shape}, {(directions, gates)} fit")
    if scales.dtype.kind != "f":
        raise InvalidArguments(f"{w.node} has scales {shown(scale)} of {scales.dtype}, they must be floats")
    if zeros is not None and zeros.dtype != integers.dtype:
        types = f"of {zeros.dtype} for weights of {integers.dtype}"
        raise InvalidArguments(f"{w.node} has zero points {shown(zero)} {types}: they must be equal")
    if not (np.isfinite(scales).all() and scales.all()):
        raise InvalidArguments(f"{w.node} has a scale {shown(scale)} that is 0 or not finite")
    points = np.zeros(1, np.int16) if zeros is None else zeros.astype(np.int16).reshape(directions, 1, -1)
    whole = integers.astype(np.int16) - points
    wide = np.broadcast_to(scales.astype(np.float32).reshape(directions, -1), (directions, gates))
    return np.ascontiguousarray(whole.swapaxes(1, 2)), np.ascontiguousarray(wide)


def is_of_bytes(node: Node, lengths: str, *weights: Weights) -> bool:
    """Whether a kernel multiplies these weights as s8: of the usual functions, and sequences of equal lengths."""
    limits = np.iinfo(np.int8)
    is_known = not (missing_kernel(of_floats(node)) or node.get("layout", 0)) and lengths == NOTHING
    return is_known and all(limits.min <= whole.min() <= whole.max() <= limits.max for whole, _ in weights)


def lstm(w: Decomposer, node: Node, x: str, weights: str, recurrent: str, *rest: str) -> Names:
    """DynamicQuantizeLSTM.  Where no kernel multiplies it, src and states stay as they are, without the rounding to 8
    bits of each step."""
    bias, lengths, h, c, peepholes, *numbers = rest
    both = [weights_of(w, name, *pair) for name, pair in ((weights, numbers[:2]), (recurrent, numbers[2:]))]
    more = (bias, lengths, h, c, peepholes)
    words = node.attributes
    if is_of_bytes(node, lengths, *both):
        factors = (*(w.constant(whole, np.int8) for whole, _ in both), *(w.constant(scales) for _, scales in both))
        return w.results("DynamicQuantizeLSTM", given(x, *factors, *more), len(node.outputs), OWN, **words)
    factors = tuple(w.constant(whole * scales[..., None]) for whole, scales in both)
    return w.results("LSTM", given(x, *factors, *more), len(node.outputs), **words)


def given(*inputs: str) -> Names:
    """Without those that are left out at the end."""
    count = max(i for i, name in enumerate(inputs, 1) if name != NOTHING)
    return inputs[:count]


DECOMPOSITIONS = {
    "DynamicQuantizeMatMul": ForeignOperator(dynamic_matmul, "xxx??", 1, {}, of_integers=True),
    "MatMulIntegerToFloat": ForeignOperator(matmul_to_float, "xxxx???", 1, {}, of_integers=True),
    "DynamicQuantizeLSTM": ForeignOperator(lstm, "xxx?????xxxx", 3, ATTRIBUTES["LSTM"], of_integers=True),
}
