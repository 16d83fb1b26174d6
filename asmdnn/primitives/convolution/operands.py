"""Where the tensors of post-ops lie for the tiles of a convolution: an Operand, and offsets of records.

Tiles read channels that are dense, or one for all, of pixels at one distance; others are copied.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.generators.functions.postops import Operand
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.geometry import ImageLayout, image_layout
from asmdnn.primitives.convolution.taps import NEAR_BYTES
from asmdnn.records import dataclass, replace

MOST_PIXELS = 24  # of a tile


@dataclass(frozen=True, slots=True)
class TileOperand:
    """A tensor's layout; dims of 1 have strides of 0."""

    operand: Operand
    layout: ImageLayout

    def of_pixels(self, image: Int64, first: Int64) -> Int64:
        """The byte offset, for the first channels, of pixels counted in raster order, of images int64[n, 1]."""
        offsets = self.layout.start_bytes + image * self.layout.image_bytes + first * self.layout.pixel_bytes
        return offsets.ravel()

    def of_channels(self, channels: Int64) -> Int64:
        """The offsets of the channels with which calls begin."""
        if self.operand.element:
            return np.zeros(len(channels), np.int64)
        return self.layout.channels(channels)


def tile_operands(
    tensors: Mapping[str, MemoryDesc], dst: MemoryDesc, first_argument: int, lanes: int, step: int = 1
) -> dict[str, TileOperand]:
    """An operand for each tensor, in order, all of which are `readable`, for every step-th pixel of a row."""
    found = {}
    for argument, (name, desc) in enumerate(tensors.items(), first_argument):
        layout = broadcast_layout(desc, dst.dims[2:])
        assert layout is not None
        element = desc.dims[1] == 1
        vector_bytes = 0 if element else layout.channel(lanes)
        found[name] = TileOperand(Operand(argument, step * layout.pixel_bytes, vector_bytes, element), layout)
    return found


def readable(desc: MemoryDesc, dst: MemoryDesc, group: int, width: int, lanes: int) -> MemoryDesc:
    """`desc`, or the format of a copy that tiles can address: dense, with all pixels if it has more than one.

    Panels of `width` channels begin at the first channel of every group of dst, which has `group`.
    """
    layout = broadcast_layout(desc, dst.dims[2:])
    if layout is not None and layout.rows_touch(dst.dims[2:]):
        near = MOST_PIXELS * layout.pixel_bytes + layout.channel(width) <= NEAR_BYTES
        if near and (desc.dims[1] == 1 or vectors_are_apart_equally(layout, dst.dims[1], group, width, lanes)):
            return desc
    images, channels, *pixels = desc.dims
    dims = (images, channels, *(dst.dims[2:] if max(pixels) > 1 else pixels))
    blocked = f"aBx{dst.blocks[1]}b" if dst.blocks[1] > 1 else "axb"
    return MemoryDesc(dims, desc.dtype, blocked if channels > 1 else "abx")


def broadcast_layout(desc: MemoryDesc, sizes: tuple[int, ...]) -> ImageLayout | None:
    """The layout in images of these sizes, with strides of 0 along dims of 1; an axis of one pixel counts on from the
    axis inside it, whatever its stride, so that one distance may serve all pixels."""
    layout = image_layout(desc)
    if layout is None:
        return None
    n, _, *along = (size > 1 for size in desc.dims)
    steps = [step * moves for step, moves in zip(layout.axis_bytes, along, strict=True)]
    real = [a for a, size in enumerate(sizes) if size > 1]
    last = len(sizes) - 1
    steps[last] = steps[real[-1]] if real else 0
    for a in range(last - 1, -1, -1):
        steps[a] = steps[a] if a in real[:-1] else sizes[a + 1] * steps[a + 1]
    return replace(layout, image_bytes=layout.image_bytes * n, axis_bytes=tuple(steps))


def vectors_are_apart_equally(layout: ImageLayout, channels: int, group: int, width: int, lanes: int) -> bool:
    """Whether the vectors of each panel of `width` channels are dense and at one distance."""
    if channels > 1 and not layout.is_dense:
        return False
    if layout.block >= channels:
        return True
    if layout.block % lanes or (group < channels and group % lanes):
        return False
    if layout.block == lanes:
        return True
    return all(
        layout.channel(first + c + j) - layout.channel(first + c) == j // lanes * layout.channel(lanes)
        for first in range(0, channels, group)
        for c in range(0, group, width)
        for j in range(0, min(width, group - c), lanes)
    )
