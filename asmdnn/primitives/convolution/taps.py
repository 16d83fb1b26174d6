"""Tap lists: for every pattern of tiles and every range of input channels, where a kernel finds source and weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.tiles import Pattern, Position

NEAR_BYTES = 2**30 - 1  # twice as far, from pixel to pixel and then from channel to channel, fits a displacement
TAP_CHANNELS = 8  # input channels unrolled in a tap: code of a 28-register block stays below 3 KiB a group


def weights_rows(g: ConvGeometry) -> int:
    """Input channels in an inner block of the weights."""
    return min(TAP_CHANNELS, g.ic)


def rows_of_panel(g: ConvGeometry) -> int:
    """Rows of a weights panel: kernel positions times padded input channels."""
    rows = weights_rows(g)
    return g.packed_positions * rows * -(-g.ic // rows)


def channel_runs(g: ConvGeometry, begin: int, end: int) -> list[tuple[int, int]]:
    """(first, count) of the channels in [begin, end) that one tap takes: dense in a block of source and of weights, and
    near enough for displacements in code."""
    near = 1 + NEAR_BYTES // max(1, g.src.channel_bytes)
    steps = (min(TAP_CHANNELS, near), TAP_CHANNELS, g.src.block)
    cuts = sorted({begin, end, *(c for step in steps for c in range(0, g.ic, step) if begin < c < end)})
    return [(first, stop - first) for first, stop in pairwise(cuts)]


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps of a group: runs of channels that start at `first`, each at every one of the kernel positions."""

    group: TapGroup
    first: tuple[int, ...]
    positions: tuple[Position, ...]

    @property
    def count(self) -> int:
        return len(self.first) * len(self.positions)


def taps_of(g: ConvGeometry, pattern: Pattern, begin: int, end: int) -> list[Taps]:
    """The groups of a pattern's kernel for the channels [begin, end), with their taps."""
    first_of_size: dict[int, list[int]] = {}
    for first, size in channel_runs(g, begin, end):
        first_of_size.setdefault(size, []).append(first)
    sizes = sorted(first_of_size.items(), reverse=True)
    return [
        Taps(TapGroup(pixels, size), tuple(first), positions)
        for pixels, positions in pattern.positions
        for size, first in sizes
    ]


def make_tap_lists(
    g: ConvGeometry, patterns: Sequence[Pattern], depths: Sequence[tuple[int, int]], row_bytes: int
) -> tuple[Int64, Int64]:
    """The constant that holds all lists, and int64[depths, patterns]: where each starts in it, in bytes."""
    starts = np.empty((len(depths), len(patterns)), np.int64)
    lists: list[Int64] = []
    at = 0
    for d, (begin, end) in enumerate(depths):
        for p, pattern in enumerate(patterns):
            starts[d, p] = at
            for taps in taps_of(g, pattern, begin, end):
                lists += [np.array([taps.count]), tap_offsets(g, taps, row_bytes, weights_rows(g)).ravel()]
                at += 8 + 16 * taps.count
    return np.concatenate([*lists, np.zeros(0, np.int64)]).astype(np.int64), starts


def tap_offsets(g: ConvGeometry, taps: Taps, row_bytes: int, rows: int) -> Int64:
    """int64[channel runs, positions, 2]: bytes from the tile's source pixel, and from the panel's start.

    rows: input channels in an inner block of the weights.
    """
    c = np.array(taps.first)[:, None]
    block, src = c // rows, np.array([[g.src.channel(first)] for first in taps.first])
    for axis, step, at in zip(g.axes, g.src.axis_bytes, np.array(taps.positions).T, strict=True):
        packed = axis.all_positions
        src = src + at * (axis.d * step)
        block = block * packed.size + packed.first + at * packed.step
    return np.stack((src, row_bytes * (block * rows + c % rows)), axis=2)
