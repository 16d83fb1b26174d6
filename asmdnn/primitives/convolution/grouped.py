"""Convolution of groups with few channels, depthwise first of all: rows of dst, a vector of channels at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from asmdnn.generators.dot.depthwise import LONGEST_KERNEL as LONGEST_OF_LANES
from asmdnn.generators.dot.depthwise import MOST_ROWS
from asmdnn.generators.dot.grouped_shape import ARGUMENTS
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import F32, multiplied
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
from asmdnn.primitives.convolution import reordered
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, Desc
from asmdnn.primitives.convolution.direct import Parts, channels_of_dst, channels_of_group, nothing, scaled_dims
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout, image_layout
from asmdnn.primitives.convolution.grouped_kernels import base_spec, position_steps, takes_dots, takes_rows
from asmdnn.primitives.convolution.grouped_schedule import (
    LONGEST_KERNEL,
    RowKernels,
    schedule_rows,
)
from asmdnn.primitives.convolution.multiplied import check_stored, level_of_rows, types_of
from asmdnn.primitives.convolution.operands import readable, tile_operands
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.starts import zero_points_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.types import Algorithm, f32, s32

MULTIPLIED = "repeat+depthwise"
FEW_PIXELS = 8  # of a row, which are multiplied at a time: two units of 4 cycles wait for their own sums
NARROW_COLUMNS, NARROW_PIXELS = 3, 6  # 7x7 on 28x28 is 0.82x, 5x5 on 64x64 0.98x, 3x3 on 10x10 0.91x, all else faster
PAIR = 2  # products of bf16 in a lane
FAR_BYTES = 2**31 - 1  # the range of a displacement or an immediate operand
ONE_ROW = Axis(1, 1, 1, 1, 1, 0)


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a convolution with groups, best first; nothing for one without."""
    if desc.groups == 1:
        return
    if channels_of_group(desc, "src") == 1 < channels_of_group(desc, "dst"):
        yield from reordered.plans_between_reorders(MULTIPLIED, desc, attr, engine, planned_multiplied)
    else:
        yield from reordered.plans_between_reorders(name_of(desc), desc, attr, engine, planned)


def name_of(desc: ConvolutionDesc) -> str:
    return "depthwise" if desc.groups == desc.src.dims[1] == desc.dst.dims[1] else "grouped"


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    check_pairs(desc, attr, level_of_rows(types_of(desc), engine))
    check_whole(desc, level_of_rows(types_of(desc), engine))
    if fills_ymm(desc, engine):  # in the blocks of the level, as layers around it have them
        image, engine = f"aBx{lanes_of(engine.isa)}b", replace(engine, isa=NARROWEST)
        either = {"src": desc.src, "dst": desc.dst}
        desc = desc.with_formats({n: MemoryDesc(d.dims, d.dtype, image) for n, d in either.items() if d.is_any})
    return planned_parts(desc, attr, engine, lambda desc, src, dst: [make_geometry(desc, src, dst)])


def planned_parts(desc: Desc, attr: Attr, engine: Engine, parts: Parts[Desc]) -> Plan:
    """The same of `parts` of dst, each a convolution of three axes with some of the weights."""
    types = types_of(desc)
    engine = level_of_rows(types, engine)
    name, lanes = f"{name_of(desc)}:{engine.isa}", lanes_of(engine.isa)
    group = check_groups(desc, lanes)
    dots = takes_dots(types, group, attr, engine)
    check_bytes(desc, group, dots, engine.isa)
    weights = weights_desc(desc.weights, group, lanes, types.group if dots else 1)
    check_weights(desc, weights)
    image = f"aBx{lanes}b" if types == F32 else "axb"
    wanted = {"src": image, "bias": "a", "dst": image}
    formats = {n: MemoryDesc(d.dims, d.dtype, wanted[n]) for n, d in desc.tensors().items() if d.is_any and n in wanted}
    resolved = desc.with_formats({**formats, "weights": weights})
    if 0 in resolved.dst.dims:
        return nothing(resolved, attr, engine)
    src, dst = (layout_of(name, resolved.tensors()[name], lanes) for name in ("src", "dst"))
    check_types(resolved)
    geometries = parts(resolved, src, dst)
    if max(map(reach_bytes, geometries)) > FAR_BYTES:
        raise Refused("pixels lie too far apart for a kernel that walks over rows")
    is_whole = types.sums == s32
    chain = chain_of(attr, resolved.tensors(), scaled_dims(desc), channels_of_dst(resolved), types.sums, is_whole)
    others = chain.operands(resolved.dst, RESULTS)
    width = lanes * max(1, vectors_together(resolved, lanes))
    channels = resolved.dst.dims[1]
    read = {operand: readable(tensor, resolved.dst, channels, width, lanes) for operand, tensor in others.items()}
    operands = tile_operands(read, resolved.dst, len(ARGUMENTS), lanes)
    tensors = {**resolved.tensors(), **chain.arguments(read), **zero_points_of(attr)}
    if len(geometries) > 1 and any(place.operand.row_bytes for place in operands.values()):
        raise Refused("post-ops read pixels, which lie one after the other, and a part's do not")
    rows = [
        RowKernels(
            base_spec(g, tensors, group, engine.isa, dots),
            width // lanes,
            tuple(range(0, channels, lanes)),
            weights_bytes=first_position(g, tensors),
        )
        for g in geometries
    ]
    phases, constants = schedule_rows(tensors, operands, list(zip(geometries, rows, strict=True)), chain, engine)
    plan = Plan(name, flushing(phases), tensors, constants, {}, ("dst",))
    return between_reorders(plan, chain.arguments(others), engine.tuning, isa=engine.isa)


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


def check_groups(desc: ConvolutionDesc, lanes: int) -> int:
    """The input and output channels of a group.  Raises Refused where several groups do not fill a vector."""
    into, out = desc.src.dims[1] // desc.groups, desc.dst.dims[1] // desc.groups
    if into != out:
        raise Refused(f"groups have {into} channels in and {out} out, they must be as many")
    if not shares_vectors(into, out, lanes):
        raise Refused(f"groups have {into} channels, that must be a power of two up to the {lanes} lanes")
    if desc.kernel[-1] > LONGEST_KERNEL:
        raise Refused(f"the kernel is {desc.kernel[-1]} wide, at most {LONGEST_KERNEL} are implemented")
    return into


def check_bytes(desc: ConvolutionDesc, group: int, dots: bool, isa: str) -> None:
    """Raises Refused for bytes, unless kernels of rows can sum their products."""
    types, (rows, columns) = types_of(desc), (1, *desc.kernel)[-2:]
    if types.sums == f32 or dots or (group == 1 and takes_rows(types, (rows, columns), isa)):
        return
    if group > 1:
        fast = "with VPDPBUSD for 4, 8, 16 of u8 without a zero point"
        raise Refused(f"groups have {group} channels, rows of bytes are implemented for one, and {fast}")
    raise Refused(f"the kernel has {rows}x{columns} positions, of bytes at most {MOST_ROWS}x{LONGEST_OF_LANES}")


def check_whole(desc: ConvolutionForward, engine: Engine) -> None:
    """Raises Refused where tiles of a single group, whose channels fill a vector, are faster than rows: with strides,
    and in rows of fewer pixels than hide a multiply's latency, unless Winograd's algorithm may be chosen for those."""
    lanes, is_blocked = lanes_of(engine.isa), desc.src.is_any or desc.src.inner_blocks
    is_short = desc.dst.dims[-1] < FEW_PIXELS and desc.algorithm == Algorithm.convolution_direct
    if engine.tuning.convolution.rows_of_whole or types_of(desc) != F32 or not is_blocked:
        return
    if channels_of_group(desc, "src") == channels_of_group(desc, "dst") == lanes and (desc.strides[-1] > 1 or is_short):
        raise Refused(f"groups of {lanes} channels fill a vector, and tiles of one at a time are faster")


def fills_ymm(desc: ConvolutionForward, engine: Engine) -> bool:
    """Whether a group's channels fill a ymm register, and rows are faster so than two groups at a time: with strides,
    few columns of the kernel, and pixels enough to hide a multiply's latency."""
    lanes, group = lanes_of(NARROWEST), channels_of_group(desc, "src")
    is_whole = group == channels_of_group(desc, "dst") == lanes and desc.src.dims[1] % lanes_of(engine.isa) == 0
    if not (is_whole and types_of(desc) == F32 and engine.tuning.convolution.narrow_groups):
        return False
    return desc.strides[-1] > 1 and desc.kernel[-1] <= NARROW_COLUMNS and desc.dst.dims[-1] >= NARROW_PIXELS


def check_pairs(desc: ConvolutionForward, attr: Attr, engine: Engine) -> None:
    """Raises Refused where tiles multiply pairs of bf16 and take no more steps, group by group, or widen less often.

    For a vector of dst, at each kernel position, rows multiply every channel of a group; tiles multiply all groups of
    the vector one after the other, two channels at a time.  What is widened rows widen for every few pixels.  On an
    Emerald Rapids 16 channels of bf16 at 14x14 take rows 445 us, 293 with src as f32, and tiles after that 219.
    """
    group, isa = channels_of_group(desc, "src"), engine.isa
    lanes = lanes_of(isa)
    if takes_dots(types_of(desc), group, attr, engine):
        return  # as many pairs as there are, and all lanes
    if desc.src.inner_blocks or desc.dst.inner_blocks:
        return  # tiles would copy them
    types = multiplied(desc.src.dtype, desc.weights.dtype, isa)
    if types.src == f32 != types.weights and group >= lanes:
        raise Refused(f"groups have {group} channels, tiles widen {types.weights} for more pixels")
    are_pairs = desc.src.dtype == desc.weights.dtype == types.src and types.group == PAIR
    if are_pairs and group > 1 and group * PAIR >= lanes:
        steps = lanes // PAIR
        raise Refused(f"groups have {group} channels, tiles take {steps} steps for as many pairs of {types.src}")


def shares_vectors(into: int, out: int, lanes: int) -> bool:
    """Whether groups of so many channels in and out fill a vector, some or one of them."""
    return into == out <= lanes and into & into - 1 == 0


def weights_desc(weights: MemoryDesc, group: int, lanes: int, at_once: int = 1) -> MemoryDesc:
    """Output channels of as many groups as fill a vector, side by side, for every input and position: Goihw8g and the
    like; inputs that are multiplied at once are together."""
    blocks = [(lanes // group, "a")] * (group < lanes) + [(group, "b")] * (group > 1)
    blocks += [(at_once, "c")] * (at_once > 1)
    letters = [LETTERS[: weights.ndims], *(f"{size}{letter}" for size, letter in blocks)]
    for _, letter in blocks:
        letters[0] = letters[0].replace(letter, letter.upper())
    return MemoryDesc(weights.dims, weights.dtype, "".join(letters))


def layout_of(name: str, desc: MemoryDesc, lanes: int) -> ImageLayout:
    """Raises Refused unless vectors of channels are contiguous."""
    layout = image_layout(desc)
    if layout is None:
        raise Refused("src and dst must be plain, or blocked once and by channels")
    if not layout.is_dense and desc.dims[1] > 1:
        raise Refused(f"{name} {format_of(desc)} has its channels apart")
    if desc.inner_blocks and layout.block % lanes:
        raise Refused(f"{name} {format_of(desc)} has blocks of {layout.block} channels, a vector has {lanes}")
    if desc.padded_dims[1] >= desc.dims[1] + lanes:
        raise Refused(f"{name} {format_of(desc)} has vectors of padding alone after its {desc.dims[1]} channels")
    return layout


def check_types(desc: ConvolutionDesc) -> None:
    """Raises Refused."""
    check_stored(desc.tensors())
    if desc.bias is not None and desc.bias != MemoryDesc(desc.bias.dims, desc.bias.dtype, "a"):
        raise Refused("bias must be dense")
    if desc.dst.may_overlap:
        raise Refused("elements of dst overlap")


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
