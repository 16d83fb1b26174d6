"""Which convolutions write dst past the caches: those whose dst no cache keeps, as rows or tiles that write lines."""

from asmdnn.isa.elements import native_element
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.types import DataType


def is_streaming(
    desc: MemoryDesc, dst: ImageLayout, channels: int, lanes: int, chain: Chain, tuning: ConvolutionTuning
) -> bool:
    """Whether dst is so large, is not read, and kernels that take `channels` at a time write neighbouring pixels one
    after the other.  64 bytes here and there are 1.1 times slower past the caches than through them."""
    return is_far(desc, chain, tuning) and in_runs(dst, channels, lanes)


def is_far(desc: MemoryDesc, chain: Chain, tuning: ConvolutionTuning) -> bool:
    """Whether dst is so large that no cache keeps it, and is not read."""
    return desc.size_bytes > tuning.streaming_bytes and not chain.reads_dst


def in_runs(dst: ImageLayout, channels: int, lanes: int) -> bool:
    """Whether kernels that take `channels` at a time write neighbouring pixels one after the other."""
    size = dst.element_bytes
    runs = dst.is_dense and dst.pixel_bytes == size * dst.block <= size * channels
    return runs and dst.block % lanes == 0 and dst.block_bytes % (size * lanes) == 0


def in_lines(dst: ImageLayout, channels: int) -> bool:
    """Whether kernels that take `channels` of a pixel, and then the next ones, write whole lines of it."""
    return dst.is_dense and dst.pixel_bytes % LINE_BYTES == dst.element_bytes * channels % LINE_BYTES == 0


def is_past_caches(g: ConvGeometry, tuning: ConvolutionTuning) -> bool:
    """Whether dst of tiles is so large that no cache keeps it."""
    return g.mb * g.dst.image_bytes >= tuning.streaming_tile_bytes


def writes_lines(g: ConvGeometry, vectors: int, dtype: DataType, isa: str) -> bool:
    """Whether tiles fill whole lines of dst with one store each: a vector, or two that are rounded at once."""
    dst, vector_bytes = g.dst, lanes_of(isa) * g.dst.element_bytes
    touch = dst.channel(lanes_of(isa)) == vector_bytes
    are_pairs = vectors % 2 == 0 and touch and native_element(dtype, isa).narrows_pairs
    return vector_bytes << are_pairs == LINE_BYTES and dst.pixel_bytes % LINE_BYTES == 0


def goes_along_pixels(g: ConvGeometry, panel_channels: int, weights_bytes: int, tuning: ConvolutionTuning) -> bool:
    """Whether a tile takes all panels before the next tile: where memory would get each pixel in pieces otherwise, of
    `panel_channels` each, and L1 keeps all weights, which have `weights_bytes`.

    Pixels that lie apart, as those of a transposed convolution with strides, wait for their lines in L2, too, and
    longer than for weights that L1 keeps in part: on Zen 5 1x1 of 17 to 512 channels, stride 2, runs 2 to 4x faster.
    """
    if not g.dst.is_dense or panel_channels >= min(g.oc, g.dst.block):
        return False
    if g.dst.pixel_bytes > g.dst.block * g.dst.element_bytes:
        return weights_bytes <= 2 * tuning.near_panel_bytes
    return g.parts == 1 and weights_bytes <= tuning.near_panel_bytes and is_past_caches(g, tuning)
