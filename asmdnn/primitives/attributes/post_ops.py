"""Post-ops: what a primitive does with each element of its result before it is stored."""

from collections.abc import Sequence

from asmdnn.errors import InvalidArguments, counted, did_you_mean, shown
from asmdnn.exact import exact
from asmdnn.generators.functions import postops
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.generators.functions.postops import EltwiseOp, OffsetSumOp, Operand, PReluOp, ReluOp, SumOp
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.attributes.numbers import OLDER_ALGORITHMS, check_alg, check_eltwise, finite, tensor
from asmdnn.primitives.attributes.user_post_op import PostOp, traced_before
from asmdnn.records import dataclass, replace
from asmdnn.types import DATA_TYPES, BinaryAlgorithm, EltwiseAlgorithm

MAX_POST_OPS = postops.MAX_POST_OPS


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """dst = op + scale * (dst - zero_point), dst being what the destination held before the call."""

    scale: float = 1.0
    zero_point: float = 0.0
    kind = "sum"

    def __post_init__(self) -> None:
        for name in ("scale", "zero_point"):
            object.__setattr__(self, name, finite(f"Sum.{name}", getattr(self, name)))

    @property
    def tensors(self) -> dict[str, MemoryDesc]:
        return {}

    def on_registers(self) -> postops.PostOp:
        return OffsetSumOp(self.scale, self.zero_point) if self.zero_point else SumOp(self.scale)


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Eltwise:
    """dst = scale * f(op), f one of oneDNN's algorithms; docs/eltwise.md lists them, with alpha, beta and errors."""

    alg: EltwiseAlgorithm
    alpha: float = 0.0
    beta: float = 0.0
    scale: float = 1.0
    kind = "eltwise"

    def __post_init__(self) -> None:
        alg, alpha, beta = check_eltwise("Eltwise", self.alg, self.alpha, self.beta)
        object.__setattr__(self, "alg", alg)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "scale", finite("Eltwise.scale", self.scale))

    @property
    def tensors(self) -> dict[str, MemoryDesc]:
        return {}

    def on_registers(self) -> postops.PostOp:
        if self.alg == "relu" and self.scale == 1.0:
            return ReluOp(self.alpha)
        return EltwiseOp(self.alg, self.alpha, self.beta, self.scale)


@dataclass(frozen=True, slots=True)
class Binary:
    """dst = alg(op, src1): add sub mul div, max min (src1 where either is NaN), and 1 or 0 for ge gt le lt eq ne.

    Every dim of src1 is dst's or 1.  Matmul takes src1 of any type, others of f32.  As the chain's
    number i it is the argument "binary_i" of the primitive.
    """

    alg: BinaryAlgorithm
    src1: MemoryDesc
    kind = "binary"

    def __post_init__(self) -> None:
        check_alg("Binary.alg", self.alg, postops.BINARY)
        tensor("Binary.src1", self.src1, DATA_TYPES.values())

    @property
    def tensors(self) -> dict[str, MemoryDesc]:
        return {"binary": self.src1}

    def on_registers(self, operand: Operand) -> postops.PostOp:
        return postops.BinaryOp(self.alg, operand)


@dataclass(frozen=True, slots=True)
class PReLU:
    """dst = op if op > 0, else weights * op; every dim of weights is dst's or 1.  The argument is "prelu_i"."""

    weights: MemoryDesc
    kind = "prelu"

    def __post_init__(self) -> None:
        tensor("PReLU.weights", self.weights)

    @property
    def tensors(self) -> dict[str, MemoryDesc]:
        return {"prelu": self.weights}

    def on_registers(self, operand: Operand) -> postops.PostOp:
        return PReluOp(operand)


ElementwisePostOp = Sum | Eltwise | Binary | PReLU | PostOp
AnyPostOp = ElementwisePostOp | Depthwise


def with_tensors(op: AnyPostOp, tensors: Sequence[MemoryDesc]) -> AnyPostOp:
    """The same of other tensors, in the order of `op.tensors`; a function's come without data.  Depthwise has none."""
    if isinstance(op, PostOp) and tensors:
        return traced_before(op.program, op.function, dict(zip(op.names, tensors, strict=True)))
    if isinstance(op, Binary):
        return replace(op, src1=tensors[0])
    return replace(op, weights=tensors[0]) if isinstance(op, PReLU) else op


def check_chain(chain: tuple[object, ...]) -> None:
    """Raise InvalidArguments for what is no post-op, or too many."""
    for i, op in enumerate(chain):
        if not isinstance(op, AnyPostOp):
            names = "a Sum, Eltwise, Binary, PReLU, Depthwise or PostOp"
            raise InvalidArguments(f"post_ops[{i}] must be {names}, not {shown(op)}")
    if len(chain) > MAX_POST_OPS:
        raise InvalidArguments(f"post_ops has {counted(len(chain), 'entry')}, at most {MAX_POST_OPS} can be chained")


def named_post_op(word: str) -> Sum | Eltwise:
    """A post-op without parameters by its word: "sum", or an element-wise function's name."""
    if word == "sum":
        return Sum()
    if word not in ALGORITHMS and word not in OLDER_ALGORITHMS:
        near = did_you_mean(word, ("sum", *ALGORITHMS))
        raise InvalidArguments(f"post_ops has the word {shown(word)}, which is no element-wise function: {near}")
    return Eltwise(word)  # type: ignore[arg-type]
