"""Binary operations on tensors, element by element, with broadcasting of the second one."""

from dataclasses import dataclass

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.postops import BINARY, BinaryOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import dense_like, like
from asmdnn.primitives.implementation import implementation
from asmdnn.types import BinaryAlgorithm


@dataclass(frozen=True, slots=True)
class BinaryForward:
    """dst = alg(src0, src1): add sub mul div, max min (src1 where either is NaN), and 1 or 0 for ge gt le lt eq ne.

    Every dim of src0 and src1 is dst's or 1.  Any formats; in place on a source of dst's descriptor.
    Raises InvalidArguments.
    """

    alg: BinaryAlgorithm
    src0: MemoryDesc
    src1: MemoryDesc
    dst: MemoryDesc

    def __post_init__(self) -> None:
        check_alg("BinaryForward.alg", self.alg, BINARY)
        for name in ("src0", "src1", "dst"):
            desc = getattr(self, name)
            if not isinstance(desc, MemoryDesc):
                raise InvalidArguments(f"{name} must be a MemoryDesc, not {shown(desc)}")
        dims = self.dst.dims
        for name, desc in (("src0", self.src0), ("src1", self.src1)):
            if len(desc.dims) != len(dims) or any(n not in (1, m) for n, m in zip(desc.dims, dims, strict=True)):
                raise InvalidArguments(f"{name} has dims {desc.dims}, each must be 1 or that of dst: {dims}")

    def __str__(self) -> str:
        return f"binary {self.alg} of {self.src0}, {self.src1} to {self.dst}"


@implementation("binary", f32_level)
def plan(desc: BinaryForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a binary operation.  Raises Refused."""
    model = desc.src0 if desc.src0.dims == desc.dst.dims and not desc.src0.is_any else desc.src1
    dst = like(model, desc.dst)
    src0, src1 = (dense_like(dst, source) if source.is_any else source for source in (desc.src0, desc.src1))
    request = Request(
        "binary", ("src0", src0), ("dst", dst), {"src1": src1}, lambda operands: BinaryOp(desc.alg, operands["src1"])
    )
    return schedule(request, attr, engine)
