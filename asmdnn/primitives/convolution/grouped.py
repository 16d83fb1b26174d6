"""Convolution of groups with few channels, depthwise first of all: rows of dst, a vector of channels at a time."""

from collections.abc import Iterator, Mapping
from functools import partial

from asmdnn.generators.dot.grouped import GroupedRowsSpec
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, GroupedRows
from asmdnn.isa.dot import F32
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View, flushing
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution import channel_planes, reordered
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, Desc, channels_of_group
from asmdnn.primitives.convolution.direct import Parts, channels_of_dst, laid_out, nothing, scaled_dims
from asmdnn.primitives.convolution.ends import ends_of
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.grouped_kernels import base_spec, position_steps, takes_dots
from asmdnn.primitives.convolution.grouped_schedule import (
    RowKernels,
    schedule_rows,
)
from asmdnn.primitives.convolution.multiplied import level_of_rows, types_of
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.row_refusals import (
    check_bytes,
    check_groups,
    check_pairs,
    check_results,
    check_types,
    check_whole,
    fills_ymm,
    layout_of,
)
from asmdnn.primitives.convolution.starts import zero_points_of
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import replace
from asmdnn.types import s32

MULTIPLIED = "repeat+depthwise"
ONE_ROW = Axis(1, 1, 1, 1, 1, 0)


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a convolution with groups, best first; nothing for one without."""
    if desc.groups == 1:
        return
    if channel_planes.sums_channels(desc):
        sums = partial(channel_planes.planned, depthwise=planned_parts, parts=one_part, padding=0)
        yield from reordered.plans_between_reorders(channel_planes.NAME, desc, attr, engine, sums)
    elif channels_of_group(desc, "src") == 1 < channels_of_group(desc, "dst"):
        yield from reordered.plans_between_reorders(name_of(desc), desc, attr, engine, planned_results)
        yield from reordered.plans_between_reorders(MULTIPLIED, desc, attr, engine, planned_multiplied)
    else:
        yield from reordered.plans_between_reorders(name_of(desc), desc, attr, engine, planned)


def name_of(desc: ConvolutionDesc) -> str:
    return "depthwise" if desc.groups == desc.src.dims[1] else "grouped"


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    check_pairs(desc, attr, level_of_rows(types_of(desc), engine))
    check_whole(desc, level_of_rows(types_of(desc), engine))
    if fills_ymm(desc, engine):  # in the blocks of the level, as layers around it have them
        image, engine = f"aBx{lanes_of(engine.isa)}b", at_level(engine, NARROWEST)
        either = {"src": desc.src, "dst": desc.dst}
        desc = desc.with_formats({n: MemoryDesc(d.dims, d.dtype, image) for n, d in either.items() if d.is_any})
    return planned_parts(desc, attr, engine, one_part)


def planned_results(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Depthwise with several output channels for each of src, which their lanes read together.  Raises Refused."""
    results = check_results(desc, lanes_of(level_of_rows(types_of(desc), engine).isa))
    formats = {n: laid_out(d.dims, d.dtype, "axb") for n, d in (("src", desc.src), ("dst", desc.dst)) if d.is_any}
    return planned_parts(desc.with_formats(formats), attr, engine, one_part, results)


def one_part(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout) -> list[ConvGeometry]:
    """All of it."""
    return [make_geometry(desc, src, dst)]


def planned_parts(desc: Desc, attr: Attr, engine: Engine, parts: Parts[Desc], results: int = 1) -> Plan:
    """The same of `parts` of dst, each a convolution of three axes with some of the weights.  results: of each channel
    of src, of groups of one."""
    types = types_of(desc)
    engine = level_of_rows(types, engine)
    name, lanes = f"{name_of(desc)}:{engine.isa}", lanes_of(engine.isa)
    group = 1 if results > 1 else check_groups(desc, lanes)
    dots = takes_dots(types, group, attr, engine)
    check_bytes(desc, group, dots, engine.isa)
    weights = weights_desc(desc.weights, group * results, lanes, types.group if dots else 1)
    check_weights(desc, weights)
    image = f"aBx{lanes}b" if types == F32 else "axb"
    wanted = {"src": image, "bias": "a", "dst": image}
    formats = {n: laid_out(d.dims, d.dtype, wanted[n]) for n, d in desc.tensors().items() if d.is_any and n in wanted}
    resolved = desc.with_formats({**formats, "weights": weights})
    if 0 in resolved.dst.dims:
        return nothing(resolved, attr, engine)
    src, dst = (layout_of(name, resolved.tensors()[name], lanes) for name in ("src", "dst"))
    check_types(resolved)
    geometries = parts(resolved, src, dst)
    if max(map(reach_bytes, geometries)) > MAX_OFFSET:
        raise Refused("pixels lie too far apart for a kernel that walks over rows")
    is_whole = types.sums == s32
    chain = chain_of(attr, resolved.tensors(), scaled_dims(desc), channels_of_dst(resolved), types.sums, is_whole)
    width, channels = lanes * max(1, vectors_together(resolved, lanes)), resolved.dst.dims[1]
    ends = ends_of(chain, resolved.dst, ARGUMENTS, lanes, channels, width=width)
    tensors = {**resolved.tensors(), **ends.arguments, **zero_points_of(attr)}
    if len(geometries) > 1 and any(place.operand.row_bytes for place in ends.operands.values()):
        raise Refused("post-ops read pixels, which lie one after the other, and a part's do not")
    rows = [
        RowKernels(
            with_results(base_spec(g, tensors, group, engine.isa, dots), results),
            width // lanes,
            tuple([channel // results for channel in range(0, channels, lanes)]),
            weights_bytes=first_position(g, tensors),
        )
        for g in geometries
    ]
    phases, constants = schedule_rows(tensors, list(zip(geometries, rows, strict=True)), ends, engine)
    plan = Plan(name, flushing(phases), tensors, constants, {}, ("dst",))
    return ends.around(plan, engine)


def with_results(spec: GroupedRows, results: int) -> GroupedRows:
    """The kernel of so many for each channel of src."""
    return replace(spec, results=results) if isinstance(spec, GroupedRowsSpec) and results > 1 else spec


def planned_multiplied(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Depthwise with several output channels for one of src, which are repeated in scratch.  Raises Refused."""
    isa, multiplier = level_of_rows(types_of(desc), engine).isa, channels_of_group(desc, "dst")
    if multiplier > lanes_of(isa) or multiplier & multiplier - 1:
        raise Refused(f"groups have {multiplier} channels out, that must be a power of two up to {lanes_of(isa)} lanes")
    weights = weights_desc(desc.weights, multiplier, lanes_of(isa))
    check_weights(desc, weights)
    formats = {n: MemoryDesc(d.dims, d.dtype, "axb") for n, d in (("src", desc.src), ("dst", desc.dst)) if d.is_any}
    desc = desc.with_formats({**formats, "weights": weights})
    if 0 in desc.dst.dims:
        return nothing(desc, attr, engine)
    src, (images, groups, *pixels) = desc.src, desc.src.dims
    if src.inner_blocks:
        raise Refused(f"src {format_of(src)} is blocked, it must be plain")
    wide = MemoryDesc((images, groups * multiplier, *pixels), src.dtype, "axb")
    filters = MemoryDesc((groups * multiplier, 1, 1, *desc.kernel), weights.dtype, "any")
    inner = planned(desc.with_formats({"src": wide, "weights": filters}), attr, engine)
    dims, (of_image, of_group, *steps) = (images, groups, multiplier, *pixels), src.strides
    (wide_image, _, *wide_steps) = wide.strides
    once = MemoryDesc(dims, src.dtype, strides=(of_image, of_group, 0, *steps), offset0=src.offset0)
    repeated = MemoryDesc(dims, src.dtype, strides=(wide_image, multiplier, 1, *wide_steps))
    assembly = Assembly(engine.tuning, engine.isa)
    add_reorder(assembly, Reordering("src", once, "repeated src", repeated))
    assembly.add_plan(inner, {"src": View("repeated src")})
    assembly.scratch["repeated src"] = wide.size_bytes
    tensors = {**inner.tensors, "src": src, "weights": weights}
    return assembly.plan(f"{MULTIPLIED}:{isa}", tensors, inner.outputs)


def first_position(g: ConvGeometry, tensors: Mapping[str, MemoryDesc]) -> int:
    """Where the weights are of the first kernel position that is used."""
    return sum(axis.all_positions.first * step for axis, step in zip(g.axes, position_steps(tensors), strict=True))


def weights_desc(weights: MemoryDesc, group: int, lanes: int, at_once: int = 1) -> MemoryDesc:
    """Output channels of as many groups as fill a vector, side by side, for every input and position: Goihw8g and the
    like; inputs that are multiplied at once are together."""
    blocks = [(lanes // group, "a")] * (group < lanes) + [(group, "b")] * (group > 1)
    blocks += [(at_once, "c")] * (at_once > 1)
    letters = [LETTERS[: weights.ndims], *(f"{size}{letter}" for size, letter in blocks)]
    for _, letter in blocks:
        letters[0] = letters[0].replace(letter, letter.upper())
    return laid_out(weights.dims, weights.dtype, "".join(letters))


def vectors_together(desc: ConvolutionDesc, lanes: int) -> int:
    """Of channels, that lie side by side in src and in dst."""
    return 1 if desc.src.inner_blocks or desc.dst.inner_blocks else desc.dst.dims[1] // lanes


def reach_bytes(g: ConvGeometry) -> int:
    """The largest distance that a kernel advances at once, from the end of a row to the next one."""
    deep, down, across = g.axes
    columns = across.o * across.s + across.k * across.d + across.p
    src = max(down.s, down.k * down.d) * g.src.axis_bytes[1] + columns * g.src.pixel_bytes
    return max(src + deep.d * g.src.axis_bytes[0], g.dst.axis_bytes[1] + across.o * g.dst.pixel_bytes)


def make_geometry(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout) -> ConvGeometry:
    """Of three axes; a convolution of two has a single plane, of one a single row."""
    sizes = (desc.src.dims[2:], desc.dst.dims[2:], desc.kernel, desc.strides, [d + 1 for d in desc.dilations])
    axes = [Axis(*axis) for axis in zip(*sizes, desc.padding_l, strict=True)]
    while len(axes) < 3:
        axes.insert(0, ONE_ROW)
        src, dst = (replace(side, axis_bytes=(0, *side.axis_bytes)) for side in (src, dst))
    (mb, ic), oc = desc.src.dims[:2], desc.dst.dims[1]
    return ConvGeometry(mb=mb, ic=ic, oc=oc, oc_stored=desc.dst.padded_dims[1], axes=tuple(axes), src=src, dst=dst)
