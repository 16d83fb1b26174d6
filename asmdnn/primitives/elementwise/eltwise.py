"""Element-wise functions: dst = f(src), and diff_src = diff_dst f'(src)."""

from asmdnn.errors import InvalidArguments, shown
from asmdnn.exact import exact
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.generators.functions.eltwise.gradients import GRADIENTS
from asmdnn.generators.functions.postops import EltwiseOp, GradientOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.numbers import (
    FORWARD,
    OLDER_ALGORITHMS,
    check_alg,
    check_eltwise,
    check_flag,
    check_prop_kind,
)
from asmdnn.primitives.core.backward import BackwardDesc, fields_of
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.shapes.formats import like
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import EltwiseAlgorithm, EltwiseBackwardAlgorithm, FormatTag, PropKind

NAME = "eltwise"
USE_DST = "_use_dst_for_bwd"
FORWARD_ALGS = tuple(ALGORITHMS)
BACKWARD_ALGS = (
    *(alg for alg, gradients in GRADIENTS.items() if gradients.of_src),
    *(alg + USE_DST for alg, gradients in GRADIENTS.items() if gradients.of_dst),
)


def check_tensors(tensors: dict[str, MemoryDesc]) -> None:
    """Descriptors of one shape.  Raises InvalidArguments."""
    first = next(iter(tensors))
    for name, desc in tensors.items():
        check_tensor(name, desc)
        if desc.dims != tensors[first].dims:
            raise InvalidArguments(f"{name} has dims {desc.dims}, {first} has {tensors[first].dims}: make them equal")


@exact
@dataclass(frozen=True, slots=True, eq=False)
class EltwiseForward:
    """dst = f(src), f being algorithm `alg` with alpha and beta (docs/eltwise.md).

    Same dims in any formats, `any` too; in place if src and dst have one format.  Raises InvalidArguments.
    """

    prop_kind: PropKind
    alg: EltwiseAlgorithm
    src: MemoryDesc
    dst: MemoryDesc
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        alg, alpha, beta = check_eltwise(type(self).__name__, self.alg, self.alpha, self.beta)
        object.__setattr__(self, "alg", alg)
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)
        check_tensors({"src": self.src, "dst": self.dst})

    def __str__(self) -> str:
        return f"eltwise {self.alg} alpha {self.alpha:g} beta {self.beta:g} of {self.src} to {self.dst}"


@exact
@dataclass(frozen=True, slots=True, eq=False)
class EltwiseBackward(BackwardDesc):
    """diff_src = diff_dst f'(data): data is f's source, or for an `alg` that ends in _use_dst_for_bwd its result.

    The arguments are diff_dst, diff_src, and src or dst.  Same dims, any formats.  Raises InvalidArguments.
    """

    FORWARD = EltwiseForward

    alg: EltwiseBackwardAlgorithm
    data: MemoryDesc
    diff_dst: MemoryDesc
    diff_src: MemoryDesc
    alpha: float = 0.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_alg(f"{owner}.alg", self.alg, (*BACKWARD_ALGS, *OLDER_ALGORITHMS))
        function, alpha, beta = check_eltwise(owner, self.function, self.alpha, self.beta)
        object.__setattr__(self, "alg", function + USE_DST * self.uses_dst)
        if self.uses_dst and self.function in ("relu", "elu") and alpha < 0:
            raise InvalidArguments(f"EltwiseBackward.alpha must not be negative for {self.alg}, not {shown(alpha)}")
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)
        check_tensors({"data": self.data, "diff_dst": self.diff_dst, "diff_src": self.diff_src})

    @classmethod
    def of(  # type: ignore[override]  # no tensor is called use_dst
        cls, forward: PrimitiveDesc, use_dst: bool = False, **formats: FormatTag | None
    ) -> "EltwiseBackward":
        """As BackwardDesc.of; use_dst: of the result, not of the source.  Raises InvalidArguments."""
        check_flag("use_dst", use_dst)
        found = fields_of(cls, forward, formats, {"data": "dst" if use_dst else "src"})
        return cls(**found | {"alg": found["alg"] + USE_DST * use_dst})

    @property
    def uses_dst(self) -> bool:
        return self.alg.endswith(USE_DST)

    @property
    def function(self) -> str:
        """The forward algorithm."""
        return self.alg.removesuffix(USE_DST)

    def __str__(self) -> str:
        tensors = f"{self.data}, {self.diff_dst} to {self.diff_src}"
        return f"eltwise backward {self.alg} alpha {self.alpha:g} beta {self.beta:g} of {tensors}"


@implementation(NAME, f32_level)
def plan_forward(desc: EltwiseForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a forward pass.  Raises Refused."""
    src = like(desc.dst, desc.src)
    dst = like(src, desc.dst)
    op = EltwiseOp(desc.alg, desc.alpha, desc.beta, 1.0)
    return schedule(Request(NAME, ("src", src), ("dst", dst), {}, lambda _: op), attr, engine)


@implementation(NAME, f32_level)
def plan_backward(desc: EltwiseBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward pass.  Raises Refused."""
    if attr.post_ops:
        raise Refused("a backward pass has no post-ops")
    data = like(desc.diff_dst, desc.data)
    diff_dst, diff_src = like(data, desc.diff_dst), like(data, desc.diff_src)
    name = "dst" if desc.uses_dst else "src"

    request = Request(
        NAME,
        ("diff_dst", diff_dst),
        ("diff_src", diff_src),
        {name: data},
        lambda operands: GradientOp(desc.function, desc.alpha, desc.beta, desc.uses_dst, operands[name]),
    )
    return schedule(request, attr, engine)
