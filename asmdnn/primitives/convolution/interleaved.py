"""Depthwise convolution whose lanes take several kernel positions at a time, from src that was interleaved in front.

Along one axis, pixels that kernel positions reach one after another come to lie side by side, 4 bytes of each
channel: four bytes, two words or two bf16.  What is left is a depthwise convolution of these groups
(interleaved_rows.py), with a quarter or half of the positions.  Pixels outside the image, which are some of a group,
are zeros; where all of a group are outside, nothing is read.

So bytes are exact at up to four times the rate of f32 with VPDPBUSD.  Words, which may have a sign or a zero point
taken away, go at up to twice that rate.  Large kernels soon pay what the phase takes; for small ones depthwise.py
brings several kernel rows into lanes by itself.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import Any

from asmdnn.generators.dot.grouped_shape import ARGUMENTS
from asmdnn.generators.dot.interleaved_rows import InterleavedRowsSpec
from asmdnn.isa.dot import GROUP_BYTES, S8S8, S16, U8S8, Types, dot_class, dot_level
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View, flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.steps import add_each, steps_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import channels_of_dst, laid_out, nothing, scaled_dims
from asmdnn.primitives.convolution.ends import ends_of
from asmdnn.primitives.convolution.grouped import make_geometry, reach_bytes
from asmdnn.primitives.convolution.grouped_kernels import spec_of, takes_rows
from asmdnn.primitives.convolution.grouped_schedule import LONGEST_KERNEL, RowKernels, schedule_rows
from asmdnn.primitives.convolution.interleaved_src import (
    INTERLEAVED,
    InterleavedSrc,
    add_interleaved,
    interleaved_src,
)
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.reordered import ways_around
from asmdnn.primitives.convolution.row_refusals import check_types, layout_of
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.records import replace
from asmdnn.types import f32, s32

BYTES = (U8S8, S8S8)
NAME = "interleave+depthwise"
IMAGES = ("src", "dst")
EVEN_SHARES = 4  # images of a thread, of which one more or less is no matter
AROUND = (("reorder", ("dst",)), ("pack", ("weights",)), ("pack+reorder", ("weights", "dst")))

# Kernel positions that meet a pixel of src, from which on a phase in front pays, by the type of sums.  Measured on a
# Zen 5, us, 64 channels at 56x56: 11x11 of u8 72 instead of 238 as f32, of s8 125 instead of 254; 1x31 at 2000 of bf16
# 27 instead of 36, but 1x15 18 instead of 17.
LEAST_POSITIONS = {s32: 16, f32: 24}
# The same where kernels bring rows into lanes: 9x9 of u8 64 instead of 91, of s8 88 instead of 110, but 7x7 65 instead
# of 54; 9x9 of bf16 90 instead of 102, but 5x5x5 126 instead of 101.
LEAST_BESIDE_ROWS = {s32: 81, f32: 150}
LEAST_AS_WORDS = 49  # where these bring them as words: 7x7 139 instead of 198, 5x5 at 14x14 72, not 47
LEAST_IN_A_ROW = 9  # of bytes in kernels of one row, which leave most of a lane empty: 1x9 at 2000 11, not 22
WEIGHTS_AXIS = 3  # the first spatial dim, after groups and their channels


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Of a depthwise convolution of what lanes may multiply together; nothing for others."""
    is_depthwise = desc.groups == desc.src.dims[1] == desc.dst.dims[1] > 1
    if not is_depthwise or (types_of(desc) not in BYTES and not pairs_of(desc, engine)):
        return
    try:
        check_positions(desc, engine)
        types = types_in_lanes(desc, attr, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))
        return
    inside = partial(planned, types=types)
    try:
        yield inside(desc, attr, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))
    yield from ways_around(NAME, desc, attr, engine, inside, AROUND)


def pairs_of(desc: ConvolutionForward, engine: Engine) -> Types | None:
    """The floats that the level multiplies in pairs, if src and weights are such."""
    return fast_pairs((desc.src.dtype, desc.weights.dtype), engine)


def types_in_lanes(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Types:
    """What lanes multiply.  Raises Refused for a zero point that may be too large."""
    types, has_zero_point = types_of(desc), "src" in dict(attr.zero_points)
    if types not in BYTES:
        return types
    if types == U8S8 and dot_class(types, engine.isa).is_native and not has_zero_point:
        return types
    if has_zero_point and desc.dst.dtype == s32:
        raise Refused("src has a zero point, which may be more than words hold where dst is s32")
    return S16


def check_positions(desc: ConvolutionForward, engine: Engine) -> None:
    """Raise Refused where the phase takes more than it saves: of long rows of bytes, others have such a phase, too."""
    types, (rows, columns), positions = types_of(desc), (1, *desc.kernel)[-2:], prod(desc.kernel)
    least, met = LEAST_POSITIONS[types.sums], positions_met(desc)
    if takes_rows(types, (rows, columns), dot_level(types, engine.isa)):
        least = LEAST_BESIDE_ROWS[types.sums] if dot_class(types, engine.isa).is_native else LEAST_AS_WORDS
        least = LEAST_IN_A_ROW if rows == 1 and types.sums == s32 else least
    elif types.sums == s32:
        met = positions
    if met < least:
        raise Refused(f"{met:.3g} of {positions} positions meet a pixel of src, to interleave it pays from {least} on")


def positions_met(desc: ConvolutionForward) -> float:
    """Of the kernel, by a pixel of src in the mean: fewer of windows that are strided, or inside."""
    of_dst, of_src = (prod(tensor.dims[2:]) for tensor in (desc.dst, desc.src))
    return prod(desc.kernel) * min(1.0, of_dst / max(of_src, 1))


def axis_in_groups(kernel: tuple[int, ...], group: int) -> int:
    """The axis along which groups of positions lack the fewest: rather the one down than the innermost one."""
    axes = range(max(0, len(kernel) - 2), len(kernel))  # kernels know which row or column of groups is cut
    return min(axes, key=lambda axis: (-(-kernel[axis] // group) / kernel[axis], axis))


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine, types: Types) -> Plan:
    """Plan `desc` for a dst as it is.  Raises Refused."""
    engine = at_level(engine, dot_level(types, engine.isa))
    number = axis_in_groups(desc.kernel, types.group)
    weights = weights_desc(desc.weights, number, types.group, lanes_of(engine.isa))
    check_weights(desc, weights)
    wanted = {"src": "axb", "bias": "a", "dst": "axb"}
    formats = {n: laid_out(d.dims, d.dtype, wanted[n]) for n, d in desc.tensors().items() if d.is_any and n in wanted}
    resolved = desc.with_formats({**formats, "weights": weights})
    if 0 in resolved.dst.dims or 0 in resolved.src.dims:
        return nothing(resolved, attr, engine)
    assembly = Assembly(engine.tuning, engine.isa)
    if comes_by_images(resolved, attr, engine):
        one = Assembly(engine.tuning, engine.isa)
        tensors = add_groups(one, image_of(resolved), number, types, attr, engine)
        tensors |= {name: tensor for name, tensor in resolved.tensors().items() if name in IMAGES}
        moves = {name: (resolved.tensors()[name].strides_bytes[0],) for name in IMAGES}
        add_each(assembly, steps_of(one.plan(NAME, {}, ()), {}), moves, (resolved.src.dims[0],), one.scratch)
        assembly.phases, assembly.constants = list(flushing(assembly.phases)), one.constants
    else:
        tensors = add_groups(assembly, resolved, number, types, attr, engine)
    return assembly.plan(f"{NAME}:{engine.isa}", tensors, ("dst",))


def add_groups(
    assembly: Assembly, desc: ConvolutionForward, number: int, types: Types, attr: Attr, engine: Engine
) -> dict[str, MemoryDesc]:
    """The phases that interleave src along an axis and convolve it; the tensors of a plan.  Raises Refused."""
    src = interleaved_src(desc, number, types)
    inner = of_groups(desc, src, types, attr, engine)
    arguments = add_interleaved(assembly, desc.src, src, attr, engine)
    assembly.add_plan(inner, {"src": View(INTERLEAVED)})
    return {**inner.tensors, "src": desc.src, **arguments}


def comes_by_images(desc: ConvolutionForward, attr: Attr, engine: Engine) -> bool:
    """Whether a thread does all for an image before the next one: where threads are not more than images, groups of all
    would leave L2, and nothing else has images."""
    images, group_bytes = desc.src.dims[0], GROUP_BYTES * desc.src.nelems()
    shared = images >= EVEN_SHARES * engine.threads or images % engine.threads == 0
    reads_images = bool(attr.rounding_mode) or any(tensor.dims[0] > 1 for tensor in attr.tensors().values())
    reads_images |= any(mask & 1 for name, mask in (*attr.zero_points, *attr.scales) if name == "dst")
    return images > 1 and shared and not reads_images and group_bytes > engine.l2_bytes


def image_of(desc: ConvolutionForward) -> ConvolutionForward:
    """The convolution of the first image."""
    return replace(desc, src=first_image(desc.src), dst=first_image(desc.dst))


def first_image(x: MemoryDesc) -> MemoryDesc:
    dims = (1, *x.dims[1:])
    return MemoryDesc(dims, x.dtype, strides=x.strides, inner_blocks=x.inner_blocks, offset0=x.offset0)


def weights_desc(weights: MemoryDesc, axis: int, group: int, lanes: int) -> MemoryDesc:
    """Vectors of output channels, each with a group of kernel positions along an axis."""
    along = LETTERS[WEIGHTS_AXIS + axis]
    letters = LETTERS[: weights.ndims].replace("a", "A").replace(along, along.upper())
    return laid_out(weights.dims, weights.dtype, f"{letters}{lanes}a{group}{along}")


def of_groups(desc: ConvolutionForward, src: InterleavedSrc, types: Types, attr: Attr, engine: Engine) -> Plan:
    """The convolution of groups, whose src is in scratch.  Raises Refused."""
    lanes, channels = lanes_of(engine.isa), desc.dst.dims[1]
    check_types(desc)
    g = make_geometry(desc, layout_of("src", src.groups, lanes), layout_of("dst", desc.dst, lanes))
    axes = list(g.axes)
    axes[len(axes) - len(desc.kernel) + src.number] = src.along.of_groups
    g = replace(g, axes=tuple(axes))
    if axes[-1].k > LONGEST_KERNEL:
        raise Refused(f"the kernel is {axes[-1].k} wide in groups, at most {LONGEST_KERNEL} are implemented")
    if reach_bytes(g) > MAX_OFFSET:
        raise Refused("pixels lie too far apart for a kernel that walks over rows")
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc), types.sums, types.sums == s32)
    vectors = max(1, channels // lanes) if not desc.dst.inner_blocks else 1  # side by side
    ends = ends_of(chain, desc.dst, ARGUMENTS, lanes, channels, width=lanes * vectors)
    tensors = {**desc.tensors(), "src": src.groups, **ends.arguments}
    spec = spec_of(partial(rows_of, types, cut_of(desc.kernel, src, types)), g, tensors, types.group, engine.isa)
    kernels = RowKernels(spec, vectors, tuple(range(0, channels, lanes)))
    phases, constants = schedule_rows(tensors, [(g, kernels)], ends, engine)
    return ends.around(Plan(NAME, flushing(phases), tensors, constants, {}, ("dst",)), engine)


def cut_of(kernel: tuple[int, ...], src: InterleavedSrc, types: Types) -> dict[str, Any]:
    """What kernels know of groups that are beyond a kernel in part: those of floats, which may be infinite there."""
    groups = src.along.groups
    if types.sums != f32 or groups * types.group == src.along.axis.k:
        return {}
    return {"cut_column": True} if src.number == len(kernel) - 1 else {"cut_row": groups - 1}


def rows_of(types: Types, cut: Mapping[str, Any], **fields: Any) -> InterleavedRowsSpec:
    """Of elements in groups of 4 bytes."""
    return InterleavedRowsSpec(**{**fields, **cut, "src_type": types.src})
