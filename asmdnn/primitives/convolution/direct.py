"""Direct convolution, forward: tiles of the output, each a sum over taps, from and to the user's own layout."""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from asmdnn.generators.dot.conv_shape import ARGUMENTS, blocks_of
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import Types, f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, Desc, channels_of_group
from asmdnn.primitives.convolution.ends import ends_of
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout, image_layout
from asmdnn.primitives.convolution.joining import joined, turns_of
from asmdnn.primitives.convolution.level import Fit, fastest
from asmdnn.primitives.convolution.multiplied import level_of, types_for, types_of
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.schedule import schedule_tiles
from asmdnn.primitives.convolution.starts import Starts, starts_of, zero_points_of
from asmdnn.primitives.convolution.sums_of_bytes import are_long_rows
from asmdnn.primitives.convolution.taps import TAP_CHANNELS, weights_rows
from asmdnn.primitives.convolution.tile_refusals import check_cut_steps, check_groups, check_steps, check_tensors
from asmdnn.primitives.convolution.tiling import choose_tiling
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.records import replace
from asmdnn.types import DataType, s32

NAME = "direct"
MOST_FORMATS = 1024
Parts = Callable[[Desc, ImageLayout, ImageLayout], list[ConvGeometry]]  # as planned_parts has them
SCALED = {"src": {0: 0}, "weights": {0: 1}}  # the dims that dst has too: images and output channels
SCALED_GROUPS = {"src": {0: 0}, "weights": {0: 1, 1: 1}}  # and, with weights of one group, the group


@implementation(NAME, f32_dot_level)
def plan(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc`.  Raises Refused."""
    check_rows_of_bytes(desc, attr)
    return planned_parts(desc, attr, engine, one_part, has_sums=True)


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """The same, for planners that use it as a part."""
    check_rows_of_bytes(desc, attr)
    return planned_parts(desc, attr, engine, one_part)


def check_rows_of_bytes(desc: ConvolutionForward, attr: Attr) -> None:
    """Raise Refused where tiles would have one channel."""
    if are_long_rows(desc, attr):
        raise Refused("the kernel of a channel of bytes is too long for rows, and floats hold its sums")


def one_part(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout) -> list[ConvGeometry]:
    """A whole convolution as its only part."""
    return [make_geometry(desc, src, dst).flattened()]


def planned_parts(
    desc: Desc,
    attr: Attr,
    engine: Engine,
    parts: Parts[Desc],
    weights_of_images: bool = False,
    has_sums: bool = False,
    level: Callable[[Types, Engine], Engine] = level_of,
) -> Plan:
    """The plan of a convolution or a deconvolution whose dst is made of parts.  Raises Refused.

    parts: of a description and the layouts of src and dst, the parts, largest first: each is a convolution that reads
    some of the kernel's positions and writes some of dst's pixels.  A convolution is its only part.
    weights_of_images: every image has weights of its own, of the format in the plan's tensors, one after the other.
    has_sums: weights that are `any` get their sums after them, where starts are made of these.
    level: makes the engine that multiplies the types, or raises Refused for types that it does not offer.
    """
    types = types_for(desc, attr, engine)
    engine = level(types, engine)
    if types.run:
        attr = attr.changed(accumulation_mode="any")  # sums are of the type that was asked for
    if 0 in desc.dst.dims:
        return nothing(resolve_activations(desc, lanes_of(engine.isa)), attr, engine)
    fit = fastest(desc, engine, lambda desc, engine: fit_of(desc, engine, parts, types))
    resolved, engine, width = fit.desc, fit.engine, fit.width
    name, lanes = f"{NAME}:{engine.isa}", lanes_of(engine.isa)
    bias, sums = channels_of_dst(resolved), types.sums
    chain = chain_of(attr, resolved.tensors(), scaled_dims(desc), bias, sums, sums == s32)
    starts, weights = starts_of_weights(fit, desc, attr, has_sums)
    ends = ends_of(
        chain, resolved.dst, ARGUMENTS, lanes, channels_of_group(resolved, "dst"), width=width, starts=starts
    )
    tensors = {**resolved.tensors(), "weights": weights, **ends.arguments, **zero_points_of(attr)}
    plans = []
    for g, tiling in fit.parts:
        g = replace(g, weights_image_bytes=weights.size_bytes * weights_of_images)
        of_part = ends.every(g.axes[-1].all_pixels.step, resolved.dst, ARGUMENTS, lanes)
        plans.append(schedule_tiles(name, tensors, of_part, g, tiling, engine))
    plan = joined(plans, turns_of(resolved.dst, engine.tuning.convolution))
    if starts:
        plan = starts.in_front_of(plan, weights.dtype.size_bytes * weights.strides[0], engine.tuning)
    return ends.around(plan, engine)


def fit_of(desc: Desc, engine: Engine, parts: Parts[Desc], types: Types) -> Fit[Desc]:
    """How vectors of the engine's level, which multiply `types`, compute it.  Raises Refused."""
    lanes = lanes_of(engine.isa)
    resolved = resolve_activations(desc, lanes)
    src, dst = image_layout(resolved.src), image_layout(resolved.dst)
    if src is None or dst is None:
        raise Refused("src and dst must be plain, or blocked once and by channels")
    check_tensors(resolved, src, dst, types, engine)
    check_steps(resolved, src, types)
    check_groups(resolved, lanes)
    geometries = [replace(g, types=types) if types.run else g for g in parts(resolved, src, dst)]
    first = choose_tiling(geometries[0], engine.isa, panel_widths(resolved, types, engine.isa), engine.tuning)
    width = first.vectors * lanes
    check_cut_steps(geometries[0], width, engine.tuning.convolution)
    tilings = [first, *(choose_tiling(g, engine.isa, (first.vectors,), engine.tuning) for g in geometries[1:])]
    weights = panels_desc(resolved, width)
    if not (isinstance(desc.weights, SummedDesc) and desc.weights.storage == weights):
        check_weights(desc, weights)
    return Fit(resolved, weights, engine, tuple(zip(geometries, tilings, strict=True)))


def starts_of_weights(fit: Fit[Desc], desc: Desc, attr: Attr, has_sums: bool) -> tuple[Starts | None, MemoryDesc]:
    """What sums start from, if src is shifted, and the weights, which may have sums of theirs after them."""
    starts, weights = starts_of(fit.parts[0][0], fit.width, attr, fit.engine), fit.weights
    if starts and has_sums:
        summed = starts.with_sums(weights, desc.has_groups)
        starts = summed if desc.weights.is_any or desc.weights == summed.packed else starts
    if isinstance(desc.weights, SummedDesc):
        return starts, desc.weights
    return starts, starts.packed if starts and starts.packed else weights


def nothing(desc: ConvolutionDesc, attr: Attr, engine: Engine) -> Plan:
    """The plan for a dst without elements, whatever the formats; weights that are `any` become panels."""
    name, weights = f"nothing:{engine.isa}", desc.weights
    sums = types_of(desc).sums
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc), sums, sums == s32)
    if weights.is_any:
        weights = panels_desc(desc, 2 * lanes_of(engine.isa))
    empty = Phase((), views(("dst",)), np.zeros((0, 2), np.int64), np.zeros(0, np.int32))
    others = chain.arguments(chain.operands(desc.dst, RESULTS))
    tensors = {**desc.tensors(), "weights": weights, **others, **zero_points_of(attr)}
    return Plan(name, (empty,), tensors, {}, {}, ("dst",))


def scaled_dims(desc: ConvolutionDesc) -> Mapping[str, Mapping[int, int]]:
    return SCALED_GROUPS if desc.has_groups else SCALED


def channels_of_dst(desc: ConvolutionDesc) -> MemoryDesc | None:
    """A dense bias, viewed as a tensor that broadcasts to dst."""
    ones = (1,) * (desc.dst.ndims - 2)
    return desc.bias and laid_out((1, *desc.bias.dims, *ones), desc.bias.dtype, LETTERS[: desc.dst.ndims])


def resolve_activations(desc: Desc, lanes: int) -> Desc:
    """`any` becomes the format that kernels read and write best: channels blocked by the vector, few source channels
    planar.  Channels are last, and padded if few, where groups are not whole vectors or a multiply takes several
    channels."""
    src = f"aBx{lanes}b" if desc.src.dims[1] >= TAP_CHANNELS else "abx"
    wanted = {"src": src, "bias": "a", "dst": f"aBx{lanes}b"}
    if desc.groups > 1:
        wanted |= {n: "axb" for n in ("src", "dst") if channels_of_group(desc, n) % lanes}
    if (group := types_of(desc).group) > 1:
        whole = group * -(-desc.src.dims[1] // group)
        # Few channels are padded, since a partial step takes longer than a whole one.
        few = desc.groups == 1 and desc.src.dims[1] != whole < TAP_CHANNELS
        wanted |= {"src": f"aBx{whole}b" if few else "axb", "dst": "axb"}
    unset = {name: d for name, d in desc.tensors().items() if d.is_any and name in wanted}
    return desc.with_formats({name: laid_out(d.dims, d.dtype, wanted[name]) for name, d in unset.items()})


@lru_cache(MOST_FORMATS)
def laid_out(dims: tuple[int, ...], dtype: DataType, tag: str) -> MemoryDesc:
    """The tensor in a format: layers have activations in common, and a bias is asked for several times."""
    return MemoryDesc(dims, dtype, tag)


def panel_widths(desc: ConvolutionDesc, types: Types, isa: str) -> tuple[int, ...]:
    """The numbers of vectors that a panel may have: the vectors lie at one distance in dst and fill its blocks.  Packed
    weights leave only the number of their own panels."""
    lanes = lanes_of(isa)
    block = desc.dst.inner_blocks[0][1] if desc.dst.inner_blocks else lanes
    widths = (block // lanes,) if block > lanes else tuple(blocks_of(types, isa))
    packed = [size for dim, size in desc.weights.inner_blocks if dim == int(desc.has_groups)]
    given = tuple(width for width in widths if packed == [width * lanes])
    return given or widths


def make_geometry(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout) -> ConvGeometry:
    """The sizes and distances that a schedule needs, of a convolution whose tensors lie so."""
    axes = axes_of(desc)
    into, out = (channels_of_group(desc, name) for name in ("src", "dst"))
    types = types_of(desc)
    if desc.groups == 1 and desc.src.blocks[1] % types.group == 0:  # zeros after the last channel are multiplied, too
        into = types.group * -(-into // types.group)
    if desc.src.dims[1] == types.group == 1:  # the distance of a single channel from the next may be anything
        src = replace(src, channel_bytes=axes[-1].d * src.pixel_bytes)
    stored = desc.dst.padded_dims[1] if desc.groups == 1 else out
    return ConvGeometry(
        mb=desc.src.dims[0],
        ic=into,
        oc=out,
        oc_stored=stored,
        axes=axes,
        src=src.in_groups(types),
        dst=dst,
        groups=desc.groups,
        types=types,
    )


def axes_of(desc: ConvolutionDesc) -> tuple[Axis, ...]:
    """Its spatial axes."""
    inputs, outputs, dilations = desc.src.dims[2:], desc.dst.dims[2:], [d + 1 for d in desc.dilations]
    sizes = zip(inputs, outputs, desc.kernel, desc.strides, dilations, desc.padding_l, strict=True)
    return tuple(Axis(*axis) for axis in sizes)


def panels_desc(desc: ConvolutionDesc, panel_channels: int) -> MemoryDesc:
    """The weights in panels of output channels, in each a row of the panel for every input channel, some channels at
    each kernel position: OIhw8i16o and the like, and OIhw8i16o4i where a multiply takes four of them."""
    weights, has_groups = desc.weights, desc.has_groups
    group, out, into = ("a", "b", "c") if has_groups else ("", "a", "b")
    at_once = types_of(desc).group
    rows = weights_rows(-(-weights.dims[1 + has_groups] // at_once), desc.parts)
    tag = f"{group}{out.upper()}{into.upper()}x{rows}{into}{panel_channels}{out}"
    tag += f"{at_once}{into}" * (at_once > 1)
    return laid_out(weights.dims, weights.dtype, tag)
