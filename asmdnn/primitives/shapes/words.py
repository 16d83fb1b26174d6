"""Tensors of small elements as f32 words of several neighbouring channels: for kernels that move or compare them."""

from asmdnn.memory import MemoryDesc
from asmdnn.types import f32


def in_words(desc: MemoryDesc) -> MemoryDesc | None:
    """The bytes of a tensor (n, c, ...) with dense channels as words of 4, channels of the padding too; None where some
    word would not be channels of one pixel."""
    each = f32.size_bytes // desc.dtype.size_bytes
    blocks = desc.inner_blocks
    if len(blocks) > 1 or any(dim != 1 for dim, _ in blocks):
        return None
    n, c, *axes = desc.strides
    size = blocks[0][1] if blocks else desc.dims[1]
    steps = (n, c, *axes) if blocks else (n, *axes)
    if (not blocks and c != 1) or any(number % each for number in (size, desc.offset0, *steps)):
        return None
    strides = (n // each, c // each if blocks else 1, *(step // each for step in axes))
    dims = (desc.dims[0], desc.padded_dims[1] // each, *desc.dims[2:])
    smaller = ((1, size // each),) if blocks else ()
    return MemoryDesc(dims, f32, strides=strides, inner_blocks=smaller, offset0=desc.offset0 // each)
