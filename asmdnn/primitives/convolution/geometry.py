"""A convolution as sizes of axes and strides in bytes, the form in which kernels address its tensors."""

from math import prod

import numpy as np

from asmdnn.isa.dot import F32, GROUP_BYTES, Types
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """Where pixel (n, c, *position) of an activation tensor lies, in bytes from the buffer's start.

    Channel c is at (c // block) * block_bytes + (c % block) * channel_bytes; a plain format is one block.
    axis_bytes: one step along each spatial axis, the innermost one last.  element_bytes: of a channel; of src as tiles
    read it, of a group of channels that are multiplied at once.
    """

    start_bytes: int
    image_bytes: int
    block: int
    block_bytes: int
    channel_bytes: int
    axis_bytes: tuple[int, ...]
    element_bytes: int

    @property
    def is_dense(self) -> bool:
        """Whether the channels of a block are contiguous."""
        return self.channel_bytes == self.element_bytes

    @property
    def pixel_bytes(self) -> int:
        """From a pixel to the next one in its row."""
        return self.axis_bytes[-1]

    def channel(self, c: int) -> int:
        return c // self.block * self.block_bytes + c % self.block * self.channel_bytes

    def channels(self, c: Int64) -> Int64:
        """The same of many."""
        return c // self.block * self.block_bytes + c % self.block * self.channel_bytes

    def in_groups(self, types: Types) -> "ImageLayout":
        """The same of groups of channels as `types` multiplies them, the last of which may be cut; of dense ones, if
        these are several."""
        if types.group == 1:
            return self
        block = -(-self.block // types.group)
        return replace(self, block=block, channel_bytes=GROUP_BYTES, element_bytes=GROUP_BYTES)

    def rows_touch(self, sizes: tuple[int, ...]) -> bool:
        """Whether all pixels of an image of these sizes, in raster order, lie at one distance."""
        inner = zip(sizes[1:], self.axis_bytes[1:], strict=True)
        return all(step == size * below for step, (size, below) in zip(self.axis_bytes, inner, strict=False))


def image_layout(desc: MemoryDesc) -> ImageLayout | None:
    """The layout of an activation (n, c, *positions); None if a dim other than c is blocked, or c is more than
    once."""
    if len(desc.inner_blocks) > 1 or any(dim != 1 for dim, _ in desc.inner_blocks):
        return None
    size = desc.dtype.size_bytes
    n, c, *axes = (stride * size for stride in desc.strides)
    block, channel = (desc.inner_blocks[0][1], size) if desc.inner_blocks else (desc.dims[1], c)
    return ImageLayout(
        start_bytes=desc.offset0 * size,
        image_bytes=n,
        block=max(block, 1),
        block_bytes=c,
        channel_bytes=channel,
        axis_bytes=tuple(axes),
        element_bytes=size,
    )


@dataclass(frozen=True, slots=True)
class ConvGeometry:
    """Sizes of a forward convolution, oneDNN's names; `axes` are its spatial axes, outermost first, one or more.

    Channels are those of one of the `groups`.  A row is what lies along the last axis; an image has `rows` of them, in
    the raster order of the other axes.  src has the layout of groups of channels, as `types` multiplies them.
    """

    mb: int
    ic: int
    oc: int
    oc_stored: int  # oc and the zero padding of dst
    axes: tuple[Axis, ...]
    src: ImageLayout
    dst: ImageLayout
    groups: int = 1
    positions_before: int = 0  # kernel positions that earlier parts of a deconvolution use
    weights_image_bytes: int = 0  # from the weights of an image to those of the next one, if each has its own
    types: Types = F32

    @property
    def steps(self) -> int:
        """Of the sum at a kernel position: the input channels, as many at a time as one multiply takes."""
        return -(-self.ic // self.types.group)

    @property
    def parts(self) -> int:
        """The number of convolutions into which a deconvolution is cut."""
        return prod(axis.pixels.step for axis in self.axes if axis.pixels)

    @property
    def width(self) -> int:
        """Output pixels of a row."""
        return self.axes[-1].o

    @property
    def rows(self) -> int:
        """Output rows of an image."""
        return prod(axis.o for axis in self.axes[:-1])

    @property
    def positions_touch(self) -> bool:
        """Whether, in src and in weights, the last channel at a kernel position is followed by the first channel at the
        next position of its row."""
        last = self.axes[-1]
        touch = last.d * self.src.pixel_bytes == self.steps * self.src.channel_bytes
        in_one_block = self.src.block >= self.steps
        return last.positions is None and touch and in_one_block and self.ic % self.types.group == 0

    @property
    def src_pixels(self) -> int:
        """Of an image."""
        return prod(axis.i for axis in self.axes)

    @property
    def positions(self) -> int:
        """Of the kernel, those that are used."""
        return prod(axis.k for axis in self.axes)

    @property
    def positions_of_pixel(self) -> float:
        """Those that reach a pixel of dst, away from edges."""
        return prod(axis.positions_of_pixel for axis in self.axes)

    @property
    def places(self) -> int:
        """Pixels of a row one after another that are reached by different kernel positions, away from edges."""
        return self.axes[-1].places

    @property
    def packed_positions(self) -> int:
        """Those that weights have."""
        return prod(axis.positions.size if axis.positions else axis.k for axis in self.axes)

    def pixels_of_dst(self, raster: Int64) -> Int64:
        """The raster numbers in all of dst of output pixels that are numbered within this part."""
        if self.parts == 1:
            return raster
        found = np.zeros_like(raster)
        for axis, at in zip(self.axes, np.unravel_index(raster, tuple(axis.o for axis in self.axes)), strict=True):
            pixels = axis.all_pixels
            found = found * pixels.size + pixels.first + at * pixels.step
        return found

    def flattened(self) -> "ConvGeometry":
        """The same convolution with neighbouring axes merged into one, where both are pointwise and both layouts allow
        it: all pixels of a 1x1 convolution become one row."""
        if len(self.axes) == 1 or (not self.axes[-1].is_pointwise and not any(x.is_pointwise for x in self.axes[:-1])):
            return self
        axes, src, dst = list(self.axes[-1:]), [self.src.pixel_bytes], [self.dst.pixel_bytes]
        for axis, src_step, dst_step in zip(
            self.axes[-2::-1], self.src.axis_bytes[-2::-1], self.dst.axis_bytes[-2::-1], strict=True
        ):
            inner = axes[0]
            touch = src_step == inner.i * src[0] and dst_step == inner.o * dst[0]
            if axis.is_pointwise and inner.is_pointwise and touch:
                pixels = axis.o * inner.o
                axes[0] = Axis(pixels, pixels, 1, 1, 1, 0)
            else:
                axes.insert(0, axis)
                src.insert(0, src_step)
                dst.insert(0, dst_step)
        layouts = (replace(self.src, axis_bytes=tuple(src)), replace(self.dst, axis_bytes=tuple(dst)))
        return replace(self, axes=tuple(axes), src=layouts[0], dst=layouts[1])
