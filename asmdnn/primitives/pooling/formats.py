"""The formats of a pooling's tensors: what is chosen for `any`, and what kernels take as it is."""

from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.primitives.convolution.geometry import image_layout


def format_like(model: MemoryDesc, desc: MemoryDesc) -> MemoryDesc:
    """`desc`; if its format is any, in the order and the blocks of the model."""
    if not desc.is_any:
        return desc
    tag = model.tag if not model.is_any else None
    return MemoryDesc(desc.dims, desc.dtype, tag or LETTERS[: desc.ndims])


def channels_are_dense(src: MemoryDesc, dst: MemoryDesc) -> bool:
    """Whether both tensors have the same stretches of channels dense in memory."""
    layouts = image_layout(src), image_layout(dst)
    if None in layouts:
        return False
    (a, b) = layouts
    assert a is not None and b is not None
    return a.block == b.block and all(
        x.block == 1 or x.channel_bytes == t.dtype.size_bytes for x, t in ((a, src), (b, dst))
    )


def rows_are_dense(src: MemoryDesc, dst: MemoryDesc) -> bool:
    """Whether lines of pixels are dense in both, and channels are not in blocks."""
    return all(not t.inner_blocks and t.strides[-1] == 1 and t.may_overlap is False for t in (src, dst))
