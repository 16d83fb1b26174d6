"""From a geometry to tiles: which output pixels a kernel call computes, which taps reach them, and where they lie.

Rows of output are taken `strip_rows` at a time, and a strip's pixels in raster order are cut into tiles of nearly equal
size.  Tiles that differ only by where they lie share a *pattern*: the distances between their source pixels, and for
every kernel position the pixels that it reaches inside the image.  Padding exists only here: an edge is a pattern.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from asmdnn.primitives.convolution.geometry import ConvGeometry

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What tiles have in common.

    src_pixel_bytes: each pixel's source, relative to the first pixel's.  positions: for every set of pixels, the kernel
    positions (r, s) that reach exactly these.
    """

    src_pixel_bytes: tuple[int, ...]
    positions: tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...]


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


def balanced(total: int, size: int) -> list[int]:
    """`total` as a sum of the fewest numbers <= size, which differ by at most one."""
    count = -(-total // size)
    return [total // count + (i < total % count) for i in range(count)]


def make_tiles(g: ConvGeometry, pixels: int, strip_rows: int) -> Tiles:
    """Cut an image into tiles of at most `pixels` output pixels; numpy throughout, Python only for each new pattern."""
    first, size = cut_strips(g, pixels, strip_rows)
    raster = first[:, None] + np.minimum(np.arange(size.max()), size[:, None] - 1)
    y, x = np.divmod(raster, g.ow)
    src = y * (g.sh * g.src.row_bytes) + x * (g.sw * g.src.pixel_bytes)
    reach_y, reach_x = reach(g.oh, g.sh, g.pt, g.kh, g.dh, g.ih)[y], reach(g.ow, g.sw, g.pl, g.kw, g.dw, g.iw)[x]
    signature = np.concatenate(
        [size[:, None], src - src[:, :1], *np.moveaxis(reach_y, 2, 0), *np.moveaxis(reach_x, 2, 0)], 1
    )
    example, pattern = unique_rows(signature)
    patterns = tuple(
        Pattern(
            tuple(map(int, src[i, : size[i]] - src[i, 0])),
            group_positions(reach_y[i, : size[i]], reach_x[i, : size[i]]),
        )
        for i in example
    )
    return Tiles(
        patterns,
        pattern,
        src[:, 0] - g.pt * g.src.row_bytes - g.pl * g.src.pixel_bytes,
        y[:, 0] * g.dst.row_bytes + x[:, 0] * g.dst.pixel_bytes,
        first,
    )


def cut_strips(g: ConvGeometry, pixels: int, strip_rows: int) -> tuple[Int64, Int64]:
    """The first output pixel, in raster order, and the size of every tile of an image."""
    strips = [(y, min(strip_rows, g.oh - y)) for y in range(0, g.oh, strip_rows)]
    sizes = {rows: np.array(balanced(rows * g.ow, pixels)) for rows in {rows for _, rows in strips}}
    first = [y * g.ow + np.cumsum(sizes[rows]) - sizes[rows] for y, rows in strips]
    return np.concatenate(first), np.concatenate([sizes[rows] for _, rows in strips])


def reach(outputs: int, stride: int, pad: int, kernel: int, dilation: int, inputs: int) -> Int64:
    """int64[outputs, 2]: kernel positions [low, high) that lie inside the image, along one axis."""
    start = np.arange(outputs) * stride - pad
    low = np.clip(-(start // dilation), 0, kernel)
    high = np.clip(-((start - inputs) // dilation), 0, kernel)
    return np.stack((low, np.maximum(low, high)), 1)


def group_positions(reach_y: Int64, reach_x: Int64) -> tuple[tuple[tuple[int, ...], tuple[tuple[int, int], ...]], ...]:
    """Kernel positions by the pixels that they reach; int64[pixels, 2] each."""
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for r in range(int(reach_y[:, 0].min()), int(reach_y[:, 1].max())):
        for s in range(int(reach_x[:, 0].min()), int(reach_x[:, 1].max())):
            inside = (reach_y[:, 0] <= r) & (r < reach_y[:, 1]) & (reach_x[:, 0] <= s) & (s < reach_x[:, 1])
            if inside.any():
                groups.setdefault(tuple(map(int, np.flatnonzero(inside))), []).append((r, s))
    return tuple((pixels, tuple(positions)) for pixels, positions in sorted(groups.items()))


def unique_rows(rows: Int64) -> tuple[Int64, Int64]:
    """The index of an example of every different row, and for each row the number of its example."""
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, example, number = np.unique(keys, return_index=True, return_inverse=True)
    return example, number.astype(np.int64)
