"""Binary operations on tensors, element by element, with broadcasting; and the choice between two by a third."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.postops import BINARY, BinaryOp, Operand, PostOp, SelectOp
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

SELECT: Final = "select"


@dataclass(frozen=True, slots=True)
class BinaryForward:
    """dst = alg(src0, src1): add sub mul div, max min (src1 where either is NaN), fmod (C's, with the sign of src0) and
    mod (Python's, with that of src1), and 1 or 0 for ge gt le lt eq ne, and or xor (numbers are true but for 0).

    With alg select, dst = src0 where src2 is not 0, else src1.  Every dim of a source is dst's or 1.  Any formats; in
    place on a source of dst's descriptor.  Raises InvalidArguments.
    """

    alg: BinaryAlgorithm | Literal["select"]
    src0: MemoryDesc
    src1: MemoryDesc
    dst: MemoryDesc
    src2: MemoryDesc | None = None

    def __post_init__(self) -> None:
        check_alg("BinaryForward.alg", self.alg, (*BINARY, SELECT))
        if (self.alg == SELECT) != (self.src2 is not None):
            raise InvalidArguments(f"src2 is {shown(self.src2)}: it is the condition of select, and of nothing else")
        tensors = self.sources | {"dst": self.dst}
        for name, desc in tensors.items():
            if not isinstance(desc, MemoryDesc):
                raise InvalidArguments(f"{name} must be a MemoryDesc, not {shown(desc)}")
        dims = self.dst.dims
        for name, desc in self.sources.items():
            if len(desc.dims) != len(dims) or any(n not in (1, m) for n, m in zip(desc.dims, dims, strict=True)):
                raise InvalidArguments(f"{name} has dims {desc.dims}, each must be 1 or that of dst: {dims}")

    @property
    def sources(self) -> dict[str, MemoryDesc]:
        """By the names of the arguments."""
        two = {"src0": self.src0, "src1": self.src1}
        return two if self.src2 is None else two | {"src2": self.src2}

    def __str__(self) -> str:
        return f"binary {self.alg} of {', '.join(map(str, self.sources.values()))} to {self.dst}"


@implementation("binary", f32_level)
def plan(desc: BinaryForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a binary operation.  Raises Refused."""
    model = desc.src0 if desc.src0.dims == desc.dst.dims and not desc.src0.is_any else desc.src1
    dst = like(model, desc.dst)
    sources = {name: dense_like(dst, x) if x.is_any else x for name, x in desc.sources.items()}
    src0 = sources.pop("src0")

    def main(operands: Mapping[str, Operand]) -> PostOp:
        if desc.alg == SELECT:
            return SelectOp(operands["src1"], operands["src2"])
        return BinaryOp(desc.alg, operands["src1"])

    return schedule(Request("binary", ("src0", src0), ("dst", dst), sources, main), attr, engine)
