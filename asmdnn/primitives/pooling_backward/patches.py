"""Which windows reach a pixel: patches of cells of strides whose pixels the same positions of windows reach."""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.records import dataclass, replace


class Reached(NamedTuple):
    """A window that has a pixel: its result along an axis, and the pixel's number in it."""

    output: int
    position: int


class Pixels(NamedTuple):
    """Pixels at a place in the cells of an axis, and what reaches that of the first cell."""

    place: int
    windows: tuple[Reached, ...]


@dataclass(frozen=True, slots=True)
class Patch:
    """Along an axis: `count` cells from pixel `first` on, `step` pixels apart, with these pixels."""

    first: int
    step: int
    count: int
    pixels: tuple[Pixels, ...]


def patches_of(desc: PoolingBackward, axis: int) -> Iterator[Patch]:
    """All pixels along an axis: runs of cells that the same positions reach."""
    size, made, stride = desc.diff_src.dims[2 + axis], desc.diff_dst.dims[2 + axis], desc.strides[axis]
    step, before = desc.dilations[axis] + 1, desc.padding_l[axis]
    shifts: list[list[tuple[int, int]]] = []  # of each place: from a cell to an output, and the position there
    ends = {0}
    for place in range(min(stride, size)):
        count = len(range(place, size, stride))
        far = [place + before - r * step for r in range(desc.kernel[axis])]
        shifts.append([(distance // stride, r) for r, distance in enumerate(far) if distance % stride == 0])
        ends |= {count} | {min(max(x, 0), count) for shift, _ in shifts[-1] for x in (-shift, made - shift)}
    for begin, end in pairwise(sorted(ends)):
        pixels = tuple(
            Pixels(place, tuple(Reached(begin + n, r) for n, r in found if begin + n >= 0 and end + n <= made))
            for place, found in enumerate(shifts)
            if place + (end - 1) * stride < size
        )
        yield Patch(begin * stride, stride, end - begin, pixels)


def apart(patch: Patch) -> Iterator[Patch]:
    """Each place in its cells as one."""
    for place, windows in patch.pixels:
        yield replace(patch, first=patch.first + place, pixels=(Pixels(0, windows),))


def pixels_of(patch: tuple[Patch, ...]) -> Iterator[tuple[int, list[tuple[Reached, ...]]]]:
    """The pixels of a row's cell: their places in it, and windows, with what they are along each axis."""
    *outer, row = patch
    for place, windows in row.pixels:
        yield place, list(product(*(along.pixels[0].windows for along in outer), windows))
