"""How an axis of which only the first places count goes through operators that compute those places alone.

What lies behind the places that count is anything; no rule lets it into a place that does.
"""

from collections.abc import Mapping, Sequence
from math import prod

from asmdnn.network.counted.moving import MOVES
from asmdnn.network.counted.reading import CountedReading, Rule
from asmdnn.network.operators.definition import AXES_MOVED, normal, number
from asmdnn.network.operators.reductions import axes_to_reduce


def element_wise(r: CountedReading) -> int | None:
    """Of operands that are broadcast."""
    found = {axis - len(r.shape(i)) for i, axis in r.counted.items()}
    axis, *others = found
    alone = [x.shape for i, x in enumerate(r.values) if x is not None and i not in r.counted]
    if others or any(len(shape) >= -axis and shape[axis] != 1 for shape in alone):
        return None
    return axis + max(len(x.shape) for x in r.values if x is not None)


def beside(default: int) -> Rule:
    """Of operators that work along the attribute axis."""

    def rule(r: CountedReading) -> int | None:
        axis = normal(r.node.get("axis", default), len(r.shape()))
        return r.only if r.only != axis else None

    return rule


def without_axis(r: CountedReading) -> int | None:
    """Of operators that work along the attribute axis and leave it out, or 1 in its place."""
    axis = normal(r.node.get("axis", 0), len(r.shape()))
    if r.only is None or r.only == axis:
        return None
    return r.only if r.node.get("keepdims", 1) or r.only < axis else r.only - 1


def softmax(r: CountedReading) -> int | None:
    """Of versions before 13 along all axes from one on."""
    if r.node.opset >= AXES_MOVED:
        return beside(-1)(r)
    return in_front_of(1)(r)


def in_front_of(default: int) -> Rule:
    """Of operators that work along all axes from the attribute axis on."""

    def rule(r: CountedReading) -> int | None:
        axis = normal(r.node.get("axis", default), len(r.shape()))
        return r.only if r.only is not None and r.only < axis else None

    return rule


def reduced(r: CountedReading) -> int | None:
    if r.only is None or (r.has(1) and r.data(1) is None):
        return None
    axes = axes_to_reduce(r.node, len(r.shape()), r.data(1))
    if r.only in axes:
        return None
    return r.only if r.node.get("keepdims", 1) else r.only - sum(axis < r.only for axis in axes)


def summed_along(r: CountedReading) -> int | None:
    """A sum from the start on reads nothing behind a place."""
    axis = r.data(1)
    if r.only is None or axis is None:
        return None
    is_along = normal(int(number(axis)), len(r.shape())) == r.only
    return None if is_along and r.node.get("reverse", 0) else r.only


def in_batch(r: CountedReading) -> int | None:
    """Of operators that compute each item of axis 0 alone."""
    return 0 if r.only == 0 else None


def multiplied(r: CountedReading) -> int | None:
    """Rows of the first, columns of the second, or batches."""
    a, b = len(r.shape(0)), len(r.shape(1))
    if min(a, b) == 1:
        return multiplied_by_vector(r, a, b)
    axes = {i: axis - len(r.shape(i)) for i, axis in r.counted.items()}
    axis, *others = {*axes.values()}
    if others:
        return None
    if axis >= -2:
        fits = axes == {0: -2} or axes == {1: -1}
    else:
        fits = all(i in axes or len(r.shape(i)) < -axis or r.shape(i)[axis] == 1 for i in (0, 1))
    return axis + max(a, b) if fits else None


def multiplied_by_vector(r: CountedReading, a: int, b: int) -> int | None:
    if b == 1:
        return r.only if r.only != a - 1 else None
    own = r.counted.get(1, b - 2)
    return None if 0 in r.counted or own == b - 2 else min(own, b - 2)


def general_product(r: CountedReading) -> int | None:
    """alpha A B + beta C, of which C is broadcast."""
    rows, columns = (1, 0) if r.node.get("transA", 0) else (0, 1), (1, 0) if r.node.get("transB", 0) else (0, 1)
    own = {i: axis for i, axis in r.counted.items() if i < 2}
    axis = 0 if own == {0: rows[0]} else 1 if own == {1: columns[1]} else None
    if axis is None or not r.has(2):
        return axis
    dims = r.shape(2)
    own_axis = axis - 2 + len(dims)
    if 2 in r.counted:
        return axis if r.counted[2] == own_axis else None
    return axis if own_axis < 0 or dims[own_axis] == 1 else None


def by_channels(r: CountedReading) -> int | None:
    """By channels, which are axis 1."""
    return r.only if r.only != 1 else None


def quantized(r: CountedReading) -> int | None:
    """By one scale, or by some along another axis."""
    if r.node.get("block_size", 0):
        return None
    is_one = all(x is None or prod(x.shape) == 1 for x in r.values[1:])
    return r.only if is_one else beside(1)(r)


def regions(r: CountedReading) -> int | None:
    """Boxes, each with the number of its image."""
    return 0 if dict(r.counted) == {1: 0, 2: 0} else None


def beside_nothing(r: CountedReading) -> int | None:
    """Of operators that choose elements by their places."""
    return r.only


ELEMENT_WISE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike "
    "Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity "
    "IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round "
    "Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor"
)  # fmt: skip
REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
)
IN_BATCH = (
    "AveragePool Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization "
    "InstanceNormalization LRN LpPool MaxPool SpaceToDepth"
)
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(ELEMENT_WISE.split(), element_wise),
    **dict.fromkeys(REDUCTIONS.split(), reduced),
    **dict.fromkeys(IN_BATCH.split(), in_batch),
    **MOVES,
    "Split": beside(0), "Softmax": softmax, "LogSoftmax": softmax, "Hardmax": softmax, "LpNormalization": beside(-1),
    "LayerNormalization": in_front_of(-1), "RMSNormalization": in_front_of(-1), "BatchNormalization": by_channels,
    "ArgMax": without_axis, "ArgMin": without_axis, "TopK": beside(-1), "CumSum": summed_along,
    "CumProd": summed_along, "MatMul": multiplied, "Gemm": general_product, "QuantizeLinear": quantized,
    "DequantizeLinear": quantized, "RoiAlign": regions, "Trilu": beside_nothing, "Dropout": element_wise,
}  # fmt: skip
INDICES: Mapping[str, Sequence[int]] = {  # operands that go by zeros behind the places that count, so that they fit
    "Gather": (1,), "GatherElements": (1,), "GatherND": (1,), "RoiAlign": (1, 2), "Scatter": (1,),
    "ScatterElements": (1,),
}  # fmt: skip
KEEP_ZEROS = {  # whose results have zeros where all operands have some
    "Transpose", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Slice", "Concat", "Split", "Cast", "Identity",
}  # fmt: skip
