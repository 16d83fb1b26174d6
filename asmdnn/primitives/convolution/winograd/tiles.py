"""The tiles of images: where each lies in src and dst, and which transforms it needs; numpy throughout."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.records import dataclass

Range = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class WinogradTiles:
    """Tiles in raster order, image by image; arrays are int64[tiles].

    src_bytes: of the first pixel that a tile reads, which padding may put before the image.  dst_bytes: of the first
    one that it makes; `image` and `first` are that pixel's image and its number in raster order.
    reads: the rows and columns of the source's tile that exist, by number in `reads_of`; makes: how many rows and
    columns of results, by number in `makes_of`.
    """

    image: Int64
    first: Int64
    src_bytes: Int64
    dst_bytes: Int64
    reads: Int64
    reads_of: tuple[tuple[Range, Range], ...]
    makes: Int64
    makes_of: tuple[tuple[int, int], ...]


def make_tiles(g: ConvGeometry, m: int, begin: int, end: int) -> WinogradTiles:
    """Of the images [begin, end), for m x m results each."""
    down, across = g.axes
    y, x = (np.arange(-(-axis.o // m), dtype=np.int64) * m for axis in g.axes)
    images = np.arange(begin, end, dtype=np.int64)[:, None, None]

    def places(start: int, image_bytes: int, row_bytes: int, pixel_bytes: int) -> Int64:
        return start + images * image_bytes + y[:, None] * row_bytes + x * pixel_bytes

    src = places(g.src.start_bytes, g.src.image_bytes, *g.src.axis_bytes)
    before = down.p * g.src.axis_bytes[0] + across.p * g.src.axis_bytes[1]
    reads_of, reads = pairs([reads_along(axis, m) for axis in g.axes])
    makes_of, makes = pairs([[min(m, axis.o - at) for at in range(0, axis.o, m)] for axis in g.axes])
    return WinogradTiles(
        image=np.broadcast_to(images, src.shape).ravel(),
        first=np.broadcast_to(y[:, None] * across.o + x, src.shape).ravel(),
        src_bytes=(src - before).ravel(),
        dst_bytes=places(g.dst.start_bytes, g.dst.image_bytes, *g.dst.axis_bytes).ravel(),
        reads=np.tile(reads, end - begin),
        reads_of=reads_of,
        makes=np.tile(makes, end - begin),
        makes_of=makes_of,
    )


def reads_along(axis: Axis, m: int) -> list[Range]:
    """For every tile along an axis the positions [begin, end) of its m + 2 that lie in the source."""
    found = []
    for at in range(0, axis.o, m):
        begin, end = max(0, axis.p - at), min(m + 2, axis.i + axis.p - at)
        found.append((begin, end) if begin < end else (0, 0))
    return found


def pairs(along: Sequence[Sequence[T]]) -> tuple[tuple[tuple[T, T], ...], Int64]:
    """The different pairs of a value of each axis, and for every tile the number of its pair."""
    different = [list(dict.fromkeys(values)) for values in along]
    numbered = [{value: number for number, value in enumerate(values)} for values in different]
    numbers = [np.array([of[x] for x in values]) for of, values in zip(numbered, along, strict=True)]
    down, across = different
    every = (numbers[0][:, None] * len(across) + numbers[1]).ravel().astype(np.int64)
    return tuple((first, second) for first in down for second in across), every
