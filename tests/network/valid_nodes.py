"""A valid node of every operator, in little: what wrong models are made of."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Operand(NamedTuple):
    """An input of the network, or a constant if there is data."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    data: Any = None


class ValidNode(NamedTuple):
    op: str
    operands: tuple[Operand, ...]
    attributes: Mapping[str, Any]
    outputs: int = 1


def given(*shape: int, dtype: str = "float32") -> Operand:
    return Operand(shape, dtype)


def constant(data: Any, dtype: str = "int64") -> Operand:
    array = np.array(data, dtype)
    return Operand(array.shape, dtype, array)


def weights(*shape: int) -> Operand:
    return constant(np.linspace(-1, 1, max(1, int(np.prod(shape)))).reshape(shape), "float32")


def valid(op: str, operands: Sequence[Operand], outputs: int = 1, **attributes: Any) -> ValidNode:
    return ValidNode(op, tuple(operands), attributes, outputs)


X, IMAGE, ROWS, FLAGS, IDS = (
    given(2, 6),
    given(1, 4, 6, 6),
    given(2, 3, 8),
    given(2, 6, dtype="bool"),
    given(2, 3, dtype="int64"),
)
BYTES = given(2, 4, dtype="uint8")
MAPS = (
    "Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Selu", "Celu", "Gelu", "Shrink", "Sigmoid", "Tanh", "HardSigmoid",
    "HardSwish", "Swish", "Mish", "Softplus", "Softsign", "Clip", "Abs", "Neg", "Sqrt", "Exp", "Log", "Floor", "Ceil",
    "Round", "Sign", "Reciprocal", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh",
    "Acosh", "Atanh", "IsNaN", "IsInf", "Identity", "Dropout", "Shape", "Size", "Softmax", "LogSoftmax", "Hardmax",
    "LpNormalization", "EyeLike", "Trilu", "ArgMax", "ArgMin", "Transpose", "Flatten",
)  # fmt: skip
PAIRS = (
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "SwiGLU", "Max", "Min", "Sum", "Mean", "Equal", "Less",
    "LessOrEqual", "Greater", "GreaterOrEqual",
)  # fmt: skip
REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceSumSquare", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
NOTHING_OF_IT = constant([], "float32")
NODES: tuple[ValidNode, ...] = (
    *(valid(op, [X]) for op in MAPS),
    *(valid(op, [X, other]) for op in PAIRS for other in (X, weights(6))),
    *(valid(op, [FLAGS, FLAGS]) for op in ("And", "Or", "Xor")),
    valid("Not", [FLAGS]),
    *(valid(op, [IDS, IDS]) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Add", "Greater", "Mul", "Max")),
    valid("BitwiseNot", [IDS]),
    valid("BitShift", [BYTES, BYTES], direction="LEFT"),
    *(valid(op, [ROWS]) for op in REDUCTIONS),
    valid("ReduceSum", [ROWS, constant([1])], keepdims=0),
    valid("Where", [FLAGS, X, X]),
    valid("Cast", [X], to=7),
    valid("CastLike", [X, IDS]),
    valid("BitCast", [X], to=6),
    valid("Reshape", [X, constant([3, -1])]),
    valid("Squeeze", [given(1, 6), constant([0])]),
    valid("Unsqueeze", [X, constant([0])]),
    valid("Concat", [X, X], axis=1),
    valid("Split", [X, constant([2, 4])], 2, axis=1),
    valid("Slice", [X, constant([1]), constant([5]), constant([1]), constant([2])]),
    valid("Expand", [given(2, 1), constant([2, 3])]),
    valid("Tile", [X, constant([2, 1])]),
    valid("Pad", [X, constant([0, 1, 0, 1]), weights()], mode="constant"),
    valid("DepthToSpace", [IMAGE], blocksize=2),
    valid("SpaceToDepth", [IMAGE], blocksize=2),
    valid("CenterCropPad", [IMAGE, constant([4, 4])], axes=[2, 3]),
    valid("Det", [given(3, 3)]),
    valid("Gather", [X, constant([0, 1])], axis=1),
    valid("Gather", [X, IDS], axis=0),
    valid("GatherElements", [X, constant([[0, 1, 0], [1, 1, 0]])], axis=1),
    valid("GatherND", [X, constant([[0, 1], [1, 2]])]),
    valid("ScatterElements", [X, constant([[0, 1]]), weights(1, 2)], axis=1),
    valid("Scatter", [X, constant([[0, 1]]), weights(1, 2)], axis=1),
    valid("ScatterND", [X, constant([[0, 1]]), weights(1)]),
    valid("OneHot", [IDS, constant([4]), weights(2)]),
    valid("Compress", [weights(3, 2), constant([True, False, True], "bool")], axis=0),
    valid("ReverseSequence", [given(3, 2, 4), constant([2, 3])]),
    valid("Constant", [], value=np.float32([1, 2])),
    valid("Constant", [], value_ints=[1, 2]),
    valid("ConstantOfShape", [constant([2, 3])], value=np.float32([1])),
    valid("Range", [constant(0), constant(6), constant(2)]),
    valid("NonZero", [constant([1, 0, 2])]),
    valid("NonZero", [X]),
    valid("Unique", [IDS], 4, sorted=0),
    valid("NonMaxSuppression", [given(1, 5, 4), given(1, 2, 5), constant([3]), constant([0.5], "float32")]),
    valid("TopK", [X, constant([2])], 2, axis=1),
    valid("CumSum", [X, constant(1)]),
    valid("CumProd", [X, constant(1)]),
    valid("MatMul", [X, weights(6, 5)]),
    valid("MatMul", [ROWS, given(2, 8, 3)]),
    valid("MatMulInteger", [BYTES, constant(np.ones((4, 3)), "uint8")]),
    valid("ConvInteger", [given(1, 4, 6, 6, dtype="uint8"), constant(np.ones((3, 4, 2, 2)), "uint8")], pads=[1] * 4),
    valid("Gemm", [X, weights(5, 6), weights(5)], transB=1, alpha=0.5),
    valid("Einsum", [X, given(6, 3)], equation="ij,jk->ik"),
    valid("Conv", [IMAGE, weights(4, 4, 3, 3), weights(4)], pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3]),
    valid("Conv", [IMAGE, weights(4, 1, 3, 3)], group=4, dilations=[1, 1], auto_pad="SAME_UPPER"),
    valid("Conv", [ROWS, weights(4, 3, 3)], pads=[1, 1]),
    valid("ConvTranspose", [IMAGE, weights(4, 3, 2, 2), weights(3)], strides=[2, 2], output_padding=[0, 1]),
    valid("MaxPool", [IMAGE], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, pads=[0, 0, 1, 1]),
    valid("MaxPool", [IMAGE], 2, kernel_shape=[2, 2]),
    valid("AveragePool", [IMAGE], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    valid("LpPool", [IMAGE], kernel_shape=[2, 2], p=2),
    *(valid(op, [IMAGE]) for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")),
    valid("LRN", [IMAGE], size=3),
    valid("Resize", [IMAGE, NOTHING_OF_IT, constant([1, 1, 2, 2], "float32")], mode="linear"),
    valid("Resize", [IMAGE, NOTHING_OF_IT, NOTHING_OF_IT, constant([1, 4, 9, 9])]),
    valid("Upsample", [IMAGE, constant([1, 1, 2, 2], "float32")]),
    valid("BatchNormalization", [IMAGE, *[constant([1, 2, 3, 4], "float32")] * 4], epsilon=1e-3),
    valid("LayerNormalization", [ROWS, weights(8), weights(8)], axis=-1),
    valid("LayerNormalization", [ROWS, weights(8)], 3),
    valid("RMSNormalization", [ROWS, weights(8)], axis=-1),
    valid("InstanceNormalization", [IMAGE, weights(4), weights(4)]),
    valid("GroupNormalization", [IMAGE, weights(4), weights(4)], num_groups=2),
    valid("MeanVarianceNormalization", [IMAGE], axes=[0, 2, 3]),
    valid("Attention", [given(1, 2, 3, 4), given(1, 2, 5, 4), given(1, 2, 5, 4)], is_causal=1),
    valid("Attention", [given(1, 3, 8), given(1, 5, 8), given(1, 5, 8), given(3, 5)], q_num_heads=2, kv_num_heads=2),
    valid("RotaryEmbedding", [given(1, 2, 3, 4), weights(1, 3, 2), weights(1, 3, 2)]),
    valid("LSTM", [given(3, 2, 4), weights(1, 20, 4), weights(1, 20, 5), weights(1, 40)], 3, hidden_size=5),
    valid("GRU", [given(3, 2, 4), weights(1, 15, 4), weights(1, 15, 5)], 2, hidden_size=5, linear_before_reset=1),
    valid("RNN", [given(3, 2, 4), weights(2, 5, 4), weights(2, 5, 5)], 2, hidden_size=5, direction="bidirectional"),
    valid("QuantizeLinear", [X, constant(0.1, "float32"), constant(3, "uint8")]),
    valid("DequantizeLinear", [BYTES, constant(0.1, "float32"), constant(3, "uint8")]),
    valid("DequantizeLinear", [constant([[1, 2], [3, 4]], "int8"), constant([0.1, 0.2], "float32")], axis=1),
    valid("DynamicQuantizeLinear", [X], 3),
    valid("NegativeLogLikelihoodLoss", [given(2, 3), constant([0, 2])]),
    valid("SoftmaxCrossEntropyLoss", [given(2, 3), constant([0, 2]), weights(3)], 2, reduction="none"),
)  # fmt: skip
