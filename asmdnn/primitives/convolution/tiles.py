"""From a geometry to tiles: which output pixels a kernel call computes, which taps reach them, and where they lie.

Rows of output are taken `strip_rows` at a time, and a strip's pixels in raster order are cut into tiles of nearly equal
size.  Tiles that differ only by where they lie share a *pattern*: the distances between their source pixels, and for
every kernel position the pixels that it reaches inside the image.  Padding exists only here: an edge is a pattern.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.geometry import Axis, ConvGeometry

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


@dataclass(frozen=True, eq=False)
class Tiles:
    """The tiles of one image.  Arrays are int64[tiles]; bytes count from the image's start, padding comes before.

    first: each tile's first output pixel, counted in raster order.
    """

    patterns: tuple[Pattern, ...]
    pattern: Int64
    src_bytes: Int64
    dst_bytes: Int64
    first: Int64


def make_tiles(g: ConvGeometry, pixels: int, strip_rows: int) -> Tiles:
    """Cut an image into tiles of at most `pixels` output pixels; numpy throughout, Python only for each new pattern."""
    first, size = cut_strips(g, pixels, strip_rows)
    raster = first[:, None] + np.minimum(np.arange(size.max()), size[:, None] - 1)
    index = np.unravel_index(raster, tuple(axis.o for axis in g.axes))
    steps = list(zip(g.axes, index, g.src.axis_bytes, strict=True))
    src = sum_of([at * (axis.s * step) for axis, at, step in steps])
    reaches = [reach(axis)[at] for axis, at, _ in steps]
    edges = [edge for along in reaches for edge in np.moveaxis(along, 2, 0)]
    example, pattern = unique_rows(np.concatenate([size[:, None], src - src[:, :1], *edges], 1))
    patterns = tuple(
        Pattern(
            tuple(map(int, src[i, : size[i]] - src[i, 0])), group_positions([along[i, : size[i]] for along in reaches])
        )
        for i in example
    )
    return Tiles(
        patterns,
        pattern,
        src[:, 0] - sum(axis.p * step for axis, _, step in steps),
        sum_of([at[:, 0] * step for at, step in zip(index, g.dst.axis_bytes, strict=True)]),
        first,
    )


def sum_of(parts: Sequence[Int64]) -> Int64:
    total: Int64 = np.sum(parts, axis=0, dtype=np.int64)
    return total


def cut_strips(g: ConvGeometry, pixels: int, strip_rows: int) -> tuple[Int64, Int64]:
    """The first output pixel, in raster order, and the size of every tile of an image."""
    strips = [(y, min(strip_rows, g.rows - y)) for y in range(0, g.rows, strip_rows)]
    sizes = {rows: np.array(balanced(rows * g.width, pixels)) for rows in {rows for _, rows in strips}}
    first = [y * g.width + np.cumsum(sizes[rows]) - sizes[rows] for y, rows in strips]
    return np.concatenate(first), np.concatenate([sizes[rows] for _, rows in strips])


def reach(axis: Axis) -> Int64:
    """int64[outputs, 2]: kernel positions [low, high) that lie inside the image; low = high if none does."""
    start = np.arange(axis.o, dtype=np.int64) * axis.s - axis.p
    low = np.clip(-(start // axis.d), 0, axis.k)
    high = np.clip(-((start - axis.i) // axis.d), 0, axis.k)
    return np.stack((low, np.maximum(low, high)), 1)


def group_positions(reaches: Sequence[Int64]) -> Positions:
    """Kernel positions by the pixels that they reach; `reaches` is int64[pixels, 2] for each axis."""
    ranges = [range(int(along[:, 0].min()), int(along[:, 1].max())) for along in reaches]
    inside = np.ones((1, len(reaches[0])), bool)  # of the positions so far, in the order of `product`, each pixel
    for at, along in zip(ranges, reaches, strict=True):
        here = np.asarray(at)[:, None]
        inside = (inside[:, None] & (along[:, 0] <= here) & (here < along[:, 1])).reshape(-1, len(along))
    groups: dict[bytes, list[Position]] = {}
    for position, pixels in zip(product(*ranges), inside, strict=True):
        groups.setdefault(pixels.tobytes(), []).append(position)
    reached = ((tuple(np.flatnonzero(np.frombuffer(key, bool)).tolist()), tuple(groups[key])) for key in groups)
    return tuple(sorted(group for group in reached if group[0]))


def unique_rows(rows: Int64) -> tuple[Int64, Int64]:
    """The index of an example of every different row, and for each row the number of its example."""
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, example, number = np.unique(keys, return_index=True, return_inverse=True)
    return example, number.astype(np.int64)
