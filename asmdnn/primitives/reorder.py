"""Reorder: the same tensor in another format or another type."""

from dataclasses import dataclass

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attr import Attr
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.quantization import quantization_of, reorder_phases
from asmdnn.primitives.reorder_schedule import KERNEL_ISA
from asmdnn.runtime.plan import Plan


@dataclass(frozen=True, slots=True)
class Reorder:
    """dst = src, element by element, in dst's format and type; the zero padding of dst is written too.

    With attributes dst = saturate(round(src_scale / dst_scale * (src - src_zero_point) + sum * dst + dst_zero_point)),
    in f32 and in this order, rounded to nearest even.  What is above the largest integer of dst's type becomes that,
    +inf too; NaN and what is below the smallest become the smallest; the largest s32 is 2147483520, the last f32 below
    2^31.  bf16 and f16 overflow to infinity and keep NaN.  The same type without attributes is copied bit by bit.
    Source of the formula: oneDNN's reorder.  Raises InvalidArguments unless both have the same dims and a format.
    """

    src: MemoryDesc
    dst: MemoryDesc

    def __post_init__(self) -> None:
        for name, desc in (("src", self.src), ("dst", self.dst)):
            if not isinstance(desc, MemoryDesc):
                raise InvalidArguments(f"{name} must be a MemoryDesc, not {desc!r}")
            if desc.is_any:
                raise InvalidArguments(f"{name} has the format any, a reorder needs a real one")
        if self.src.dims != self.dst.dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {self.src.dims}: they must be equal")

    def __str__(self) -> str:
        return f"reorder of {self.src} to {self.dst}"


def plan(desc: Reorder, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan a reorder, or say why not."""
    name = f"reorder:{KERNEL_ISA}"
    if desc.dst.may_overlap:
        return Refusal(name, "elements of dst overlap")
    quantization = quantization_of(desc.src, desc.dst, attr)
    if isinstance(quantization, str):
        return Refusal(name, quantization)
    specs, phases = reorder_phases(desc.src, desc.dst, quantization)
    tensors = {"src": desc.src, "dst": desc.dst, **quantization.tensors}
    return Plan(name, specs, phases, tensors, {}, quantization.scratch_bytes, ("dst",))
