"""What gradients of weights are cut into: rows of panels in units, pixels in chunks; and which pixels rows reach."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, product

import numpy as np

from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.records import dataclass
from asmdnn.types import f32

RUN = 8  # steps of a tap, a pixel each or a pair: unrolled
FEW_CHANNELS = 4  # up to so many, rows are those of all positions of the last axis


@dataclass(frozen=True, slots=True)
class GradientPanels:
    """diff_weights as forward convolutions read them: panels of `vectors` vectors, blocks of `rows` input channels.

    by_channel: blocks are of one channel, whose positions follow one another, so that transposing makes panels
    row-major; a tile is of several channels at one position."""

    vectors: int
    rows: int
    lanes: int
    by_channel: bool = False

    @property
    def row_bytes(self) -> int:
        return f32.size_bytes * self.vectors * self.lanes

    def apart(self, g: ConvGeometry) -> int:
        """Rows from an input channel to the next one in a tile."""
        return g.positions if self.by_channel else 1

    def place(self, g: ConvGeometry, channel: int, position: int) -> int:
        """The row of an input channel at a kernel position, in a panel."""
        return (channel // self.rows * g.positions + position) * self.rows + channel % self.rows

    def panel_bytes(self, g: ConvGeometry) -> int:
        return self.row_bytes * g.positions * -(-g.ic // self.rows) * self.rows


@dataclass(frozen=True, slots=True)
class PanelRow:
    """A row of a panel: an input channel, None in the padding, and its position of the last axis."""

    channel: int | None
    position: int


@dataclass(frozen=True, slots=True)
class RowUnit:
    """Rows of a panel that are computed together, at one position of the outer axes; `first` says where they begin.

    sums: whether diff_dst is summed beside them, for a bias.
    """

    outer: tuple[int, ...]
    rows: tuple[PanelRow, ...]
    first: int
    sums: bool = False


@dataclass(frozen=True, slots=True)
class PixelPairs:
    """Of pixels that are multiplied in pairs: what a geometry of one step a pair does not say.

    along: of every position of the last axis, the bytes from where a row of src begins to what the row's first pair
    reads.  missing: pixels of a row's last pair that are not there.
    """

    along: tuple[int, ...]
    missing: int


@dataclass(frozen=True, slots=True)
class PixelChunk:
    """Output pixels: some rows, in raster order of the outer axes, and of each the columns [begin, end)."""

    rows: range
    begin: int
    end: int


def units_of(g: ConvGeometry, panels: GradientPanels, most: int) -> list[RowUnit]:
    """Of a panel, `most` rows each at most."""
    last, outer = g.axes[-1].k, list(product(*(range(axis.k) for axis in g.axes[:-1])))
    found = []
    for index, position in enumerate(outer):
        for rows in row_blocks(g, panels, most):
            first = rows[0]
            channel = first[0]
            found.append(
                RowUnit(
                    position,
                    tuple(PanelRow(c if c < g.ic else None, s) for c, s in rows),
                    panels.place(g, channel, index * last + first[1]),
                )
            )
    return sorted(found, key=lambda unit: unit.first)


def row_blocks(g: ConvGeometry, panels: GradientPanels, most: int) -> Iterator[list[tuple[int, int]]]:
    """(channel, position of the last axis) of the rows of tiles, which lie one after another in a panel."""
    last = range(g.axes[-1].k)
    if g.ic <= FEW_CHANNELS:
        yield from cut([(c, s) for s in last for c in range(g.ic)], most)
        return
    if panels.by_channel:
        for s in last:
            yield from cut([(c, s) for c in range(g.ic)], most)
        return
    blocks = range(0, g.ic, panels.rows)
    runs = [[(block + c, s) for s in last for c in range(panels.rows)] for block in blocks]
    for run in [[*chain(*runs)]] if g.positions == 1 else runs:
        yield from cut(run, most)


def cut(rows: list[tuple[int, int]], most: int) -> Iterator[list[tuple[int, int]]]:
    at = 0
    for count in balanced(len(rows), most):
        yield rows[at : at + count]
        at += count


def chunks_of(g: ConvGeometry, pixels: int) -> list[PixelChunk]:
    """Of an image: rows, or parts of long ones, with about so many pixels each."""
    width, rows = g.width, g.rows
    if not width * rows * g.mb:
        return [PixelChunk(range(0), 0, 0)]
    found = []
    if width > 2 * pixels:
        at = 0
        for count in balanced(-(-width // RUN), max(1, pixels // RUN)):
            end = min(width, at + count * RUN)
            found += [PixelChunk(range(row, row + 1), at, end) for row in range(rows)]
            at = end
        return found
    at = 0
    for count in balanced(rows, max(1, pixels // max(1, width))):
        found.append(PixelChunk(range(at, at + count), 0, width))
        at += count
    return found


def reached(axis: Axis, position: int) -> tuple[int, int]:
    """The outputs [low, high) for which a kernel position lies inside src."""
    shift = position * axis.d - axis.p
    low = max(0, -(shift // axis.s))
    high = min(axis.o, (axis.i - 1 - shift) // axis.s + 1)
    return low, max(low, high)


def with_sums(g: ConvGeometry, units: list[RowUnit], most: int) -> list[RowUnit]:
    """The same, of which one sums diff_dst: it reaches all of it, and has a register for its sums.

    A unit of `most` rows, as many as registers hold, becomes two.  As they are, if none reaches all rows of diff_dst.
    """
    whole = [
        i
        for i, unit in enumerate(units)
        if all(reached(axis, at) == (0, axis.o) for axis, at in zip(g.axes[:-1], unit.outer, strict=True))
    ]
    if not whole:
        return units
    number = next((i for i in whole if len(units[i].rows) < most), whole[0])
    unit = units[number]
    size = len(unit.rows) if len(unit.rows) < most else most // 2
    parts = [RowUnit(unit.outer, unit.rows[:size], unit.first, sums=True)]
    if unit.rows[size:]:
        parts.append(RowUnit(unit.outer, unit.rows[size:], unit.first + size))
    return [*units[:number], *parts, *units[number + 1 :]]


def segments(
    g: ConvGeometry, rows: tuple[PanelRow, ...], chunk: PixelChunk, sums: bool = False
) -> list[tuple[tuple[int, ...], int, int]]:
    """(numbers of the rows, begin, end): the columns of a chunk, by which rows they reach inside src; with sums, those
    that none reaches, too."""
    axis = g.axes[-1]
    reach = {s: reached(axis, s) for s in {row.position for row in rows}}
    ends = {chunk.begin, chunk.end}
    ends |= {min(max(x, chunk.begin), chunk.end) for pair in reach.values() for x in pair}
    found = []
    for begin, end in pairwise(sorted(ends)):
        inside = {s for s, (low, high) in reach.items() if low <= begin and end <= high}
        numbers = tuple(i for i, row in enumerate(rows) if row.channel is not None and row.position in inside)
        if numbers or (sums and begin < end):
            found.append((numbers, begin, end))
    return found


def offsets_of_rows(g: ConvGeometry, outer: tuple[int, ...], rows: Sequence[int]) -> Int64:
    """int64[rows inside, 2]: where the row that each output row reads begins in src, and the output row in diff_dst."""
    if not g.axes[:-1]:
        return np.zeros((1, 2), np.int64)
    places = np.unravel_index(np.array(rows, np.int64), tuple(axis.o for axis in g.axes[:-1]))
    inside = np.ones(len(rows), bool)
    src, dst = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for axis, at, position, src_step, dst_step in zip(
        g.axes[:-1], places, outer, g.src.axis_bytes, g.dst.axis_bytes, strict=False
    ):
        low, high = reached(axis, position)
        inside &= (low <= at) & (at < high)
        src += (at * axis.s + position * axis.d - axis.p) * src_step
        dst += at * dst_step
    return np.stack((src, dst), 1)[inside]


def runs(count: int, missing: int = 0) -> list[tuple[int, int, int]]:
    """(steps, how many, pixels that are missing) of the taps of a segment; missing: in the last step of all."""
    whole = balanced(count, RUN)
    found = [(size, whole.count(size), 0) for size in sorted(set(whole), reverse=True)]
    if not missing:
        return found
    *found, (size, times, _) = found
    return [*found, *[(size, times - 1, 0)] * (times > 1), (size, 1, missing)]
