"""Tap lists: where a kernel finds the source and the weights of its taps, as a constant of the plan."""

from collections.abc import Sequence
from math import prod

import numpy as np

from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.taps import TAP_CHANNELS, ConvTaps, DepthTaps, weights_rows
from asmdnn.primitives.convolution.tiles import Position
from asmdnn.records import dataclass, once

# Taps of a position that follow one another where its channels do: a line is read whole, before those of other
# positions push it out of L1.  Channels innermost on Zen 4, 3x3 of 384 with strides 1.06x, of 1024 at 7x7 1.18x.
NEIGHBOURS = 4


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
