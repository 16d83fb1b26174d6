"""What Winograd's convolution does not take, each with its reason."""

from asmdnn.isa.vectors import lanes_of
from asmdnn.memory.formats import format_of
from asmdnn.memory.winograd import TAPS, WinogradDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.multiplied import check_stored
from asmdnn.primitives.convolution.taps import NEAR_BYTES
from asmdnn.primitives.convolution.winograd.cut import WinogradCut, sizes_of
from asmdnn.types import FLOATS, INTEGERS8, Algorithm

LEAST_CHANNELS = 4  # of groups: products of fewer take longer than direct convolution


def is_demanded(desc: ConvolutionForward) -> bool:
    """Whether no other algorithm will do: it is asked for, or the weights are transformed already."""
    return desc.algorithm == Algorithm.convolution_winograd or isinstance(desc.weights, WinogradDesc)


def check_types(desc: ConvolutionForward) -> None:
    """Raise Refused unless transforms convert the types of src, weights and dst; bytes only where weights are no bytes,
    as sums of these are exact."""
    for name, types in (("weights", FLOATS), ("src", (*FLOATS, *INTEGERS8))):
        if (dtype := desc.tensors()[name].dtype) not in types:
            raise Refused(f"{name} is {dtype}, transforms take {', '.join(map(str, types))}")
    check_stored(desc.tensors())


def check_window(desc: ConvolutionForward) -> None:
    """Raise Refused unless this is a 3x3 convolution of images with stride 1."""
    if len(desc.kernel) != 2:
        raise Refused(f"src has {len(desc.kernel)} spatial axes, only 2 are implemented")
    if desc.kernel != (TAPS, TAPS) or {*desc.strides} != {1} or {*desc.dilations} != {0}:
        rows, cols = desc.kernel
        raise Refused(
            f"weights are {rows}x{cols}, strides {desc.strides}, dilations {desc.dilations}: it is for dense 3x3"
        )
    into, out = (tensor.dims[1] // desc.groups for tensor in (desc.src, desc.dst))
    if desc.groups > 1 and min(into, out) < LEAST_CHANNELS:
        raise Refused(f"groups have {into} channels in and {out} out, fewer than {LEAST_CHANNELS}")
    if 0 in desc.dst.dims or 0 in desc.src.dims:
        raise Refused("src or dst has no elements")


def check_channels(desc: ConvolutionForward, src: ImageLayout, dst: ImageLayout, lanes: int) -> None:
    """Raise Refused unless vectors of channels are dense and at one distance."""
    for name, tensor, layout in (("src", desc.src, src), ("dst", desc.dst, dst)):
        if not layout.is_dense and tensor.dims[1] > 1:
            raise Refused(f"{name} {format_of(tensor)} has its channels apart")
        if tensor.inner_blocks and layout.block != lanes:
            raise Refused(
                f"{name} {format_of(tensor)} has blocks of {layout.block} channels, only {lanes} are implemented"
            )


def check_distances(g: ConvGeometry, cut: WinogradCut, isa: str) -> None:
    """Raise Refused where code cannot reach: displacements have 32 bits."""
    sizes, lanes = sizes_of(g, cut, isa, g.mb), lanes_of(isa)
    for layout in (g.src, g.dst):
        if (cut.m + 2) * (layout.axis_bytes[0] + layout.axis_bytes[1]) > NEAR_BYTES or layout.channel(
            lanes
        ) > NEAR_BYTES:
            raise Refused("pixels of a tile lie too far apart")
    if max(sizes.source_bytes, sizes.products_bytes) > NEAR_BYTES:
        raise Refused(f"{sizes.tiles} tiles at once are too many")
