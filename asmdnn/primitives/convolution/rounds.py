"""Convolutions of many tiles as few records that come again and again: images, or pieces of a large one.

A tile whose windows lie inside the image is the next one's twin: the same kernel and tap list, so many pixels further.
So of a large image a few units are written out, whole strips of rows or columns of tiles; the tiles at its edges are.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import lcm, prod

import numpy as np

from asmdnn.planning.phase import Int64, Repeat
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.tiles import RowCut, strips_at
from asmdnn.primitives.convolution.tiling import Tiling
from asmdnn.records import dataclass

MOST_CUTS = 64  # of images that are not large
Repeats = tuple[Repeat, ...]


@dataclass(frozen=True, slots=True)
class TilePiece:
    """Tiles [begin, end) of those that are written out, `times` them, each time `outputs` further along an axis."""

    begin: int
    end: int
    times: int = 1
    axis: int = 0
    outputs: int = 0

    @property
    def tiles(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True, eq=False)
class TileCut:
    """The tiles of an image that are written out, int64[tiles] each: their first pixels in raster order, their sizes;
    and in which pieces they are."""

    first: Int64
    size: Int64
    pieces: tuple[TilePiece, ...]

    @property
    def tiles(self) -> int:
        """Of the whole image."""
        return sum(piece.times * piece.tiles for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Units:
    """`count` equal units along an axis, from output `first` on; each has `outputs` of it, and so many tiles."""

    axis: int
    first: int
    count: int
    outputs: int
    tiles: int


def cut_image(g: ConvGeometry, tiling: Tiling, most: int, together: int) -> TileCut:
    """All tiles of an image if they are at most `most`, else rounds of at most about `together`, and the edges.

    Parts of a deconvolution take turns, so that they are always written out.
    """
    row = RowCut(g.width, tiling.pixels)
    if g.parts > 1 or g.rows * g.width <= most:  # no more tiles than pixels
        return whole_image(g, tiling)
    strip = RowCut(tiling.strip_rows * g.width, tiling.pixels).tiles
    if -(-g.rows // tiling.strip_rows) * strip <= most:
        return whole_image(g, tiling)
    units = units_of_rows(g, tiling.strip_rows, strip)
    if tiling.strip_rows == 1:
        units = max(units, units_of_columns(g, row), key=lambda u: u.count)
    at_once = max(1, together // units.tiles)
    times = units.count // at_once
    if times < 2:
        return whole_image(g, tiling)
    begin, end = units.first, units.first + at_once * units.outputs
    left = units.first + times * at_once * units.outputs
    inside, edges = ([(begin, end)], [(0, begin), (left, g.axes[units.axis].o)])
    cuts = [tiles_between(g, tiling, units.axis, spans) for spans in (inside, edges)]
    first, size = (np.concatenate(both) for both in zip(*cuts, strict=True))
    inner = len(cuts[0][0])
    pieces = [TilePiece(0, inner, times, units.axis, at_once * units.outputs)]
    return TileCut(first, size, (*pieces, *[TilePiece(inner, len(first))] * (len(first) > inner)))


def whole_image(g: ConvGeometry, tiling: Tiling) -> TileCut:
    return tiles_of_image(g.rows, g.width, tiling.pixels, tiling.strip_rows)


@lru_cache(MOST_CUTS)
def tiles_of_image(rows: int, width: int, pixels: int, strip_rows: int) -> TileCut:
    """The same of its sizes, which layers have in common, and any number of images."""
    if rows == 1:
        row = RowCut(width, pixels)
        tiles = np.arange(row.tiles)
        return TileCut(row.begins(tiles), row.sizes(tiles), (TilePiece(0, row.tiles),))
    first, size = strips_at((rows, width), pixels, strip_rows, [(0, rows)])
    return TileCut(first, size, (TilePiece(0, len(first)),))


def units_of_rows(g: ConvGeometry, strip_rows: int, strip_tiles: int) -> Units:
    """Whole strips, and whole planes, along the first axis that has more than one output, but for the last axis."""
    axis = next((a for a, along in enumerate(g.axes[:-1]) if along.o > 1), 0)
    if len(g.axes) == 1:
        return Units(0, 0, 0, 1, 1)
    below = g.rows // g.axes[axis].o
    rows = lcm(strip_rows, below)
    low, high = inside(g.axes[axis])
    outputs = rows // below
    first = -(-low // outputs)
    return Units(axis, first * outputs, max(0, high // outputs - first), outputs, rows // strip_rows * strip_tiles)


def units_of_columns(g: ConvGeometry, row: RowCut) -> Units:
    """A tile of every row, of the first ones, which are of one size, along the last axis."""
    low, high = inside(g.axes[-1])
    size, tiles = row.first_run
    first = -(-low // size)
    return Units(len(g.axes) - 1, first * size, max(0, min(high // size, tiles) - first), size, g.rows)


def inside(axis: Axis) -> tuple[int, int]:
    """[low, high): the outputs whose windows lie inside; low >= high if there are none."""
    low = max(0, -(-axis.p // axis.s))
    high = min(axis.o, (axis.i - axis.extent + axis.p) // axis.s + 1)
    return low, high


def tiles_between(g: ConvGeometry, tiling: Tiling, axis: int, spans: list[tuple[int, int]]) -> tuple[Int64, Int64]:
    """(first pixels, sizes) of the tiles between outputs [begin, end) of an axis, which are whole units."""
    if axis < len(g.axes) - 1:
        below = g.rows // g.axes[axis].o
        rows = [(begin * below, end * below) for begin, end in spans]
        return strips_at((g.rows, g.width), tiling.pixels, tiling.strip_rows, rows)
    row = RowCut(g.width, tiling.pixels)
    tiles = np.concatenate([np.arange(row.tile_at(begin), row.tile_at(end)) for begin, end in spans])
    first = np.add.outer(np.arange(g.rows) * g.width, row.begins(tiles)).ravel()
    return first, np.tile(row.sizes(tiles), g.rows)


def rounds_of_cut(g: ConvGeometry, cut: TileCut, panels: int, tuning: ConvolutionTuning) -> tuple[int, int]:
    """(images of a round, rounds) of so many panels for each tile; one image where it comes in rounds itself."""
    if cut.pieces[0].times > 1:
        return 1, g.mb
    most = cut.tiles if g.parts == 1 else prod(axis.all_pixels.size for axis in g.axes)  # the same for all parts
    return images_of_rounds(g.mb, panels * most * g.groups, tuning)


def images_of_rounds(images: int, records: int, tuning: ConvolutionTuning) -> tuple[int, int]:
    """(images of a round, rounds), of so many records an image: one round if they are few."""
    if images * records <= tuning.written_out:
        return images, 1
    together = min(images, max(1, tuning.round_records // records))
    return together, images // together


def rounds_of(images: int, together: int, rounds: int, steps: tuple[int, ...]) -> Iterator[tuple[int, int, Repeats]]:
    """(first image, end, repeats) of the rounds, and of the images that are left."""
    repeats = (Repeat(rounds, tuple(together * step for step in steps)),) if rounds > 1 else ()
    yield 0, together, repeats
    if rounds * together < images:
        yield rounds * together, images, ()
