"""From a geometry to tiles: which output pixels a kernel call computes, which taps reach them, and where they lie.

Rows of output are taken `strip_rows` at a time, and a strip's pixels in raster order are cut into tiles of nearly equal
size.  Tiles that differ only by where they lie share a *pattern*: the distances between their source pixels, and for
every kernel position the pixels that it reaches inside the image.  Padding exists only here: an edge is a pattern.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.records import dataclass

MOST_PLANES = 64  # whose tiles are known
MOST_SIZES = 256  # of tiles whose pixels are one after another
Position = tuple[int, ...]  # of the kernel, along each axis
Positions = tuple[tuple[tuple[int, ...], tuple[Position, ...]], ...]  # (pixels, the positions that reach exactly these)


@dataclass(frozen=True, slots=True)
class Pattern:
    """What tiles have in common.

    src_pixel_bytes: each pixel's source, relative to the first pixel's.  positions: for every set of pixels, the kernel
    positions that reach exactly these; a pixel that lies in the padding with all of its window is in none.
    """

    src_pixel_bytes: tuple[int, ...]
    positions: Positions


@dataclass(frozen=True, slots=True)
class TilePlane:
    """What the tiles of an image depend on, which layers have in common: its axes, and one step along each in bytes."""

    axes: tuple[Axis, ...]
    src_bytes: tuple[int, ...]
    dst_bytes: tuple[int, ...]

    @property
    def rows(self) -> int:
        return prod(axis.o for axis in self.axes[:-1])

    @property
    def width(self) -> int:
        return self.axes[-1].o


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles of one image.  Arrays are int64[tiles]; bytes count from the image's start, padding comes before.

    first: each tile's first output pixel, counted in raster order.
    """

    patterns: tuple[Pattern, ...]
    pattern: Int64
    src_bytes: Int64
    dst_bytes: Int64
    first: Int64

    def some(self, begin: int, end: int) -> "Tiles":
        """Those from `begin` to `end`."""
        if end - begin == len(self.first):
            return self
        arrays = (self.pattern, self.src_bytes, self.dst_bytes, self.first)
        return Tiles(self.patterns, *(array[begin:end] for array in arrays))


def make_tiles(g: ConvGeometry, first: Int64, size: Int64) -> Tiles:
    """The tiles that begin at these output pixels and have so many."""
    return tiles_of(TilePlane(g.axes, g.src.axis_bytes, g.dst.axis_bytes), first.tobytes(), size.tobytes())


@lru_cache(MOST_PLANES)
def tiles_of(g: TilePlane, begins: bytes, sizes: bytes) -> Tiles:
    """The same of int64[tiles] as bytes.

    What the pixels of a tile reach is looked at once for all that begin at one place of rows that are alike, and in
    Python only for each new pattern.
    """
    first, size = np.frombuffer(begins, np.int64), np.frombuffer(sizes, np.int64)
    if len(g.axes) == 1 and g.axes[0].is_pointwise:
        return of_one_row(g, first, size)
    row, column = np.divmod(first, max(1, g.width))
    alike = rows_alike(g, row, int(((column + size - 1) // max(1, g.width)).max(initial=0)) + 1)
    _, chosen, number = np.unique(
        (alike * g.width + column) * (1 + size.max()) + size, return_index=True, return_inverse=True
    )
    patterns, pattern = patterns_of(g, first[chosen], size[chosen])
    index = np.unravel_index(first, tuple(axis.o for axis in g.axes))
    steps = list(zip(g.axes, index, g.src_bytes, g.dst_bytes, strict=True))
    src = sum_of([axis.windows(at) * step for axis, at, step, _ in steps])
    return Tiles(patterns, pattern[number], src, sum_of([at * step for _, at, _, step in steps]), first)


def of_one_row(g: TilePlane, first: Int64, size: Int64) -> Tiles:
    """The same where output x reads input x alone: tiles of one size are alike."""
    (src_step,), (dst_step,) = g.src_bytes, g.dst_bytes
    found = sorted({*size.tolist()})
    pattern = np.searchsorted(np.array(found, np.int64), size)
    patterns = tuple(pattern_of_pixels(pixels, src_step) for pixels in found)
    return Tiles(patterns, pattern, first * src_step, first * dst_step, first)


@lru_cache(MOST_SIZES)
def pattern_of_pixels(pixels: int, step: int) -> Pattern:
    """Of so many, each with its own source, one after another."""
    return Pattern(tuple(i * step for i in range(pixels)), ((tuple(range(pixels)), ((0,),)),))


def rows_alike(g: TilePlane, row: Int64, together: int) -> Int64:
    """For each of these rows of output a number, the same for those that, with as many after them as are taken
    `together`, reach the same kernel positions and read src at the same distances."""
    rows, number = np.unique(row, return_inverse=True)
    window = np.minimum(rows[:, None] + np.arange(together), g.rows - 1)
    outer, index = g.axes[:-1], np.unravel_index(window, tuple(axis.o for axis in g.axes[:-1]) or (1,))
    src = sum_of([0 * window, *(axis.windows(at) * b for axis, at, b in zip(outer, index, g.src_bytes, strict=False))])
    edges = [edge for axis, at in zip(outer, index, strict=False) for edge in np.moveaxis(axis.reach(at), 2, 0)]
    _, kind = unique_rows(np.concatenate([src - src[:, :1], *edges], 1))
    return kind[number]


def patterns_of(g: TilePlane, first: Int64, size: Int64) -> tuple[tuple[Pattern, ...], Int64]:
    """The patterns of some tiles, and the number of each tile's."""
    raster = first[:, None] + np.minimum(np.arange(size.max()), size[:, None] - 1)
    index = np.unravel_index(raster, tuple(axis.o for axis in g.axes))
    steps = list(zip(g.axes, index, g.src_bytes, strict=True))
    src = sum_of([axis.windows(at) * step for axis, at, step in steps])
    reaches = [axis.reach(at) for axis, at, _ in steps]
    edges = [edge for along in reaches for edge in np.moveaxis(along, 2, 0)]
    example, pattern = unique_rows(np.concatenate([size[:, None], src - src[:, :1], *edges], 1))
    patterns = tuple(
        Pattern(
            tuple(map(int, src[i, : size[i]] - src[i, 0])),
            group_positions(g.axes, [along[i, : size[i]] for along in reaches]),
        )
        for i in example
    )
    return patterns, pattern


def all_tiles(g: ConvGeometry, pixels: int, strip_rows: int) -> Tiles:
    """An image cut into tiles of at most `pixels` output pixels."""
    return make_tiles(g, *strips_at((g.rows, g.width), pixels, strip_rows, [(0, g.rows)]))


def sum_of(parts: Sequence[Int64]) -> Int64:
    total: Int64 = np.sum(parts, axis=0, dtype=np.int64)
    return total


@dataclass(frozen=True, slots=True)
class RowCut:
    """`width` pixels in the fewest tiles of at most `pixels`, which differ by one at most, the larger ones first."""

    width: int
    pixels: int

    @property
    def tiles(self) -> int:
        return -(-self.width // self.pixels)

    @property
    def first_run(self) -> tuple[int, int]:
        """(size, how many) of the tiles that are as large as the first one."""
        small, more = divmod(self.width, self.tiles)
        return (small + 1, more) if more else (small, self.tiles)

    def begins(self, tiles: Int64) -> Int64:
        """The first pixel of each tile."""
        small, more = divmod(self.width, self.tiles)
        return tiles * small + np.minimum(tiles, more)

    def sizes(self, tiles: Int64) -> Int64:
        small, more = divmod(self.width, self.tiles)
        return small + (tiles < more)

    def tile_at(self, pixel: int) -> int:
        """The number of the tile that begins at a pixel."""
        small, more = divmod(self.width, self.tiles)
        return pixel // (small + 1) if pixel <= more * (small + 1) else (pixel - more) // small


def strips_at(
    image: tuple[int, int], pixels: int, strip_rows: int, spans: Sequence[tuple[int, int]]
) -> tuple[Int64, Int64]:
    """The first output pixel, in raster order, and the size of every tile of the strips in some spans of rows; image:
    rows and pixels of a row."""
    height, width = image
    none = [np.zeros(0, np.int64)]
    rows = np.concatenate([*none, *(np.arange(begin, end, strip_rows) for begin, end in spans)])
    whole = int(np.count_nonzero(rows + strip_rows <= height))
    first, size = [*none], [*none]
    for some, together in ((rows[:whole], strip_rows), (rows[whole:], height % strip_rows)):
        cut = RowCut(together * width, pixels)
        if len(some):
            tiles = np.arange(cut.tiles)
            first.append(np.add.outer(some * width, cut.begins(tiles)).ravel())
            size.append(np.tile(cut.sizes(tiles), len(some)))
    return np.concatenate(first), np.concatenate(size)


def group_positions(axes: Sequence[Axis], reaches: Sequence[Int64]) -> Positions:
    """Kernel positions by the pixels that they reach; `reaches` has of every axis what it says of the pixels."""
    ranges = [range(int(along[:, 0].min()), int(along[:, 1].max())) for along in reaches]
    inside = np.ones((1, len(reaches[0])), bool)  # of the positions so far, in the order of `product`, each pixel
    for axis, at, along in zip(axes, ranges, reaches, strict=True):
        inside = (inside[:, None] & axis.reached(along, np.asarray(at))).reshape(-1, len(along))
    groups: dict[bytes, list[Position]] = {}
    for position, pixels in zip(product(*ranges), inside, strict=True):
        groups.setdefault(pixels.tobytes(), []).append(position)
    reached = ((tuple(np.flatnonzero(np.frombuffer(key, bool)).tolist()), tuple(groups[key])) for key in groups)
    return tuple(sorted(group for group in reached if group[0]))


def unique_rows(rows: Int64) -> tuple[Int64, Int64]:
    """The index of an example of every different row, and for each row the number of its example."""
    keys = [row.tobytes() for row in rows]  # few: what numpy would find takes it longer to begin
    first = dict[bytes, int]()
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    place = {key: i for i, key in enumerate(sorted(first))}
    return np.array([first[key] for key in place], np.int64), np.array([place[key] for key in keys], np.int64)
