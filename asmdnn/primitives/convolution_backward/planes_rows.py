"""Rows of src for gradients of weights whose lanes are pixels: where each position of the kernel finds them."""

from collections.abc import Sequence
from itertools import product
from math import prod

from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.concat import pad
from asmdnn.primitives.concat.pad import Pad
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution_backward.weights_products import RasterAxis, axis_of, cell_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.records import dataclass

ROWS = "rows of places"  # scratch


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Distances in bytes.  positions: of the kernel, in raster order, from where an output row begins to what its first
    pixel reads.  steps: from an output row to the next one, along each axis but the last."""

    start_bytes: int
    image_bytes: int
    channel_bytes: int
    positions: tuple[int, ...]
    steps: tuple[int, ...]


def reads_rows(p: ConvolutionDesc) -> bool:
    """Whether rows are read where they lie in a tensor whose rows are contiguous."""
    sizes = zip(p.dst.dims[2:], p.strides, p.kernel, p.dilations, p.src.dims[2:], strict=True)
    inside = all((made - 1) * stride + (kernel - 1) * (d + 1) < size for made, stride, kernel, d, size in sizes)
    return p.strides[-1] == 1 and not any(p.padding_l) and inside


def rows_in_place(p: ConvolutionDesc) -> SourceRows:
    """Of src as it is, whose last axis is contiguous."""
    image, channel, *axes = (stride * p.src.dtype.size_bytes for stride in p.src.strides)
    away = [[r * (d + 1) * step for r in range(k)] for k, d, step in zip(p.kernel, p.dilations, axes, strict=True)]
    return SourceRows(
        start_bytes=p.src.offset0 * p.src.dtype.size_bytes,
        image_bytes=image,
        channel_bytes=channel,
        positions=tuple(map(sum, product(*away))),
        steps=tuple(stride * step for stride, step in zip(p.strides[:-1], axes, strict=False)),
    )


@dataclass(frozen=True, slots=True)
class RowsOfPlaces:
    """A copy of src: of each channel a plane for each of `places` of the last axis, with zeros around it.

    before: zeros in front of the elements, along each axis.  sizes: of a plane.
    """

    p: ConvolutionDesc
    last: RasterAxis
    places: tuple[int, ...]
    before: tuple[int, ...]
    sizes: tuple[int, ...]

    def desc(self, images: int) -> MemoryDesc:
        """The elements of the first place of some images; those of the others follow, a plane away each."""
        channels, plane = self.p.src.dims[1], prod(self.sizes)
        steps = [prod(self.sizes[axis + 1 :]) for axis in range(len(self.sizes))]
        strides = (channels * len(self.places) * plane, len(self.places) * plane, *steps)
        return MemoryDesc((images, channels, *self.sizes), self.p.src.dtype, strides=strides)

    def rows(self) -> SourceRows:
        image, channel, *axes = (stride * self.p.src.dtype.size_bytes for stride in self.desc(1).strides)
        starts = {place: prod(self.sizes) * n + self.before[-1] for n, place in enumerate(self.places)}
        along = [self.p.src.dtype.size_bytes * (starts[at.place] + at.cells) for at in self.last.shifts]
        others = zip(self.p.kernel[:-1], self.p.dilations[:-1], axes[:-1], strict=True)
        away = [[r * (d + 1) * step for r in range(k)] for k, d, step in others]
        return SourceRows(
            start_bytes=0,
            image_bytes=image,
            channel_bytes=channel,
            positions=tuple(map(sum, product(*away, along))),
            steps=tuple(stride * step for stride, step in zip(self.p.strides[:-1], axes, strict=False)),
        )

    def copies(self, images: int, engine: Engine) -> tuple[Plan, ...]:
        """The plans of the first images, one for each place."""
        src, desc = self.p.src, self.desc(images)
        some = src.submemory((images, *src.dims[1:]), (0,) * src.ndims)
        others = tuple(RasterAxis(size, (size,), ()) for size in src.dims[2:-1])
        parts = (cell_of(some, (*[0] * len(others), place), (*others, self.last)) for place in self.places)
        return tuple(plan_of((pad.plans,), Pad(part, desc, (0, 0, *self.before)), engine) for part in parts)

    def add_copies(self, assembly: Assembly, copies: Sequence[Plan], first: int, images: int) -> None:
        """Of images from `first` on into scratch."""
        element = self.p.src.dtype.size_bytes
        buffer = assembly.room(ROWS, images * self.desc(images).strides[0] * element)
        for number, plan in enumerate(copies):
            src = View("src", first * self.p.src.strides[0] * element)
            assembly.add_plan(plan, {"src": src, "dst": View(buffer, number * prod(self.sizes) * element)})


def rows_of_places(p: ConvolutionDesc) -> RowsOfPlaces:
    """Raises Refused."""
    last = axis_of(p, len(p.kernel) - 1)
    cells = [shift.cells for shift in last.shifts]
    before = max(0, -min(cells))
    size = before + max(max(last.inside), max(0, *cells) + p.dst.dims[-1])
    outer = zip(p.src.dims[2:-1], p.dst.dims[2:-1], p.strides, p.kernel, p.dilations, p.padding_l, strict=False)
    lines = [max(i + front, (o - 1) * s + (k - 1) * (d + 1) + 1) for i, o, s, k, d, front in outer]
    places = tuple(dict.fromkeys(shift.place for shift in last.shifts))
    return RowsOfPlaces(p, last, places, (*p.padding_l[:-1], before), (*lines, size))
