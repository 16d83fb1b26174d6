"""The attributes of ONNX's operators: what a node may say beside its inputs, and of what kind each is.

Those of all versions from operator set 7 on, as https://onnx.ai/onnx/operators lists them.  Versions count only where a
definition goes by them: axes, for example, became an input in operator set 13, and are read as an attribute all the
same; the axis of Concat has the default of the versions before 4.
"""

from collections.abc import Callable, Mapping
from functools import cache
from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, did_you_mean, resembling, shown
from asmdnn.memory.sequences import items
from asmdnn.network.graph import Body, Node
from asmdnn.network.operators.mapped import MAP
from asmdnn.records import dataclass, replace

LAST = 1 << 31  # above all operator sets


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is said of one.

    is_one(value): whether it is of this kind, which `kind` says in words; it may raise, which means no.

    needed: it has no default; words: those that it may be; since, until: the operator sets that read it.
    """

    kind: str
    is_one: Callable[[Any], bool]
    needed: bool = False
    since: int = 0
    until: int = LAST
    words: tuple[str, ...] = ()


def is_integer(value: Any) -> bool:
    return index(value) is not None


def is_number(value: Any) -> bool:
    return not isinstance(value, str) and float(value) is not None


def is_list(value: Any, is_one: Callable[[Any], bool]) -> bool:
    return not isinstance(value, str) and all(is_one(x) for x in items(value))


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_array(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fiub"


INT = Attribute("an integer", is_integer)
INTS = Attribute("integers", lambda value: is_list(value, is_integer))
FLOAT = Attribute("a number", is_number)
FLOATS = Attribute("numbers", lambda value: is_list(value, is_number))
TEXT = Attribute("a text", is_text)
TEXTS = Attribute("texts", lambda value: is_list(value, is_text))
TENSOR = Attribute("a tensor", is_array)
BODY = Attribute("a graph", lambda value: isinstance(value, Body), needed=True)


def needed(attribute: Attribute) -> Attribute:
    return replace(attribute, needed=True)


def optional(attribute: Attribute) -> Attribute:
    return replace(attribute, needed=False)


def one_of(*words: str) -> Attribute:
    return Attribute(f"one of {', '.join(words)}", lambda value: value in words, words=words)


Attributes = Mapping[str, Attribute]

ALPHA, AXIS, EPSILON = {"alpha": FLOAT}, {"axis": INT}, {"epsilon": FLOAT}
ROUNDED: Attributes = {"saturate": INT, "round_mode": one_of("up", "down", "nearest")}
AUTO_PAD = one_of("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
WINDOW: Attributes = {"auto_pad": AUTO_PAD, "dilations": INTS, "kernel_shape": INTS, "pads": INTS, "strides": INTS}
POOLING: Attributes = {**WINDOW, "kernel_shape": needed(INTS), "ceil_mode": INT}
REDUCED: Attributes = {"axes": INTS, "keepdims": INT, "noop_with_empty_axes": INT}
PLACED: Attributes = {**AXIS, "keepdims": INT, "select_last_index": INT}
SCANNED: Attributes = {"exclusive": INT, "reverse": INT}
SCATTERED: Attributes = {"reduction": one_of("none", "add", "mul", "max", "min")}
LOSS: Attributes = {"ignore_index": INT, "reduction": one_of("none", "mean", "sum")}
BLOCKS: Attributes = {"blocksize": needed(INT), "mode": one_of("DCR", "CRD")}
QUANTIZED: Attributes = {**AXIS, "block_size": INT, "output_dtype": INT}
RECURRENT: Attributes = {
    "activation_alpha": FLOATS, "activation_beta": FLOATS, "activations": TEXTS, "clip": FLOAT,
    "direction": one_of("forward", "reverse", "bidirectional"), "hidden_size": INT, "layout": INT,
}  # fmt: skip
# Before operator set 11, a Resize had a mode and nothing else.
RESIZED: Attributes = {
    name: replace(attribute, since=11)
    for name, attribute in {
        "antialias": INT, "axes": INTS, "cubic_coeff_a": FLOAT, "exclude_outside": INT, "extrapolation_value": FLOAT,
        "coordinate_transformation_mode": one_of(
            "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
            "tf_half_pixel_for_nn", "tf_crop_and_resize",
        ),
        "keep_aspect_ratio_policy": one_of("stretch", "not_larger", "not_smaller"),
        "nearest_mode": one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    }.items()
}  # fmt: skip
ATTRIBUTES: Mapping[str, Attributes] = {
    **dict.fromkeys(("Celu", "Elu", "LeakyRelu", "SwiGLU", "Swish", "ThresholdedRelu"), ALPHA),
    **dict.fromkeys(
        ("Compress", "Flatten", "Gather", "GatherElements", "Hardmax", "LogSoftmax", "OneHot", "Scatter", "Softmax"),
        AXIS,
    ),
    **{f"Reduce{name}": REDUCED for name in (
        "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"
    )},
    "ArgMax": PLACED, "ArgMin": PLACED, "CumProd": SCANNED, "CumSum": SCANNED,
    "Attention": {
        "is_causal": INT, "kv_num_heads": INT, "left_window_size": INT, "q_num_heads": INT,
        "qk_matmul_output_mode": INT, "right_window_size": INT, "scale": FLOAT, "softcap": FLOAT,
        "softmax_precision": INT,
    },
    "AveragePool": {**POOLING, "count_include_pad": INT},
    "BatchNormalization": {**EPSILON, "momentum": FLOAT, "spatial": INT, "training_mode": INT},
    "BitCast": {"to": needed(INT)},
    "BitShift": {"direction": needed(one_of("LEFT", "RIGHT"))},
    "Cast": {"to": needed(INT), **ROUNDED}, "CastLike": ROUNDED,
    "CenterCropPad": {"axes": INTS},
    "Clip": {"max": replace(FLOAT, until=10), "min": replace(FLOAT, until=10)},
    "Concat": AXIS,
    "Constant": {
        "sparse_value": TENSOR, "value": TENSOR, "value_float": FLOAT, "value_floats": FLOATS, "value_int": INT,
        "value_ints": INTS, "value_string": TEXT, "value_strings": TEXTS,
    },
    "ConcatFromSequence": {"axis": needed(INT), "new_axis": INT},
    "ConstantOfShape": {"value": TENSOR},
    "Conv": {**WINDOW, "group": INT}, "ConvInteger": {**WINDOW, "group": INT},
    "ConvTranspose": {**WINDOW, "group": INT, "output_padding": INTS, "output_shape": INTS},
    "DepthToSpace": BLOCKS, "SpaceToDepth": BLOCKS,
    "DequantizeLinear": QUANTIZED, "QuantizeLinear": {**QUANTIZED, "precision": INT, "saturate": INT},
    "Dropout": {"ratio": FLOAT, "seed": INT},
    "Einsum": {"equation": needed(TEXT)},
    "EyeLike": {"dtype": INT, "k": INT},
    "GRU": {**RECURRENT, "linear_before_reset": INT}, "LSTM": {**RECURRENT, "input_forget": INT}, "RNN": RECURRENT,
    "GatherND": {"batch_dims": INT},
    "Gelu": {"approximate": one_of("none", "tanh")},
    "Gemm": {**ALPHA, "beta": FLOAT, "transA": INT, "transB": INT},
    "GlobalLpPool": {"p": INT},
    "GroupNormalization": {**EPSILON, "num_groups": needed(INT), "stash_type": INT},
    "HardSigmoid": {**ALPHA, "beta": FLOAT},
    "If": {"else_branch": BODY, "then_branch": BODY},
    "InstanceNormalization": EPSILON,
    "IsInf": {"detect_negative": INT, "detect_positive": INT},
    "LRN": {**ALPHA, "beta": FLOAT, "bias": FLOAT, "size": needed(INT)},
    "LayerNormalization": {**AXIS, **EPSILON, "stash_type": INT},
    "RMSNormalization": {**AXIS, **EPSILON, "stash_type": INT},
    "Loop": {"body": BODY},
    "LpNormalization": {**AXIS, "p": INT},
    "LpPool": {**POOLING, "p": INT},
    MAP: {"function": Attribute("a function", callable)},
    "MaxPool": {**POOLING, "storage_order": INT},
    "MeanVarianceNormalization": {"axes": INTS},
    "Mod": {"fmod": INT},
    "NegativeLogLikelihoodLoss": LOSS, "SoftmaxCrossEntropyLoss": LOSS,
    "NonMaxSuppression": {"center_point_box": INT},
    "Pad": {"mode": one_of("constant", "reflect", "edge", "wrap"), "pads": INTS, "value": FLOAT},
    "Range": {"stash_type": INT},
    "Reshape": {"allowzero": INT},
    "Resize": {"mode": one_of("nearest", "linear", "cubic"), **RESIZED},
    "ReverseSequence": {"batch_axis": INT, "time_axis": INT},
    "RotaryEmbedding": {"interleaved": INT, "num_heads": INT, "rotary_embedding_dim": INT},
    "ScatterElements": {**AXIS, **SCATTERED}, "ScatterND": SCATTERED,
    "Scan": {
        "body": BODY, "num_scan_inputs": needed(INT), "scan_input_axes": INTS, "scan_input_directions": INTS,
        "scan_output_axes": INTS, "scan_output_directions": INTS, "directions": replace(INTS, until=8),
    },
    "Selu": {**ALPHA, "gamma": FLOAT},
    "SequenceEmpty": {"dtype": INT}, "SequenceMap": {"body": BODY},
    "Shape": {"end": INT, "start": INT},
    "Shrink": {"bias": FLOAT, "lambd": FLOAT},
    "Slice": {"axes": INTS, "ends": INTS, "starts": INTS},
    "Split": {**AXIS, "num_outputs": INT, "split": INTS},
    "SplitToSequence": {**AXIS, "keepdims": INT},
    "Squeeze": {"axes": INTS}, "Unsqueeze": {"axes": INTS},
    "TopK": {**AXIS, "k": INT, "largest": INT, "sorted": INT},
    "Transpose": {"perm": INTS},
    "Trilu": {"upper": INT},
    "Unique": {**AXIS, "sorted": INT},
    "Upsample": {"mode": one_of("nearest", "linear", "cubic"), "scales": FLOATS},
}  # fmt: skip
NONE: Attributes = {}


def check_attributes(node: Node) -> None:
    """Raise InvalidArguments for an attribute that the operator has not, that is of another kind, or is missing."""
    if node.domain:
        return
    known = ATTRIBUTES.get(node.op, NONE)
    for name, value in node.attributes.items():
        if name not in known:
            way_out = did_you_mean(name, known) if known else "it has none"
            raise InvalidArguments(f"{node} has the attribute {shown(name)}, which {node.op} has not: {way_out}")
        check_version(node, name, known[name])
        check_kind(node, name, known[name], value)
    for name in needs_of(node.op):
        if name not in node.attributes:
            raise InvalidArguments(f"{node} lacks the attribute {name}, which must be {known[name].kind}")


@cache
def needs_of(op: str) -> tuple[str, ...]:
    """The attributes without a default."""
    return tuple(name for name, attribute in ATTRIBUTES.get(op, NONE).items() if attribute.needed)


def check_version(node: Node, name: str, attribute: Attribute) -> None:
    """Raise InvalidArguments for an attribute of other operator sets."""
    if node.opset > attribute.until:
        raise InvalidArguments(
            f"{node} has the attribute {name}, which is an input since {attribute.until + 1}, "
            f"and the operator set is {node.opset}"
        )
    if node.opset < attribute.since:
        raise InvalidArguments(
            f"{node} has the attribute {name}, which {node.op} has from operator set {attribute.since} on, "
            f"not in {node.opset}"
        )


def check_kind(node: Node, name: str, attribute: Attribute, value: Any) -> None:
    """Raise InvalidArguments for a value that is something else."""
    try:
        is_one = attribute.is_one(value)
    except Exception:  # whatever the caller's object does
        is_one = False
    if not is_one:
        near = resembling(value, attribute.words)
        raise InvalidArguments(f"{node} has {name}={shown(value)}, which must be {attribute.kind}{near}")
