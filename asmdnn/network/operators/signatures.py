"""How many inputs and outputs ONNX's operators have, and which of them a node may leave out.

TABLE is made of the onnx package's schemas by tools/onnx_signatures.py, and tests compare the two; reading a model
needs no such package.  In front of > stand the inputs, after it the outputs: x has a name, o has a place and perhaps
no name, ? may be left out, * stands for any number more with names, ~ for any number with names or without.  `11:`
begins the signature since operator set 11.  Names after a comma are attributes that became inputs later; they may
stay attributes.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from typing import NamedTuple

from asmdnn.errors import InvalidArguments, counted
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.mapped import MAP

TABLE = """
>x | Constant SequenceEmpty
oox*>o~ 11:oo*>o~ | Loop
ox*>o~ 9:x*>o~ | Scan
x*>o~ | SequenceMap
x*>x | Concat Einsum Max Mean Min SequenceConstruct Sum
x,axes>x 13:xx>x | Unsqueeze
x,ends,starts>x 10:xxx??>x | Slice
x,k>xx 10:xx>xx | TopK
x,pads>x 11:xx?>x 18:xx??>x | Pad
x,scales>x 9:xx>x | Upsample
x>o~ | If
x>o~ 13:x?>o~ | Split
x>x | Abs Acos Acosh ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BitCast BitwiseNot Cast Ceil Celu
    ConcatFromSequence ConstantOfShape Cos Cosh DepthToSpace Det Elu Erf Exp EyeLike Flatten Floor Gelu
    GlobalAveragePool GlobalLpPool GlobalMaxPool HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LRN LeakyRelu Log
    LogSoftmax LpNormalization LpPool MeanVarianceNormalization Mish Neg NonZero Not Reciprocal Relu Round Selu
    SequenceLength Shape Shrink Sigmoid Sign Sin Sinh Size Softmax Softplus Softsign SpaceToDepth Sqrt Swish Tan Tanh
    ThresholdedRelu Transpose
x>x 11:x??>x | Clip
x>x 13:x?>x | ReduceSum Squeeze
x>x 18:x?>x | ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare
x>x 8:x>x? | MaxPool
x>x? 12:x??>x? | Dropout
x>x??? | Unique
x>xxx | DynamicQuantizeLinear
x?>x | SequenceErase SplitToSequence Trilu
xx>x | Add And BitShift BitwiseAnd BitwiseOr BitwiseXor CastLike CenterCropPad Compress CumProd CumSum Div Equal
    Expand Gather GatherElements GatherND Greater GreaterOrEqual Less LessOrEqual MatMul Mod Mul Or PRelu Pow
    RMSNormalization Reshape ReverseSequence SequenceAt Sub SwiGLU Tile Xor
xx>x 11:xxx?>x 13:x???>x | Resize
xx?>x | Conv ConvTranspose DequantizeLinear NegativeLogLikelihoodLoss QuantizeLinear SequenceInsert
xx?>x? | SoftmaxCrossEntropyLoss
xx?>x?? | LayerNormalization
xx??>x | ConvInteger MatMulInteger
xx???>x | NonMaxSuppression
xxx>x | GroupNormalization InstanceNormalization OneHot Range Scatter ScatterElements ScatterND Where
xxx>x 11:xx?>x | Gemm
xxx?>x | RotaryEmbedding
xxx???>?? | GRU RNN
xxx???>x??? 24:xxx????>x??? | Attention
xxx?????>??? | LSTM
xxxxx>x???? 14:xxxxx>x?? | BatchNormalization
"""
OF_MAP = "x*>x"  # the operator that ONNX has not


class Places(NamedTuple):
    """Inputs, or outputs: how many at least and at most, and which must have a name."""

    letters: str

    @property
    def least(self) -> int:
        return sum(letter in "xo" for letter in self.letters)

    @property
    def most(self) -> float:
        return inf if self.letters.endswith(("*", "~")) else len(self.letters)

    def counts(self, names: Sequence[str]) -> bool:
        """Whether there may be so many."""
        return self.least <= len(names) <= self.most

    def missing(self, names: Sequence[str]) -> int | None:
        """The first place that must have a name and has none."""
        letters = self.letters.ljust(len(names), "*")
        empty = (i for i, name in enumerate(names) if name == NOTHING and letters[i] in "x*")
        return next(empty, None)

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.least}" if self.least else "none"
        return f"{self.least} or more" if self.most == inf else f"{self.least} to {self.most}"


class NodeSignature(NamedTuple):
    """since: the first operator set that has it; attributes: needed, and inputs in later versions."""

    since: int
    inputs: Places
    outputs: Places
    attributes: tuple[str, ...]


@cache
def signatures() -> Mapping[str, tuple[NodeSignature, ...]]:
    """The versions of each operator, oldest first."""
    found: dict[str, tuple[NodeSignature, ...]] = {MAP: (signature_of(OF_MAP),)}
    versions = tuple[NodeSignature, ...]()
    for line in TABLE.strip("\n").splitlines():
        text, bar, ops = line.rpartition("|")
        versions = tuple(map(signature_of, text.split())) if bar else versions
        found |= dict.fromkeys(ops.split(), versions)
    return found


def signature_of(text: str) -> NodeSignature:
    """For example of "11:xx?>x"."""
    since, _, letters = text.rpartition(":")
    inputs, _, outputs = letters.partition(">")
    own, *attributes = inputs.split(",")
    return NodeSignature(int(since or 0), Places(own), Places(outputs), tuple(attributes))


def check_signature(node: Node) -> None:
    """Raise InvalidArguments for inputs or outputs that are too many or too few, or that lack a name.

    How many there are is a matter of the node's version, names are one of the last: before it was allowed, files left
    out what nobody reads.
    """
    versions = signatures().get(node.op)
    if node.domain or versions is None:
        return
    known = used_versions(node, versions)
    if not any(is_written_as(version, node) for version in known[:-1]):
        check_count(node, "input, and {} takes", known[-1].inputs, node.inputs)
    check_count(node, "output, and {} makes", known[-1].outputs, node.outputs)
    for what, places, names in (
        ("input", versions[-1].inputs, node.inputs),
        ("output", known[-1].outputs, node.outputs),
    ):
        missing = places.missing(names)
        if missing is not None:
            raise InvalidArguments(f"{node} has no name for its {what} {missing}, which {node.op} cannot do without")


def is_written_as(older: NodeSignature, node: Node) -> bool:
    """Whether a node has the attributes of a version in which they were no inputs yet."""
    return (
        bool(older.attributes)
        and all(name in node.attributes for name in older.attributes)
        and older.inputs.counts(node.inputs)
    )


def places_of_outputs(node: Node) -> Places | None:
    """What a node of this version makes; None for operators without a signature."""
    versions = signatures().get(node.op)
    return None if node.domain or versions is None else used_versions(node, versions)[-1].outputs


def used_versions(node: Node, versions: Sequence[NodeSignature]) -> Sequence[NodeSignature]:
    """Up to that of the node's operator set."""
    return [version for version in versions if version.since <= node.opset] or versions[:1]


def check_count(node: Node, words: str, places: Places, names: Sequence[str], way_out: str = "") -> None:
    if not places.counts(names):
        noun, takes = words.format(node.op).split(", ")
        found = f"{counted(len(names), noun)}, {takes} {places}"
        raise InvalidArguments(f"{node} has {found} in operator set {node.opset}{way_out}")
