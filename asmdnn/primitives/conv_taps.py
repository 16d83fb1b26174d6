"""Tap lists: for every pattern of tiles and every range of input channels, where a kernel finds source and weights."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from asmdnn.generators.conv import TapGroup
from asmdnn.primitives.conv_geometry import ConvGeometry
from asmdnn.primitives.conv_tiles import Int64, Pattern

TAP_CHANNELS = 8  # input channels unrolled in a tap: code of a 28-register block stays below 3 KiB a group

Tap = tuple[int, int, int]  # first channel, kernel row, kernel column


def weights_rows(g: ConvGeometry) -> int:
    """Input channels in an inner block of the weights."""
    return min(TAP_CHANNELS, g.ic)


def rows_of_panel(g: ConvGeometry) -> int:
    """Rows of a weights panel: kernel positions times padded input channels."""
    rows = weights_rows(g)
    return g.kh * g.kw * rows * -(-g.ic // rows)


def channel_runs(g: ConvGeometry, begin: int, end: int) -> list[tuple[int, int]]:
    """(first, count) of the channels in [begin, end) that one tap takes: dense in a block of source and of weights."""
    cuts = sorted(
        {begin, end, *(c for step in (TAP_CHANNELS, g.src.block) for c in range(0, g.ic, step) if begin < c < end)}
    )
    return [(first, stop - first) for first, stop in pairwise(cuts)]


def tap_groups(g: ConvGeometry, pattern: Pattern, begin: int, end: int) -> list[tuple[TapGroup, list[Tap]]]:
    """The groups of a pattern's kernel, each with its taps in the order of the weights."""
    runs = channel_runs(g, begin, end)
    sizes = sorted({count for _, count in runs}, reverse=True)
    return [
        (TapGroup(pixels, size), [(c, r, s) for c, count in runs if count == size for r, s in positions])
        for pixels, positions in pattern.positions
        for size in sizes
    ]


def make_tap_lists(
    g: ConvGeometry, patterns: Sequence[Pattern], depths: Sequence[tuple[int, int]], row_bytes: int
) -> tuple[Int64, Int64]:
    """The constant that holds all lists, and int64[depths, patterns]: where each starts in it, in bytes."""
    values: list[int] = []
    starts = np.empty((len(depths), len(patterns)), np.int64)
    for d, (begin, end) in enumerate(depths):
        for p, pattern in enumerate(patterns):
            starts[d, p] = 8 * len(values)
            for _, taps in tap_groups(g, pattern, begin, end):
                values.append(len(taps))
                for tap in taps:
                    values += tap_offsets(g, tap, row_bytes)
    return np.array(values, np.int64), starts


def tap_offsets(g: ConvGeometry, tap: Tap, row_bytes: int) -> tuple[int, int]:
    """Bytes from the tile's source pixel, and from the panel's start."""
    c, r, s = tap
    rows = weights_rows(g)
    return (
        g.src.channel(c) + r * g.dh * g.src.row_bytes + s * g.dw * g.src.pixel_bytes,
        row_bytes * (((c // rows * g.kh + r) * g.kw + s) * rows + c % rows),
    )
