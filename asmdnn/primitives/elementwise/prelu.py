"""PReLU: dst = src where it is positive, else weights * src."""

from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions.postops import PReluOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.numbers import FORWARD, check_prop_kind
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.shapes.formats import dense_like, like
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.records import dataclass
from asmdnn.types import PropKind


@dataclass(frozen=True, slots=True)
class PReLUForward:
    """dst = src where src > 0, else weights * src.

    Every dim of weights is src's or 1: one weight a channel, one for all, or any other broadcast.  Any formats, `any`
    too; in place if src and dst have one format.  NaN stays.  Source: He et al. 2015; oneDNN's prelu.
    Raises InvalidArguments.
    """

    prop_kind: PropKind
    src: MemoryDesc
    weights: MemoryDesc
    dst: MemoryDesc

    def __post_init__(self) -> None:
        check_prop_kind(self.prop_kind, FORWARD)
        check_descs(self, "src", "weights", "dst")
        dims = self.src.dims
        if self.dst.dims != dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {dims}: make them equal")
        fits = [n in (1, m) for n, m in zip(self.weights.dims, dims, strict=False)]
        if self.weights.ndims != len(dims) or not all(fits):
            raise InvalidArguments(f"weights has dims {self.weights.dims}, each must be 1 or that of src: {dims}")

    def __str__(self) -> str:
        return f"prelu of {self.src}, weights {self.weights} to {self.dst}"


@implementation("prelu", f32_level)
def plan(desc: PReLUForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a PReLU.  Raises Refused."""
    src = like(desc.dst, desc.src)
    dst = like(src, desc.dst)
    weights = dense_like(dst, desc.weights) if desc.weights.is_any else desc.weights
    request = Request(
        "prelu", ("src", src), ("dst", dst), {"weights": weights}, lambda operands: PReluOp(operands["weights"])
    )
    return schedule(request, attr, engine)
