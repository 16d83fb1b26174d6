"""Scales, zero points and sum of a reorder: from attributes to a conversion, its arguments, and the phase before it."""

from functools import reduce
from math import prod
from operator import or_

from asmdnn.generators.functions import quotient
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert_block import ARGUMENTS
from asmdnn.isa.vectors import NARROWEST
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.phase import views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.reorder.schedule import ScaledConversion, reorder_phases
from asmdnn.primitives.reorder.style import MoveStyle
from asmdnn.records import dataclass, field, replace
from asmdnn.types import F32_BYTES, f32, s32

SCALES = "scales"  # of src, divided by those of dst
MOST_SCALES = 1 << 28  # offsets of scales, and of factors after them, are 32 bits in code


@dataclass(frozen=True, slots=True)
class Quantization:
    """A conversion and where its numbers come from.

    tensors: the run-time arguments by name.  scale_strides: of every dim in the scales, in elements.  quotient: what
    divides the scales of src, and the factor of a sum, by the scales of dst before anything else.
    """

    conversion: Conversion
    tensors: dict[str, MemoryDesc] = field(default_factory=dict)
    scale_strides: tuple[int, ...] | None = None
    quotient: QuotientSpec | None = None


def quantization_of(src: MemoryDesc, dst: MemoryDesc, attr: Attr) -> Quantization:
    """What a reorder with these attributes computes.  Raises Refused if there is no such thing."""
    scales, zero_points = dict(attr.scales), dict(attr.zero_points)
    check_attributes(src, attr, scales, zero_points)
    shared = reduce(or_, scales.values(), 0)
    sizes = {name: count_of(src.dims, mask) for name, mask in scales.items()}
    tensors = {f"{name}_scales": MemoryDesc((size,), f32, "a") for name, size in sizes.items()}
    tensors |= {f"{name}_zero_points": MemoryDesc((1,), s32, "a") for name in zero_points}
    total = attr.post_ops[0].scale if attr.post_ops and isinstance(attr.post_ops[0], Sum) else 0.0
    conversion = Conversion(
        src.dtype.name,
        dst.dtype.name,
        scaled=bool(scales),
        src_zero_point="src" in zero_points,
        dst_zero_point="dst" in zero_points,
        sum=total,
    )
    divide = None
    count = count_of(src.dims, shared)
    if "dst" in scales and count:
        steps = {name: F32_BYTES if mask else 0 for name, mask in scales.items()}
        divide = QuotientSpec(
            isa=NARROWEST, count=count, src_step_bytes=steps.get("src"), dst_step_bytes=steps["dst"], sum=total
        )
        if total:
            conversion = replace(conversion, sum=1.0, sum_factors=count * F32_BYTES)
    return Quantization(conversion, tensors, strides_of(src.dims, shared) if scales else None, divide)


def check_attributes(src: MemoryDesc, attr: Attr, scales: dict[str, int], zero_points: dict[str, int]) -> None:
    """Raise Refused unless a reorder takes these attributes."""
    if len(attr.post_ops) > 1 or not all(isinstance(op, Sum) and not op.zero_point for op in attr.post_ops):
        raise Refused("post-ops of a reorder can be a single Sum without a zero point")
    for name in {*scales, *zero_points} - {"src", "dst"}:
        raise Refused(f"a reorder has no {name} to scale or shift")
    for name, mask in scales.items():
        if mask >> src.ndims:
            raise Refused(f"scales of {name} have the mask {mask}, which is for more than {src.ndims} dims")
    if any(count_of(src.dims, mask) > MOST_SCALES for mask in scales.values()):
        raise Refused(f"a reorder takes at most {MOST_SCALES} scales")
    if len({mask for mask in scales.values() if mask}) > 1:
        raise Refused(
            f"scales of src and dst have the masks {scales['src']} and {scales['dst']}: they must agree, or be 0"
        )
    if any(zero_points.values()):
        raise Refused("zero points can only be common, with the mask 0")


def count_of(dims: tuple[int, ...], mask: int) -> int:
    return prod(size for dim, size in enumerate(dims) if mask >> dim & 1)


def strides_of(dims: tuple[int, ...], mask: int) -> tuple[int, ...]:
    """Of every dim in row-major order of those in the mask, 0 for the others."""
    return tuple(count_of(dims[dim + 1 :], mask >> dim + 1) if mask >> dim & 1 else 0 for dim in range(len(dims)))


def add_quantized(assembly: Assembly, src: MemoryDesc, dst: MemoryDesc, quantization: Quantization) -> None:
    """All phases of a reorder."""
    tuning, divide = assembly.tuning, quantization.quotient
    if divide is not None:
        assembly.room(SCALES, divide.result_bytes)
        used = [name if name == SCALES or name in quantization.tensors else "" for name in quotient.ARGUMENTS]
        once = Call(divide, (0,) * len(used), (), divide.count * tuning.moves.division_cycles)
        assembly.add(phases_of([once], views(used), tuning.phases))
    streams = src.size_bytes + dst.size_bytes >= tuning.moves.streaming_bytes
    numbers = ScaledConversion(quantization.conversion, quantization.scale_strides)
    assembly.add(
        reorder_phases(src, dst, buffers_of(quantization), tuning, numbers, MoveStyle(streams), isa=assembly.isa)
    )


def buffers_of(quantization: Quantization) -> tuple[str, ...]:
    """The buffer after every argument of the kernels; just src and dst if that is all they use."""
    conversion = quantization.conversion
    used = (
        SCALES if quantization.quotient else "src_scales" if "src_scales" in quantization.tensors else "",
        "src_zero_points" if conversion.src_zero_point else "",
        "dst_zero_points" if conversion.dst_zero_point else "",
    )
    buffers = ("src", "dst", *used) if any(used) else ("src", "dst")
    assert len(buffers) in (2, len(ARGUMENTS))
    return buffers
