"""Tap lists: for every pattern of tiles and every range of input channels, where a kernel finds source and weights."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import lcm, prod

import numpy as np

from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.element_axis import ElementAxis, pieces_of_runs
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.tiles import Pattern, Position
from asmdnn.records import dataclass, once

NEAR_BYTES = 2**30 - 1  # twice as far, from pixel to pixel and then from channel to channel, fits a displacement
# Taps of a position that follow one another where its channels do: a line is read whole, before those of other
# positions push it out of L1.  Channels innermost on Zen 4, 3x3 of 384 with strides 1.06x, of 1024 at 7x7 1.18x.
NEIGHBOURS = 4
TAP_CHANNELS = 8  # steps of input channels unrolled in a tap: code of a 28-register block stays below 3 KiB a group
NOT_NEIGHBOURS = (-1, 0, 0, 0)  # are the pixels of a group, which a place among groups cannot say
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


def channel_runs(g: ConvGeometry, begin: int, end: int) -> list[tuple[int, int]]:
    """(first step, channels) of the runs in steps [begin, end) that one tap takes: dense in a block of source and of
    weights, and near enough for displacements in code."""
    near = 1 + NEAR_BYTES // max(1, g.src.channel_bytes)
    steps = (min(TAP_CHANNELS, near), TAP_CHANNELS, g.src.block)
    cuts = sorted({begin, end}.union(*(range((begin // step + 1) * step, end, step) for step in steps)))
    group = g.types.group
    channels = [cut * group for cut in cuts]
    channels[-1] = min(g.ic, channels[-1])  # the last step may be cut
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


def taps_of(g: ConvGeometry, patterns: Sequence[Pattern], begin: int, end: int) -> list[list[ConvTaps]]:
    """For every pattern, the groups of its kernel for the steps [begin, end), with their taps."""
    first_of_size: dict[int, list[int]] = {}
    for first, size in channel_runs(g, begin, end):
        first_of_size.setdefault(size, []).append(first)
    sizes = [(size, tuple(first)) for size, first in sorted(first_of_size.items(), reverse=True)]
    return with_all_edges(
        [
            [
                ConvTaps(TapGroup(pixels, size * length, begin), first, starts)
                for pixels, positions in pattern.positions
                for length, begin, starts in runs_of_positions(g, positions)
                for size, first in sizes
            ]
            for pattern in patterns
        ],
        [len(pattern.src_pixel_bytes) for pattern in patterns],
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


def taps_of_ranges(g: ConvGeometry, patterns: Sequence[Pattern], ranges: Sequence[tuple[int, int]]) -> list[DepthTaps]:
    """The taps of all ranges of steps."""
    found: dict[object, list[list[ConvTaps]]] = {}
    depths = []
    unit = lcm(g.src.block, weights_rows(g.steps, g.parts))  # as far as blocks of src and weights come again
    for begin, end in ranges:
        alike = begin % unit, tuple((first - begin, count) for first, count in channel_runs(g, begin, end))
        if alike not in found:
            found[alike] = taps_of(g, patterns, begin, end)
        depths.append(DepthTaps(begin, found[alike]))
    return depths


def runs_of_positions(g: ConvGeometry, positions: Sequence[Position]) -> list[tuple[int, int, tuple[Position, ...]]]:
    """(length, first channel that exists, first ones) of runs of kernel positions that one tap takes; along an axis of
    elements the length is of these, as a pixel of it has one.

    Where a pixel has few channels, and after the last of a position comes the first of the next one in its row, in src
    and in weights, several positions are as one with more channels: a tap of one channel is hardly more than its loop.
    """
    last = g.axes[-1]
    if isinstance(last, ElementAxis):
        return pieces_of_runs(last, positions, TAP_CHANNELS)
    if 2 * g.steps > TAP_CHANNELS or not g.positions_touch:
        return [(1, 0, tuple(positions))]
    most = min(TAP_CHANNELS, 1 + NEAR_BYTES // max(1, g.src.channel_bytes))
    found: dict[int, list[Position]] = {}
    for _, row in groupby(enumerate(positions), lambda each: (each[1][:-1], each[1][-1] - each[0])):
        places = [position for _, position in row]
        begin = 0
        for length in balanced(len(places), max(1, most // g.steps)):
            found.setdefault(length, []).append(places[begin])
            begin += length
    return [(length, 0, tuple(first)) for length, first in sorted(found.items(), reverse=True)]


def make_tap_lists(g: ConvGeometry, depths: Sequence[DepthTaps], row_bytes: int) -> tuple[Int64, Int64]:
    """Of all depths: the constant that holds all lists, and int64[depths, patterns]: where each starts in it, in
    bytes."""
    offsets = TapOffsets(g, row_bytes, weights_rows(g.steps, g.parts))
    made: dict[int, TapLists] = {}
    lists, starts, at = [], [], 0
    for depth in depths:
        alike = made.get(id(depth.patterns))
        if alike is None:
            alike = made[id(depth.patterns)] = lists_of(offsets, depth)
            lists.append(alike.words)
        else:
            lists.append(alike.moved(offsets.first_channel(depth) - offsets.first_channel(alike.depth)))
        starts.append(at + alike.starts)
        at += lists[-1].nbytes
    return np.concatenate(lists), np.array(starts)


@dataclass(frozen=True, eq=False)
class TapLists:
    """The lists of all patterns for a range of channels.

    words: counts, and offsets in src and weights; counts: of every group; starts: in bytes, of every pattern's.
    """

    depth: DepthTaps
    words: Int64
    counts: Sequence[int]
    starts: Int64

    def moved(self, offsets: Int64) -> Int64:
        """The same for channels so many bytes further in src and weights."""
        words: Int64 = self.words + np.array((0, *offsets))[self.kinds]
        return words

    @once
    def kinds(self) -> Int64:
        """Which each word is, 0, 1 or 2."""
        kinds: Int64 = np.concatenate([np.zeros(0, np.int64), *((0, *(1, 2) * count) for count in self.counts)])
        return kinds


def lists_of(offsets: "TapOffsets", depth: DepthTaps) -> TapLists:
    words, counts, starts, at = [np.zeros(0, np.int64)], list[int](), [], 0
    for groups in depth.patterns:
        starts.append(8 * at)
        for group in groups:
            words += [np.array((group.count,)), offsets.of(group)]
            counts.append(group.count)
            at += 1 + 2 * group.count
    return TapLists(depth, np.concatenate(words), counts, np.array(starts, np.int64))


class TapOffsets:
    """Where taps lie; patterns have many runs of channels and many kernel positions in common.

    rows: steps in an inner block of the weights.
    """

    def __init__(self, g: ConvGeometry, row_bytes: int, rows: int) -> None:
        self.g, self.row_bytes, self.rows = g, row_bytes, rows
        self.packed = [axis.all_positions for axis in g.axes]
        sizes = [packed.size for packed in self.packed]
        self.packed_positions = prod(sizes)
        self.inner = [prod(sizes[a + 1 :]) for a in range(len(sizes))]
        self.channels: dict[tuple[int, ...], Int64] = {}
        self.positions: dict[tuple[Position, ...], Int64] = {}
        self.found: dict[tuple[tuple[int, ...], tuple[Position, ...]], Int64] = {}  # patterns have them in common

    def of(self, taps: ConvTaps) -> Int64:
        """int64[channel runs * positions * 2]: bytes from the tile's source pixel, and from the panel's start.

        Runs of channels one after the other, each at every position; but several at a time where a pixel has many."""
        if not taps.count:
            return np.zeros(0, np.int64)
        key = taps.first, taps.positions
        if key not in self.found:
            self.found[key] = self.found_of(taps)
        return self.found[key]

    def found_of(self, taps: ConvTaps) -> Int64:
        channels = self.channels.get(taps.first)
        if channels is None:
            channels = self.channels[taps.first] = self.of_channels(np.array(taps.first, np.int64))
        positions = self.positions.get(taps.positions)
        if positions is None:
            positions = self.positions[taps.positions] = self.of_positions(np.array(taps.positions, np.int64))
        src = self.g.src
        many = src.is_dense and src.pixel_bytes > NEIGHBOURS * TAP_CHANNELS * src.element_bytes
        several = NEIGHBOURS if many else 1
        whole = len(channels) // several * several
        blocks: Int64 = channels[:whole].reshape(-1, 1, several, 2) + positions[:, None]
        if whole == len(channels):
            return blocks.ravel()
        return np.concatenate((blocks.ravel(), (positions[:, None] + channels[whole:]).ravel()))

    def first_channel(self, depth: DepthTaps) -> Int64:
        """int64[2]: what the first step of a range adds."""
        found: Int64 = self.of_channels(np.array((depth.begin,)))[0]
        return found

    def of_channels(self, c: Int64) -> Int64:
        """int64[channel runs, 2]: what the first step of a run adds."""
        row = c // self.rows * self.packed_positions * self.rows + c % self.rows
        return np.array((self.g.src.channels(c), self.row_bytes * row)).T

    def of_positions(self, at: Int64) -> Int64:
        """int64[positions, 2]: what a kernel position adds."""
        along = zip(self.g.axes, at.T, self.g.src.axis_bytes, strict=True)
        src = sum(axis.steps(there) * step for axis, there, step in along)
        steps = [packed.step * size for packed, size in zip(self.packed, self.inner, strict=True)]
        first = sum(packed.first * size for packed, size in zip(self.packed, self.inner, strict=True))
        return np.array((src, self.row_bytes * self.rows * (first + at @ steps))).T
