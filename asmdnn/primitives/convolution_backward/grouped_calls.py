"""The calls of kernels that sum gradients of weights of groups with few channels: some columns of the kernel, a chunk
of pixels each.

Where a level multiplies pairs of bf16, two rows of an image are a tap, and rows that are left are another call.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from asmdnn.generators.dot.grouped_weights import ColumnRun, GroupedWeightsSpec
from asmdnn.generators.dot.row_factors import row_terms
from asmdnn.generators.dot.sums_in_registers import joins_lines
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.phase import MOST_CYCLES, Int64
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution_backward.weights_tiles import CALL_CYCLES
from asmdnn.primitives.convolution_backward.weights_units import (
    PanelRow,
    PixelChunk,
    offsets_of_rows,
    reached,
    segments,
)
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32

POSITION_CYCLES = 4  # a sum comes together and is stored


@dataclass(frozen=True, slots=True)
class GroupedJob:
    """dtype: of src and diff_dst.  group: channels of one.  chunks: of an image, in ranges whose sums are computed
    apart.  images: of a phase.  sets: of positions of the last axis, as many as a kernel takes.
    beyond_l2: whether src is larger.  overlaps: whether the last vector of channels begins in the one before."""

    g: ConvGeometry
    isa: str
    dtype: DataType
    channels: int
    group: int
    chunks: tuple[tuple[PixelChunk, ...], ...]
    images: int
    sets: tuple[range, ...]
    beyond_l2: bool
    overlaps: bool = False

    @property
    def prefetched(self) -> tuple[int, ...]:
        """Lines of a column of src where the next row of diff_dst has it, from its own place.

        With strides a column has several pixels, of which each call takes some, and waits for them: g32 256 channels at
        56x56, 4 images, 1.3 times as fast on Zen 5.  Depthwise kernels, and those without strides, gain nothing.
        """
        if len(self.g.axes) == 1 or self.group == 1 or self.g.axes[-1].s == 1 or not self.beyond_l2:
            return ()
        below = self.g.axes[-2].s * self.g.src.axis_bytes[-2]
        pixels = (i * self.g.src.pixel_bytes for i in range(self.g.axes[-1].s))
        return tuple(sorted({below + at // LINE_BYTES * LINE_BYTES for at in pixels}))

    @property
    def joined(self) -> bool:
        """Whether all lines of the kernel are computed at once.  Pairs of rows are for each line alone."""
        axis, lines = self.g.axes[-1], self.g.axes[-2].k
        places = tuple((s * axis.d - axis.p) * self.g.src.pixel_bytes for s in range(axis.k))
        alone = row_terms(self.dtype, self.isa) is None
        return alone and joins_lines(
            lines, places, axis.s * self.g.src.pixel_bytes, self.isa, self.dtype, self.group
        )

    @property
    def vectors(self) -> int:
        return -(-self.channels // lanes_of(self.isa))

    @property
    def vector_bytes(self) -> int:
        """Of a row of weights: a vector of channels at a position."""
        return f32.size_bytes * lanes_of(self.isa)

    @property
    def weights_bytes(self) -> int:
        return self.vectors * self.group * self.input_bytes

    @property
    def input_bytes(self) -> int:
        """From an input of the groups of a vector to the next one."""
        return self.g.positions * self.vector_bytes


@dataclass(frozen=True, slots=True)
class LineRun:
    """Lines of the kernel that rows of diff_dst reach inside src, all of them: `count` from position `first` of the
    outer axes on, which is the line number `index`.  goes_on: whether the sums are others' already."""

    first: tuple[int, ...]
    index: int
    count: int
    rows: Sequence[int]
    goes_on: bool = False


def line_runs(job: GroupedJob, rows: range) -> Iterator[LineRun]:
    """All lines, with the rows of a chunk: together where registers hold their sums, first those of most lines."""
    if not job.g.axes[:-1]:
        yield LineRun((), 0, 1, rows)
        return
    *outer, axis = job.g.axes[:-1]
    for n, prefix in enumerate(product(*(range(each.k) for each in outer))):
        found = by_reach(axis, rows) if job.joined else {}
        for begin, end in sorted(found, key=lambda lines: (lines[0] - lines[1], lines)):
            is_part = (begin, end) != (0, axis.k)
            if (0, axis.k) in found:
                yield LineRun((*prefix, begin), n * axis.k + begin, end - begin, found[begin, end], is_part)
        if (0, axis.k) not in found:
            yield from (LineRun((*prefix, r), n * axis.k + r, 1, rows) for r in range(axis.k))


def by_reach(axis: Axis, rows: range) -> dict[tuple[int, int], list[int]]:
    """Rows by the lines [begin, end) of the kernel that they reach inside src."""
    reach = [reached(axis, r) for r in range(axis.k)]
    found: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        inside = [r for r, (low, high) in enumerate(reach) if low <= row % axis.o < high]
        if inside:
            found.setdefault((inside[0], inside[-1] + 1), []).append(row)
    return found


Call = tuple[int, Int64, int]  # kernel, offsets, cycles


def calls(
    job: GroupedJob,
    specs: dict[GroupedWeightsSpec, int],
    words: list[Int64],
    run: LineRun,
    positions: range,
    chunk: PixelChunk,
    accumulate: bool,
) -> Iterator[Call]:
    """For lines of the kernel, some positions of the last axis, and the columns of a chunk."""
    g, axis = job.g, job.g.axes[-1]
    found = segments(g, tuple(PanelRow(0, s) for s in positions), chunk)
    alone = GroupedWeightsSpec(
        isa=job.isa, positions=tuple((s * axis.d - axis.p) * g.src.pixel_bytes for s in positions),
        segments=tuple(ColumnRun(numbers, begin, end - begin) for numbers, begin, end in found),
        src_step=axis.s * g.src.pixel_bytes, dst_step=g.dst.pixel_bytes, weights_step=job.vector_bytes,
        accumulate=accumulate or run.goes_on, dtype=job.dtype,
        lines=tuple(n * g.axes[-2].d * g.src.axis_bytes[-2] if n else 0 for n in range(run.count)),
        group=job.group, input_step=job.input_bytes if job.group > 1 else 0,
        prefetched=job.prefetched,
    )  # fmt: skip
    pixels = sum((end - begin) * (1 + job.group * run.count * len(numbers)) for numbers, begin, end in found)
    for spec, taps in taps_of(job, alone, run):
        start = sum(map(len, words))
        words.append(np.concatenate((np.array((len(taps),)), taps.ravel())))
        place = (run.index * axis.k + positions[0]) * job.vector_bytes
        offsets = np.array((g.src.start_bytes, g.dst.start_bytes, place, 8 * start))
        cycles = CALL_CYCLES + POSITION_CYCLES * spec.count + len(taps) * pixels
        yield specs.setdefault(spec, len(specs)), offsets, min(cycles, MOST_CYCLES)


def taps_of(job: GroupedJob, alone: GroupedWeightsSpec, run: LineRun) -> list[tuple[GroupedWeightsSpec, Int64]]:
    """Kernels, the second going on with the sums of the first, and their taps: pairs of rows, then those left."""
    g = job.g
    lines = offsets_of_rows(g, run.first, run.rows)
    images = np.arange(job.images)[:, None, None] * np.array((g.src.image_bytes, g.dst.image_bytes))
    if row_terms(job.dtype, job.isa) is None or not g.axes[:-1]:
        return [(alone, (images + lines).reshape(-1, 2))]
    axis = g.axes[-2]
    apart = (axis.s * g.src.axis_bytes[-2], g.dst.axis_bytes[-2])
    firsts, left = in_pairs(lines, apart)
    pairs, rest = ((images + some).reshape(-1, 2) for some in (firsts, left))
    if not len(pairs):
        return [(alone, rest)]
    found = [(replace(alone, second_row=apart), pairs)]
    return found + [(replace(alone, accumulate=True), rest)] * bool(len(rest))


def in_pairs(lines: Int64, apart: tuple[int, int]) -> tuple[Int64, Int64]:
    """Of rows in order the first ones of pairs that are so far apart, and those of no pair."""
    follows = [*(np.diff(lines, axis=0) == apart).all(1).tolist(), False]
    firsts: list[int] = []
    left: list[int] = []
    at = 0
    while at < len(lines):
        (firsts if follows[at] else left).append(at)
        at += 1 + follows[at]
    return lines[firsts], lines[left]
