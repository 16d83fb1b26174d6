"""Which convolutions write dst past the caches: those whose dst no cache keeps, as tiles that write runs of lines."""

from asmdnn.isa.lines import LINE_BYTES
from asmdnn.memory import MemoryDesc
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.primitives.convolution.geometry import ImageLayout


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
