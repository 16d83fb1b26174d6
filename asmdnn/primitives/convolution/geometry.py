"""A 2D convolution as strides in bytes: what is left of descriptors and formats once a kernel can address them."""

from dataclasses import dataclass

from asmdnn.memory import MemoryDesc


@dataclass(frozen=True, slots=True)
class ImageLayout:
    """Where pixel (n, c, y, x) of an activation tensor lies, in bytes from the buffer's start.

    Channel c is at (c // block) * block_bytes + (c % block) * channel_bytes; a plain format is one block.
    """

    start_bytes: int
    image_bytes: int
    block: int
    block_bytes: int
    channel_bytes: int
    row_bytes: int
    pixel_bytes: int

    def channel(self, c: int) -> int:
        return c // self.block * self.block_bytes + c % self.block * self.channel_bytes


def image_layout(desc: MemoryDesc) -> ImageLayout | None:
    """The layout of a 4D f32 activation (n, c, h, w); None if a dim other than c is blocked, or c is more than once."""
    if len(desc.inner_blocks) > 1 or any(dim != 1 for dim, _ in desc.inner_blocks):
        return None
    n, c, h, w = (stride * desc.dtype.size_bytes for stride in desc.strides)
    block, channel = (desc.inner_blocks[0][1], desc.dtype.size_bytes) if desc.inner_blocks else (desc.dims[1], c)
    return ImageLayout(desc.offset0 * desc.dtype.size_bytes, n, max(block, 1), c, channel, h, w)


@dataclass(frozen=True, slots=True)
class ConvGeometry:
    """Sizes of a forward convolution, oneDNN's names; dilation 1 means dense here."""

    mb: int
    ic: int
    ih: int
    iw: int
    oc: int
    oc_stored: int  # oc and the zero padding of dst
    oh: int
    ow: int
    kh: int
    kw: int
    sh: int
    sw: int
    dh: int
    dw: int
    pt: int
    pl: int
    src: ImageLayout
    dst: ImageLayout

    def rows_are_contiguous(self) -> bool:
        """Whether output pixels in raster order read source pixels at one distance (1x1, stride 1, no padding)."""
        return (
            self.kh == self.kw == self.sh == self.sw == 1
            and self.pt == self.pl == 0
            and (self.ih, self.iw) == (self.oh, self.ow)
            and self.src.row_bytes == self.iw * self.src.pixel_bytes
        )

    def flattened(self) -> "ConvGeometry":
        """The same convolution with all pixels of an image in one row, where both layouts allow it."""
        if not (self.rows_are_contiguous() and self.dst.row_bytes == self.ow * self.dst.pixel_bytes):
            return self
        pixels = self.oh * self.ow
        return ConvGeometry(
            self.mb, self.ic, 1, pixels, self.oc, self.oc_stored, 1, pixels, 1, 1, 1, 1, 1, 1, 0, 0, self.src, self.dst
        )
