"""Binary operations on tensors, element by element, with broadcasting; and the choice between two by a third."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import BINARY, BinaryOp, ExpressionOp, IntegerOp, Operand, PostOp, SelectOp
from asmdnn.generators.functions.program import Program
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.attributes.chain import in_vectors, scales_of_sources
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.shapes.formats import dense_like, like
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass, replace
from asmdnn.types import BinaryAlgorithm

SELECT: Final = "select"


@dataclass(frozen=True, slots=True)
class BinaryForward:
    """dst = alg(src0, src1): add sub mul div, max min (src1 where either is NaN), fmod (C's, with the sign of src0) and
    mod (Python's, with that of src1), and 1 or 0 for ge gt le lt eq ne, and or xor (numbers are true but for 0).

    With alg select, dst = src0 where src2 is not 0, else src1.  Every dim of a source is dst's or 1.  Any formats; in
    place on a source of dst's descriptor.  Sources are multiplied by their scales first, if attributes say so, but for
    those of select.  Raises InvalidArguments.
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
            check_tensor(name, desc)
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
    scales = scales_of_sources(attr, sources)
    if scales and desc.alg == SELECT:
        raise Refused("scales are implemented for operations on two tensors, not for select")
    src0 = sources.pop("src0")
    others = sources | {f"{name}_scales": tensor for name, tensor in scales.items()}

    def main(operands: Mapping[str, Operand]) -> PostOp:
        if scales:
            return ExpressionOp(scaled(desc.alg, tuple(scales)), tuple(operands[name] for name in others))
        if desc.alg == SELECT:
            return SelectOp(operands["src1"], operands["src2"])
        return BinaryOp(desc.alg, operands["src1"])

    unscaled = replace(attr, scales={}, zero_points={})  # type: ignore[arg-type]  # as __init__
    found = schedule(Request("binary", ("src0", src0), ("dst", dst), others, main), unscaled, engine)
    vectors = in_vectors(scales)
    in_place = tuple(pair for pair in found.in_place if pair[0] not in vectors)
    return replace(found, tensors={**found.tensors, **vectors}, in_place=in_place) if scales else found


def integers_less(src: MemoryDesc, points: MemoryDesc, dst: MemoryDesc, engine: Engine) -> Plan:
    """src0 - src1, of integers modulo 2^32: bytes, and s32 that broadcast to them, to a dst of s32.  Raises Refused."""

    def main(operands: Mapping[str, Operand]) -> PostOp:
        return IntegerOp("sub", operands["src1"])

    return schedule(Request("binary", ("src0", src), ("dst", dst), {"src1": points}, main), NO_ATTR, engine)


@lru_cache
def scaled(alg: str, of: tuple[str, ...]) -> Program:
    """alg(src0, src1), each multiplied by its scale if it is one of these; the scales come after src1."""
    build = Builder(2 + len(of))
    factors = dict(zip(of, build.inputs[2:], strict=True))
    x, y = (
        value * factors[name] if name in factors else value
        for name, value in zip(("src0", "src1"), build.inputs[:2], strict=True)
    )
    return build.finish(BINARY[alg](build, x, y))
