"""What rows of groups with few channels refuse: groups that do not fill vectors, types, and what tiles do faster."""

from asmdnn.generators.dot.depthwise import LONGEST_KERNEL as LONGEST_OF_LANES
from asmdnn.generators.dot.depthwise import MOST_ROWS
from asmdnn.isa.dot import F32, multiplied
from asmdnn.isa.vectors import NARROWEST, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, channels_of_group
from asmdnn.primitives.convolution.geometry import ImageLayout, image_layout
from asmdnn.primitives.convolution.grouped_kernels import takes_dots, takes_rows
from asmdnn.primitives.convolution.grouped_schedule import LONGEST_KERNEL
from asmdnn.primitives.convolution.multiplied import are_bytes_by_floats, check_stored, types_of
from asmdnn.primitives.convolution.tile_refusals import is_dense
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.types import Algorithm, f32

FEW_PIXELS = 8  # of a row, which are multiplied at a time: two units of 4 cycles wait for their own sums
NARROW_COLUMNS, NARROW_PIXELS = 3, 6  # 7x7 on 28x28 is 0.82x, 5x5 on 64x64 0.98x, 3x3 on 10x10 0.91x, all else faster
PAIR = 2  # products of bf16 in a lane


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


def check_results(desc: ConvolutionForward, lanes: int) -> int:
    """The output channels of each channel of src.  Raises Refused where lanes cannot read these together."""
    results, out = channels_of_group(desc, "dst"), desc.dst.dims[1]
    if types_of(desc) != F32:
        raise Refused(f"src is {desc.src.dtype}, several lanes read a channel of f32 only")
    if results > lanes or results & results - 1:
        raise Refused(f"groups have {results} channels out, that must be a power of two up to {lanes} lanes")
    if out % lanes:
        raise Refused(f"dst has {out} channels, that must be whole vectors of {lanes}")
    if desc.kernel[-1] > LONGEST_KERNEL:
        raise Refused(f"the kernel is {desc.kernel[-1]} wide, at most {LONGEST_KERNEL} are implemented")
    return results


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
    """Raises Refused where tiles of a single group, whose channels fill a vector, are faster than rows: where no two
    positions of a kernel row read a pixel; with strides, and in rows of fewer pixels than hide a multiply's latency,
    unless Winograd's algorithm may be chosen for those, on some CPUs."""
    lanes, is_blocked = lanes_of(engine.isa), desc.src.is_any or desc.src.inner_blocks
    if types_of(desc) != F32 or not channels_of_group(desc, "src") == channels_of_group(desc, "dst") == lanes:
        return
    width, stride = desc.dst.dims[-1], desc.strides[-1]
    shares_nothing = desc.kernel[-1] <= stride and width >= 2 * FEW_PIXELS
    is_short = width < FEW_PIXELS and desc.algorithm == Algorithm.convolution_direct
    on_some = is_blocked and (stride > 1 or is_short) and not engine.tuning.convolution.rows_of_whole
    if shares_nothing or on_some:
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
    if desc.src.inner_blocks or desc.dst.inner_blocks or are_bytes_by_floats(types_of(desc)):
        return  # tiles would copy them, or do not take them
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
    if desc.bias is not None and not is_dense(desc.bias):
        raise Refused("bias must be dense")
    refuse_overlap(dst=desc.dst)
