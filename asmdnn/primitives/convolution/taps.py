"""Taps: for every pattern of tiles and every range of input channels, what a kernel's loops multiply, group by group.

tap_lists.py has where they lie.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from math import lcm

from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.planning.cuts import balanced
from asmdnn.primitives.convolution.element_axis import ElementAxis, pieces_of_runs
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.tiles import Pattern, Position, Positions
from asmdnn.records import dataclass

NEAR_BYTES = 2**30 - 1  # twice as far, from pixel to pixel and then from channel to channel, fits a displacement
TAP_CHANNELS = 8  # steps of input channels unrolled in a tap: code of a 28-register block stays below 3 KiB a group
NOT_NEIGHBOURS = (-1, 0, 0, 0)  # are the pixels of a group, which a place among groups cannot say
MOST_SIZES = 256  # whose taps are known
PatternPixels = tuple[int, Positions]  # of a pattern: how many, and what they reach
PART_CHANNELS = 128  # at most in a block of a deconvolution's weights: 8 KiB with 16 output channels


def weights_rows(steps: int, parts: int) -> int:
    """Steps of input channels in an inner block of the weights: those of a tap; or, as every part of a deconvolution
    reads some kernel positions of each block, so many that it reads long runs, which all sets of L1 hold."""
    if parts == 1 or steps <= TAP_CHANNELS:
        return min(TAP_CHANNELS, steps)
    blocks = -(-steps // PART_CHANNELS)
    return -(-steps // blocks // TAP_CHANNELS) * TAP_CHANNELS


def rows_of_panel(g: ConvGeometry) -> int:
    """Rows of a weights panel: kernel positions times padded input channels."""
    rows = weights_rows(g.steps, g.parts)
    return g.packed_positions * rows * -(-g.steps // rows)


@dataclass(frozen=True, slots=True)
class TapSizes:
    """What taps depend on beside the patterns of tiles: no image, so that the next one mostly has the same.

    block, near: steps in a block of src, and so many whose displacements fit, if fewer than a tap has; rows: of
    weights' blocks.  elements: the last axis, if it counts these.  joins: whether neighbouring positions are as one.
    """

    ic: int
    steps: int
    group: int
    block: int
    near: int
    rows: int
    elements: ElementAxis | None
    joins: bool


def sizes_of(g: ConvGeometry) -> TapSizes:
    last, steps = g.axes[-1], g.steps
    elements = last if isinstance(last, ElementAxis) else None
    return TapSizes(
        ic=g.ic,
        steps=steps,
        group=g.types.group,
        block=g.src.block,
        near=min(TAP_CHANNELS, 1 + NEAR_BYTES // max(1, g.src.channel_bytes)),
        rows=weights_rows(steps, g.parts),
        elements=elements,
        joins=elements is None and 2 * steps <= TAP_CHANNELS and g.positions_touch,
    )


def channel_runs(sizes: TapSizes, begin: int, end: int) -> list[tuple[int, int]]:
    """(first step, channels) of the runs in steps [begin, end) that one tap takes: dense in a block of source and of
    weights, and near enough for displacements in code."""
    steps = (sizes.near, TAP_CHANNELS, sizes.block)
    cuts = sorted({begin, end}.union(*(range((begin // step + 1) * step, end, step) for step in steps)))
    channels = [cut * sizes.group for cut in cuts]
    channels[-1] = min(sizes.ic, channels[-1])  # the last step may be cut
    return [(first, stop - start) for first, (start, stop) in zip(cuts, pairwise(channels), strict=False)]


@dataclass(frozen=True, slots=True)
class ConvTaps:
    """The taps of a group: runs of channels that start at steps `first`, each at every one of the kernel positions."""

    group: TapGroup
    first: tuple[int, ...]
    positions: tuple[Position, ...]

    @property
    def count(self) -> int:
        return len(self.first) * len(self.positions)


def taps_of(sizes: TapSizes, patterns: Sequence[PatternPixels], begin: int, end: int) -> list[list[ConvTaps]]:
    """For every pattern, the groups of its kernel for the steps [begin, end), with their taps."""
    first_of_size: dict[int, list[int]] = {}
    for first, size in channel_runs(sizes, begin, end):
        first_of_size.setdefault(size, []).append(first)
    runs = [(size, tuple(first)) for size, first in sorted(first_of_size.items(), reverse=True)]
    return with_all_edges(
        [
            [
                ConvTaps(TapGroup(pixels, size * length, begin), first, starts)
                for pixels, positions in pattern
                for length, begin, starts in runs_of_positions(sizes, positions)
                for size, first in runs
            ]
            for _, pattern in patterns
        ],
        [pixels for pixels, _ in patterns],
    )


def with_all_edges(patterns: list[list[ConvTaps]], sizes: Sequence[int]) -> list[list[ConvTaps]]:
    """The groups of patterns of so many pixels.  Where each is of neighbouring pixels, a pattern has those of all
    others, too, without taps: tiles inside an image and at either edge of it have one kernel.

    Taps of a pixel stay in their order.
    """
    places = [[edges_of(taps, size) for taps in groups] for groups, size in zip(patterns, sizes, strict=True)]
    if any(own != sorted({*own}) for own in places):  # in another order, or not of neighbours, who are in front
        return patterns
    every = sorted({place for own in places for place in own})
    if every and every[0] == NOT_NEIGHBOURS:
        return patterns
    found = []
    for groups, own, size in zip(patterns, places, sizes, strict=True):
        known = dict(zip(own, groups, strict=True))
        found.append([known.get(place) or without_taps(place, size) for place in every if place[0] - place[1] < size])
    return found


def edges_of(taps: ConvTaps, size: int) -> tuple[int, int, int, int]:
    """How many of so many pixels a group leaves out in front, and at the end, and its channels; the latter two are
    negative, as the most come first.  And the first channel that there is."""
    pixels, group = taps.group.pixels, taps.group
    if pixels[-1] - pixels[0] != len(pixels) - 1:
        return NOT_NEIGHBOURS
    return pixels[0], pixels[-1] + 1 - size, -group.channels, group.first


def without_taps(place: tuple[int, int, int, int], size: int) -> ConvTaps:
    """A group at a place that `edges_of` says."""
    front, end, channels, first = place
    return ConvTaps(TapGroup(tuple(range(front, size + end)), -channels, first), (), ())


@dataclass(frozen=True, slots=True, eq=False)
class DepthTaps:
    """The taps of a range of steps from `begin` on.

    patterns: for every pattern, the taps of its groups; those of the first range that is like this one, the same object
    for all of them, since ranges that differ by their place alone have the same kernels and lists.
    """

    begin: int
    patterns: list[list[ConvTaps]]


def taps_of_ranges(
    g: ConvGeometry, patterns: Sequence[Pattern], ranges: Sequence[tuple[int, int]]
) -> tuple[DepthTaps, ...]:
    """The taps of all ranges of steps."""
    pixels = [(len(pattern.src_pixel_bytes), pattern.positions) for pattern in patterns]
    return taps_of_sizes(sizes_of(g), tuple(pixels), tuple(ranges))


@lru_cache(MOST_SIZES)
def taps_of_sizes(
    sizes: TapSizes, patterns: tuple[PatternPixels, ...], ranges: tuple[tuple[int, int], ...]
) -> tuple[DepthTaps, ...]:
    """The same, which images have in common whose tiles reach alike."""
    found: dict[object, list[list[ConvTaps]]] = {}
    depths = []
    unit = lcm(sizes.block, sizes.rows)  # as far as blocks of src and weights come again
    for begin, end in ranges:
        alike = begin % unit, tuple((first - begin, count) for first, count in channel_runs(sizes, begin, end))
        if alike not in found:
            found[alike] = taps_of(sizes, patterns, begin, end)
        depths.append(DepthTaps(begin, found[alike]))
    return tuple(depths)


def runs_of_positions(sizes: TapSizes, positions: Sequence[Position]) -> list[tuple[int, int, tuple[Position, ...]]]:
    """(length, first channel that exists, first ones) of runs of kernel positions that one tap takes; along an axis of
    elements the length is of these, as a pixel of it has one.

    Where a pixel has few channels, and after the last of a position comes the first of the next one in its row, in src
    and in weights, several positions are as one with more channels: a tap of one channel is hardly more than its loop.
    """
    if sizes.elements:
        return pieces_of_runs(sizes.elements, positions, TAP_CHANNELS)
    if not sizes.joins:
        return [(1, 0, tuple(positions))]
    found: dict[int, list[Position]] = {}
    for _, row in groupby(enumerate(positions), lambda each: (each[1][:-1], each[1][-1] - each[0])):
        places = [position for _, position in row]
        begin = 0
        for length in balanced(len(places), max(1, sizes.near // sizes.steps)):
            found.setdefault(length, []).append(places[begin])
            begin += length
    return [(length, 0, tuple(first)) for length, first in sorted(found.items(), reverse=True)]
