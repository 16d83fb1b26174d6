"""Convolution with few input channels, an odd number, of bf16, or of f16 with sums of f16: pairs of what lies along a
row of the kernel.

    src[.., x, c] of all x, c of a window's row, channels last, are one run of elements, and so are weights

A multiply takes two elements.  Two channels at a time leave half a pair of an odd number, at every position: 49 * 2
pairs of 7x7x3; along rows 21 elements are 11 pairs, 77 in all.  Tiles, taps and kernels are direct convolution's.
"""

from collections.abc import Iterator

from asmdnn.generators.dot.conv_shape import ARGUMENTS
from asmdnn.isa.dot import Types, half_products
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory.formats import format_of
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.direct import (
    channels_of_dst,
    laid_out,
    make_geometry,
    nothing,
    panel_widths,
    resolve_activations,
    scaled_dims,
)
from asmdnn.primitives.convolution.element_axis import TOGETHER, ElementAxis
from asmdnn.primitives.convolution.ends import ends_of
from asmdnn.primitives.convolution.geometry import ConvGeometry, image_layout
from asmdnn.primitives.convolution.multiplied import level_of, types_for
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.reordered import BETWEEN_REORDERS, plans_between_reorders
from asmdnn.primitives.convolution.schedule import schedule_tiles
from asmdnn.primitives.convolution.taps import TAP_CHANNELS
from asmdnn.primitives.convolution.tile_refusals import check_tensors
from asmdnn.primitives.convolution.tiling import choose_tiling
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace

NAME = "kernel_rows"


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of such a convolution, best first; nothing for others, or for tensors in blocks, which direct tiles
    read as they are."""
    is_open = not (desc.weights.inner_blocks or desc.src.inner_blocks)
    if isinstance(desc.weights, KernelRowsDesc) or (is_open and has_pairs(desc, attr, engine) and are_fewer(desc)):
        yield from plans_between_reorders(NAME, desc, attr, engine, planned, BETWEEN_REORDERS)


def are_fewer(desc: ConvolutionForward) -> bool:
    """Whether pairs along a row of the kernel are fewer than pairs of channels, of which there are few."""
    channels, width = desc.src.dims[1], desc.kernel[-1]
    few = desc.groups == 1 and channels < TAP_CHANNELS
    return few and -(-channels * width // TOGETHER) < -(-channels // TOGETHER) * width


def has_pairs(desc: ConvolutionForward, attr: Attr, engine: Engine) -> bool:
    """Whether two elements at a time are multiplied by an instruction, and are floats."""
    types = types_for(desc, attr, engine)
    return types == half_products(engine.isa) or types.run is not None


def check_rows(desc: ConvolutionForward, attr: Attr, engine: Engine) -> None:
    """Raises Refused unless what a pair takes may be that of two positions."""
    if not (has_pairs(desc, attr, engine) and are_fewer(desc)):
        channels = f"{desc.src.dims[1]} channels of {desc.src.dtype}"
        width = f"a kernel {desc.kernel[-1]} wide"
        raise Refused(f"pairs along rows are of bf16, or f16 with sums of f16, and no fewer of {channels} and {width}")
    if desc.dilations[-1]:
        raise Refused(f"positions of a row lie {desc.dilations[-1] + 1} apart, pairs along it are of neighbours")


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    check_rows(desc, attr, engine)
    types = types_for(desc, attr, engine)
    engine = level_of(types, engine)
    if types.run:
        attr = attr.changed(accumulation_mode="any")  # sums are of the type that was asked for
    desc = with_channels_last(desc)
    resolved = resolve_activations(desc, lanes_of(engine.isa))
    if 0 in desc.dst.dims:
        return nothing(resolved, attr, engine)
    g = geometry_of(resolved, types, engine)
    tiling = choose_tiling(g, engine.isa, panel_widths(resolved, g.types, engine.isa), engine.tuning)
    lanes = lanes_of(engine.isa)
    width = tiling.vectors * lanes
    weights = KernelRowsDesc(desc.weights.dims, desc.weights.dtype, width)
    check_weights(desc, weights)
    chain = chain_of(attr, resolved.tensors(), scaled_dims(desc), channels_of_dst(resolved), g.types.sums)
    ends = ends_of(chain, resolved.dst, ARGUMENTS, lanes, g.oc, width=width)
    tensors = {**resolved.tensors(), "weights": weights, **ends.arguments}
    plan = schedule_tiles(f"{NAME}:{engine.isa}", tensors, ends, g, tiling, engine)
    return ends.around(plan, engine)


def with_channels_last(desc: ConvolutionForward) -> ConvolutionForward:
    """With the elements of a row of src in a row, if its format is open."""
    src = desc.src
    return desc.with_formats({"src": laid_out(src.dims, src.dtype, "axb")}) if src.is_any else desc


def geometry_of(desc: ConvolutionForward, types: Types, engine: Engine) -> ConvGeometry:
    """With an axis of elements.  Raises Refused unless kernels can address the tensors, whose formats are resolved."""
    src, dst = image_layout(desc.src), image_layout(desc.dst)
    if src is None or dst is None:
        raise Refused("src and dst must be plain, or blocked once and by channels")
    check_tensors(desc, src, dst, types, engine)
    channels, size = desc.src.dims[1], types.src.size_bytes
    if src.pixel_bytes != channels * size or (channels > 1 and src.channel_bytes != size):
        raise Refused(f"src {format_of(desc.src)} has the elements of a row apart, pairs of them are multiplied")
    g = make_geometry(desc, src, dst)
    elements = replace(g.src, block=1, axis_bytes=(*g.src.axis_bytes[:-1], size))
    return replace(g, types=types, ic=1, axes=(*g.axes[:-1], axis_of(g.axes[-1], channels)), src=elements)


def axis_of(axis: Axis, channels: int) -> ElementAxis:
    """The axis of pixels with so many channels, in elements."""
    run = axis.k * channels
    return ElementAxis(
        i=axis.i * channels,
        o=axis.o,
        k=-(-run // TOGETHER),
        s=axis.s * channels,
        d=TOGETHER,
        p=axis.p * channels,
        run=run,
    )
