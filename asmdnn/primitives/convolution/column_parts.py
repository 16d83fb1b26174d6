"""Depthwise convolution of bytes to s32 by kernels longer than rows of bytes take, with a zero point of src.

It is the sum of convolutions by some columns of the kernel each, which start where the one before ended.  Sums of s32
wrap, so that is exact for any zero point.  Interleaved bytes become words less the zero point, which may not fit.
"""

from collections.abc import Iterator
from itertools import pairwise

from asmdnn.generators.dot.depthwise import LONGEST_KERNEL
from asmdnn.isa.dot import S8S8, U8S8
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.convolution import grouped
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import laid_out
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace
from asmdnn.types import f32, s32

NAME = "columns+depthwise"
COLUMNS = -1  # the axis


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Of such a convolution; nothing for others."""
    is_depthwise = desc.groups == desc.src.dims[1] == desc.dst.dims[1] > 1
    is_long = desc.kernel[COLUMNS] > LONGEST_KERNEL and "src" in dict(attr.zero_points)
    if is_depthwise and is_long and types_of(desc) in (U8S8, S8S8) and desc.dst.dtype == s32:
        try:
            yield planned(desc, attr, engine)
        except Refused as reason:
            yield Refusal(f"{NAME}:{f32_level(engine.isa)}", str(reason))


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """A phase, or some, for each part.  Raises Refused."""
    if attr.post_ops or {name for name, _ in (*attr.scales, *attr.zero_points)} != {"src"} or attr.scales:
        raise Refused("what follows sums of s32 would follow those of each part")
    if desc.bias is not None and desc.bias.dtype == f32:
        raise Refused("bias is f32, which is added to whole sums")
    last = {x: laid_out(d.dims, d.dtype, "axb") for x, d in desc.tensors().items() if d.is_any and x in ("src", "dst")}
    last |= {"weights": plain(desc.weights)}
    whole = desc.with_formats(last)
    assembly, passed = Assembly(engine.tuning, engine.isa), whole.tensors()
    sizes = kernel_parts(desc.kernel[COLUMNS])
    for number, (begin, end) in enumerate(sizes):
        part = part_of(whole if number == 0 else replace(whole, bias=None), begin, end)
        answers = grouped.plans(part, attr if number == 0 else attr.changed(post_ops=(Sum(),)), engine)
        made = next((answer for answer in answers if isinstance(answer, Plan)), None)
        if made is None:
            raise Refused(f"rows of bytes do not take columns {begin} to {end} of the kernel")
        assembly.add_plan(with_own_scratch(made, number), {})
        passed = {**{x: d for x, d in made.tensors.items() if x not in passed}, **passed}
    return assembly.plan(f"{NAME}:{f32_level(engine.isa)}", passed, ("dst",))


def with_own_scratch(plan: Plan, number: int) -> Plan:
    """The plan with scratch of other names than those of other parts."""
    names = {name: f"{name}, part {number}" for name in plan.scratch_bytes}
    return replace(
        plan,
        phases=tuple(phase.on({name: View(other) for name, other in names.items()}) for phase in plan.phases),
        scratch_bytes={names[name]: size for name, size in plan.scratch_bytes.items()},
        per_part=tuple(names[name] for name in plan.per_part),
    )


def plain(weights: MemoryDesc) -> MemoryDesc:
    """As they are passed, of which columns can be a part.  Raises Refused for packed ones."""
    if weights.is_any:
        return MemoryDesc(weights.dims, weights.dtype, "abcdefg"[: weights.ndims])
    if weights.inner_blocks or not weights.holds_elements:
        raise Refused("weights are packed, and parts have some columns of them")
    return weights


def kernel_parts(columns: int) -> list[tuple[int, int]]:
    """Nearly equal ones, which rows of bytes take."""
    count = -(-columns // LONGEST_KERNEL)
    ends = [columns * number // count for number in range(count + 1)]
    return list(pairwise(ends))


def part_of(desc: ConvolutionForward, begin: int, end: int) -> ConvolutionForward:
    """By some columns of the kernel, over the pixels of src that these reach.  Raises Refused if there are none."""
    step = desc.dilations[COLUMNS] + 1
    first = begin * step - desc.padding_l[COLUMNS]
    behind = first + (desc.dst.dims[COLUMNS] - 1) * desc.strides[COLUMNS] + (end - begin - 1) * step + 1
    start, stop = max(0, first), min(desc.src.dims[COLUMNS], behind)
    if start >= stop:
        raise Refused(f"columns {begin} to {end} of the kernel lie in the padding alone")
    return replace(
        desc,
        src=some_columns(desc.src, start, stop),
        weights=some_columns(desc.weights, begin, end),
        padding_l=(*desc.padding_l[:COLUMNS], start - first),
        padding_r=(*desc.padding_r[:COLUMNS], behind - stop),
    )


def some_columns(tensor: MemoryDesc, begin: int, end: int) -> MemoryDesc:
    """The last dim from one index to before another."""
    start = tensor.offset0 + begin * tensor.strides[COLUMNS]
    dims = (*tensor.dims[:COLUMNS], end - begin)
    return MemoryDesc(dims, tensor.dtype, strides=tensor.strides, inner_blocks=tensor.inner_blocks, offset0=start)
