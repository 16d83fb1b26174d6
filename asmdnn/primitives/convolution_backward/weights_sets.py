"""Channels last whose pixels share sets of L1: tiles of gradients of weights read copies in blocks instead.

Pixels 4 KiB apart lie in the same sets, where a tile's taps put one another out; 2 KiB apart in twice as many. With 1x1
kernels, on a Zen 5, 512 to 2048 channels, 7x7, took 573 to 618 us, and take 420 to 464 with a copy of diff_dst; 2048 to
512 took 559 to 627, and take 422 to 440; 1024 to 256 at 14x14 602 to 630, 417 to 495.  Where an element is multiplied
a few times only, the copy takes longer: 16 to 512 channels at 28x28 take 60, and would take 98.
"""

from math import prod

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.types import f32

SAME_SETS_BYTES = 4096
WAYS = 12  # lines of a set
LEAST_PRODUCTS = 64  # of an element of what is copied


def products_of(p: ConvolutionDesc, other: MemoryDesc) -> int:
    """How often an element is multiplied: for each channel of the other tensor and each position of the kernel."""
    return other.dims[1] // p.groups * prod(p.kernel)


def share_sets(tensor: MemoryDesc, products: int, worth: int) -> bool:
    """Whether pixels share sets, and products are enough for a copy.  worth: so many, if sets are twice as many."""
    if tensor.dims[1] == 1 or tensor.strides[1] != 1 or prod(tensor.dims[2:]) <= WAYS:
        return False
    bytes_apart = tensor.strides[-1] * f32.size_bytes
    least = LEAST_PRODUCTS if bytes_apart % SAME_SETS_BYTES == 0 else worth
    return bytes_apart % (SAME_SETS_BYTES // 2) == 0 and products >= least
