"""src of a convolution as tiles of AMX read it: a raster of pixels, channels last, with the padding around each image.

What a kernel covers of a row of an image then lies side by side, however near an edge it is, so that rows of output
pixels are rows of a matrix that overlap.  A copy is made unless src lies so already.
"""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from asmdnn.isa.lines import LINE_BYTES
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import dataclass, replace

RASTER, ZEROS = "raster of src", "zeros"
Parts = Sequence[tuple[Axis, ...]]  # the axes of each; a convolution has one part, a deconvolution several


@dataclass(frozen=True, slots=True)
class Padded:
    """A tensor in scratch: where elements of src lie, and the sizes of dims with what is around them, `before` of it in
    front."""

    desc: MemoryDesc
    sizes: tuple[int, ...]
    before: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        last = sum((n - 1) * step for n, step in zip(self.sizes, self.desc.strides, strict=True))
        return self.desc.dtype.size_bytes * (last + 1)

    def around(self) -> Iterator[MemoryDesc]:
        """The boxes around src, which do not overlap: before and after it along a dim, and all of later dims."""
        dims, first = list(self.sizes), [0] * len(self.sizes)
        for dim, (size, before) in enumerate(zip(self.desc.dims, self.before, strict=True)):
            for low, high in ((0, before), (before + size, self.sizes[dim])):
                if low < high:
                    first[dim], dims[dim] = low, high - low
                    at = sum(x * step for x, step in zip(first, self.desc.strides, strict=True))
                    yield MemoryDesc(tuple(dims), self.desc.dtype, strides=self.desc.strides, offset0=at)
            first[dim], dims[dim] = before, size


@dataclass(frozen=True, slots=True)
class Raster:
    """image_bytes, axis_bytes: distances; of the innermost axis, of pixels.  start_bytes: of the first pixel, in front
    of which there are `before` along each axis.

    channels: of a pixel, whole groups.  copy: None if src is read where it lies."""

    buffer: str
    start_bytes: int
    image_bytes: int
    axis_bytes: tuple[int, ...]
    channels: int
    before: tuple[int, ...]
    copy: Padded | None = None

    @property
    def has_padding(self) -> bool:
        """Whether there are pixels around those of src."""
        return self.copy is not None and self.copy.sizes[2:] != self.copy.desc.dims[2:]

    def window(self, axes: tuple[Axis, ...]) -> int:
        """Where the first window of a part begins."""
        each = zip(self.before, axes, self.axis_bytes, strict=True)
        return self.start_bytes + sum((before - axis.p) * step for before, axis, step in each)


def raster_of(desc: ConvolutionDesc, parts: Parts, dense: bool = False) -> Raster:
    """That of src, whose format is resolved, for the windows of all parts.  dense: nothing is between pixels."""
    src, group = desc.src, types_of(desc).group
    size, (_, channels, *pixels) = src.dtype.size_bytes, src.dims
    before = [max(0, *(axes[a].p for axes in parts)) for a in range(len(pixels))]
    ends = [max(n, *(end_of(axes[a]) for axes in parts)) for a, n in enumerate(pixels)]
    fits = src.strides[-1] == channels if dense else channels % (group * desc.groups) == 0
    if any(before) or ends != pixels or src.inner_blocks or src.strides[1] != 1 or not fits:
        whole = channels if dense or desc.groups > 1 else group * -(-channels // group)
        return in_scratch(desc, whole, tuple(before), ends, dense)
    image, _, *steps = (size * stride for stride in src.strides)
    return Raster("src", size * src.offset0, image, tuple(steps), channels, tuple(before))


def in_scratch(
    desc: ConvolutionDesc, channels: int, before: tuple[int, ...], ends: Sequence[int], dense: bool
) -> Raster:
    """Pixels of whole lines lie an odd number of them apart, else they share few sets of L1: on an Emerald Rapids 3x3
    kernels of 64 and 128 channels of bf16 are 1.09 times faster so (docs/low-precision.md)."""
    src, size = desc.src, desc.src.dtype.size_bytes
    sizes = [p + end for p, end in zip(before, ends, strict=True)]
    is_even = channels * size % (2 * LINE_BYTES) == 0
    pixel = channels + (LINE_BYTES // size if is_even and not dense else 0)
    steps = [pixel * prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    image = sizes[0] * steps[0]
    first = sum(p * step for p, step in zip(before, steps, strict=True))
    copy = MemoryDesc(src.dims, src.dtype, strides=(image, 1, *steps), offset0=first)
    return Raster(
        buffer=RASTER,
        start_bytes=0,
        image_bytes=size * image,
        axis_bytes=tuple(size * step for step in steps),
        channels=channels,
        before=before,
        copy=Padded(copy, (src.dims[0], channels, *sizes), (0, 0, *before)),
    )


def end_of(axis: Axis) -> int:
    """Where the last window ends, counted from the first pixel."""
    return (axis.o - 1) * axis.s + (axis.k - 1) * axis.d + 1 - axis.p


def add_raster(assembly: Assembly, src: MemoryDesc, raster: Raster) -> None:
    """The phases that make the copy: src, and zeros around it."""
    if raster.copy is None:
        return
    assembly.scratch[RASTER] = raster.copy.size_bytes
    add_reorder(assembly, Reordering("src", src, RASTER, raster.copy.desc), "raster")
    add_zeros(assembly, raster.copy, RASTER)


def add_zeros(assembly: Assembly, padded: Padded, buffer: str) -> None:
    """Around src."""
    zeros = assembly.constant(ZEROS, np.zeros(1, np.int64))
    for box in padded.around():
        nothing, done = MemoryDesc(box.dims, box.dtype, strides=(0,) * box.ndims), len(assembly.phases)
        add_reorder(assembly, Reordering(zeros, nothing, buffer, box))
        assembly.phases[done] = replace(assembly.phases[done], independent=True)
