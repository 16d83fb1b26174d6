"""What tiles of a direct convolution refuse: formats that their kernels cannot address, and steps that a copy saves."""

from functools import lru_cache

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import Types
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.convolution.description import ConvolutionDesc, channels_of_group
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.shapes.tensors import refuse_overlap

MOST_BIASES = 256  # whose format is known


def check_tensors(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout, types: Types, engine: Engine) -> None:
    """Raise Refused unless kernels that multiply `types` can address these tensors."""
    isa, planar = engine.isa, engine.tuning.convolution.planar_channels
    lanes = lanes_of(isa)
    tensors = desc.tensors()
    for name in tensors.keys() & {"dst", "bias"}:
        if (dtype := tensors[name].dtype) not in RESULTS:
            raise Refused(f"{name} is {dtype}, it must be one of {', '.join(map(str, RESULTS))}")
    if desc.bias is not None and not is_dense(desc.bias):
        raise Refused("bias must be dense")
    into = channels_of_group(desc, "src")
    if not src.is_dense and into > planar:
        raise Refused(f"src {format_of(desc.src)} has its {into} channels apart, more than {planar}")
    if not dst.is_dense and desc.dst.dims[1] > 1:
        raise Refused(f"dst {format_of(desc.dst)} has its channels apart, a vector of channels cannot be stored")
    if desc.dst.inner_blocks and (dst.block % lanes or dst.block // lanes not in blocks_of(types, isa)):
        blocks = f"has blocks of {dst.block} channels"
        raise Refused(f"dst {format_of(desc.dst)} {blocks}, {isa} stores multiples of {lanes}")
    refuse_overlap(dst=desc.dst)


@lru_cache(MOST_BIASES)
def is_dense(bias: MemoryDesc) -> bool:
    """Whether its elements lie one after another, from the start."""
    return bias == MemoryDesc(bias.dims, bias.dtype, "a")


def check_steps(desc: ConvolutionDesc, src: ImageLayout, types: Types) -> None:
    """Raise Refused unless the channels that one multiply takes are contiguous in src."""
    if types.group == 1 or desc.src.dims[1] == 1:
        return
    if not src.is_dense:
        raise Refused(f"src {format_of(desc.src)} has its channels apart, {types.group} are multiplied at once")
    if desc.src.inner_blocks and src.block % types.group:
        at_once = f"{types.group} channels are multiplied at once"
        raise Refused(f"src {format_of(desc.src)} has blocks of {src.block}, {at_once}")


def check_cut_steps(g: ConvGeometry, width: int, tuning: ConvolutionTuning) -> None:
    """Raise Refused where all steps are partial, and a copy of src with padding is expected to be faster."""
    if g.groups > 1 or g.steps > 1 or g.ic % g.types.group == 0 or g.ic == 1:
        return
    saved = tuning.cut_step_cycles * g.positions * g.rows * g.width * -(-g.oc // width)
    if saved > tuning.padded_pixel_cycles * g.src_pixels:
        raise Refused(f"{g.ic} channels are no whole {g.types.group}: a copy with padding is expected to be faster")


def check_groups(desc: ConvolutionDesc, lanes: int) -> None:
    """Raise Refused unless a tile kernel can address each group of channels separately."""
    if desc.groups > 1:
        check_blocks("src", desc.src, channels_of_group(desc, "src"), 1)
        check_blocks("dst", desc.dst, channels_of_group(desc, "dst"), lanes)


def check_blocks(name: str, desc: MemoryDesc, channels: int, lanes: int) -> None:
    """Raise Refused unless the channels of every group are whole blocks, or whole vectors in a block."""
    block = desc.blocks[1]
    if block > 1 and ((channels % block and block % channels) or channels % lanes or desc.dims[1] % block):
        raise Refused(f"{name} {format_of(desc)} has blocks of {block} channels, groups have {channels}")
