"""Which convolutions write dst past the caches: those whose dst no cache keeps, as tiles that write runs of lines."""

from asmdnn.memory import MemoryDesc
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.primitives.convolution.geometry import ImageLayout


def is_streaming(
    desc: MemoryDesc, dst: ImageLayout, channels: int, lanes: int, chain: Chain, tuning: ConvolutionTuning
) -> bool:
    """Whether dst is so large, is not read, and kernels that take `channels` at a time write neighbouring pixels one
    behind the other.  64 bytes here and there are 1.1 times slower past the caches than through them."""
    runs = dst.channel_bytes == 4 and dst.pixel_bytes == 4 * dst.block <= 4 * channels
    vectors = dst.block % lanes == 0 and dst.block_bytes % (4 * lanes) == 0
    return desc.size_bytes > tuning.streaming_bytes and runs and vectors and not chain.reads_dst
