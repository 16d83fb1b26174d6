"""Gradients of a convolution's weights by the tile kernel of forward convolutions, whose roles change:

    diff_weights[o, i, r, s] = sum over n, v, u of diff_dst[n, o, v, u] * src[n, i, v*sh + r*dh - pt, u*sw + s*dw - pl]

The kernel's "pixels" are rows of the weights' panels, input channels of a kernel position; its "input channels" are
neighbouring pixels of an output row; its "weights" are the vectors of output channels of these pixels of diff_dst; and
its taps are runs of up to 8 pixels, in rows and images.  So a tile of diff_weights stays in registers for a chunk of
pixels.  Which pixels a kernel position reaches inside src is in the tap lists: padding costs nothing and is never read.

A *chunk* is as many pixels as L1 holds the source and diff_dst of; a *unit* is some rows of a panel: of a block of
input channels, or of few channels at all positions of the last axis.  It has all chunks of an image, or of some small
ones, one after the other; the next images go on with what these have left, as phases that continue one another.
"""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS, TapGroup
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import MOST_CYCLES, NOTHING, Int64, Phase, View, records_of
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution_backward.weights_units import (
    FEW_CHANNELS,
    RUN,
    GradientPanels,
    PixelChunk,
    PixelPairs,
    RowUnit,
    chunks_of,
    offsets_of_rows,
    runs,
    segments,
    units_of,
    with_sums,
)
from asmdnn.records import dataclass, field, replace
from asmdnn.types import f32

CHUNK_BYTES, LARGE_CHUNK_BYTES = 32 << 10, 160 << 10  # of src and diff_dst: in L1; in L2, where diff_weights are not
NEAR_BYTES = 512 << 10  # of diff_weights that stay in L2 from chunk to chunk
SHARES = 16  # of threads: into so many sets units are cut, if they are so many
LEAST_SHARES, LEAST_CHUNKS = 8, 4  # where they are fewer, chunks are, in ranges of at least so many
CALL_CYCLES = 40
TAPS = "taps"  # a constant


@dataclass(eq=False)
class Tables:
    """Kernels and tap lists, each once."""

    isa: str
    specs: dict[ConvTileSpec, int] = field(default_factory=dict)
    lists: dict[object, int] = field(default_factory=dict)  # where they begin, in words
    words: list[Int64] = field(default_factory=list)
    size: int = 0

    def kernel(self, spec: ConvTileSpec) -> int:
        return self.specs.setdefault(spec, len(self.specs))

    def list_of(self, words: Int64) -> int:
        """Where it begins, in bytes."""
        key = words.tobytes()
        if key not in self.lists:
            self.lists[key] = self.size
            self.words.append(words)
            self.size += len(words)
        return 8 * self.lists[key]


@dataclass(frozen=True, slots=True)
class TilesJob:
    """What is computed: a geometry and its panels.

    rows: of a tile, at most.  images: of a phase.  pixels: of a chunk, in one image.  ranges: of chunks, [begin, end),
    whose sums are computed apart from those of the others, one set of weights after the other.  pairs: if each step of
    a row is a pair of pixels.  most: rows of a tile that registers hold, if the tiles of a unit sum diff_dst, too.
    """

    g: ConvGeometry
    panels: GradientPanels
    isa: str
    rows: int
    images: int
    pixels: int
    ranges: tuple[tuple[int, int], ...] = ((0, 1),)
    pairs: PixelPairs | None = None
    most: int = 0

    def along(self, position: int) -> int:
        """From where a row of src begins, in bytes, what a row's first step reads at a position of the last axis."""
        axis = self.g.axes[-1]
        return self.pairs.along[position] if self.pairs else (position * axis.d - axis.p) * self.g.src.pixel_bytes

    def missing(self, end: int) -> int:
        """Pixels of the step before column `end` that are not there."""
        return self.pairs.missing if self.pairs and end == self.g.width else 0

    @property
    def panel_count(self) -> int:
        """Of a group of channels."""
        return -(-self.g.oc // (self.panels.vectors * self.panels.lanes))

    def panels_by_channels(self) -> list[tuple[int, list[int]]]:
        """(channels, panels of a group that have so many): the last one may have fewer.  They are rounded up to whole
        vectors where nothing tells these apart."""
        lanes, whole = self.panels.lanes, range(self.panel_count)
        every = self.g.oc if self.most else -(-self.g.oc // lanes) * lanes
        of_panel = self.panels.vectors * lanes
        of_last = every - (self.panel_count - 1) * of_panel
        if of_last == of_panel:
            return [(of_last, [*whole])]
        return [pair for pair in ((of_panel, [*whole[:-1]]), (of_last, [*whole[-1:]])) if pair[1]]

    @property
    def weights_bytes(self) -> int:
        """Of all groups."""
        return self.g.groups * self.panel_count * self.panels.panel_bytes(self.g)

    def unit_sets(self) -> list[list[RowUnit]]:
        """The units of a panel, in sets: small enough for L2, and so many that threads can share them."""
        units = units_of(self.g, self.panels, self.rows)
        if self.most:
            units = with_sums(self.g, units, self.most)
        set_bytes = self.panels.panel_bytes(self.g)
        near, shared = -(-set_bytes // (NEAR_BYTES // 2)), -(-SHARES // (self.panel_count * self.g.groups))
        found, at = [], 0
        for count in balanced(len(units), -(-len(units) // min(len(units), max(near, shared)))):
            found.append(units[at : at + count])
            at += count
        return found


def job_of(g: ConvGeometry, panels: GradientPanels, isa: str, most: int) -> TilesJob:
    """Chunks by what the caches hold, and ranges of chunks where there are few tiles: by the shape alone.

    most: rows of a tile that registers hold.  Sums of a block's channels at one position are too few for a vector of
    output channels: each multiply waits for the one before it, so tiles have several positions.
    """
    pixel_bytes = LINE_BYTES * min(g.axes[-1].s, 2) + panels.row_bytes
    several = g.ic <= FEW_CHANNELS or panels.vectors == 1
    job = TilesJob(g, panels, isa, most if several else min(most, panels.rows), 1, 1)
    pixels = max(RUN, (LARGE_CHUNK_BYTES if job.weights_bytes > NEAR_BYTES else CHUNK_BYTES) // pixel_bytes)
    fit = pixels // max(1, g.rows * g.width)
    images = max((n for n in range(1, min(fit, g.mb) + 1) if g.mb % n == 0), default=1)
    chunks = len(chunks_of(g, pixels))
    shares = len(job.unit_sets()) * job.panel_count * g.groups
    parts = min(max(1, chunks // LEAST_CHUNKS), -(-LEAST_SHARES // shares))
    ends = np.linspace(0, chunks, parts + 1).astype(int).tolist()
    return replace(job, images=images, pixels=pixels, ranges=tuple(pairwise(ends)))


def phases_of(job: TilesJob, tables: Tables, buffers: tuple[str, str, str], bias: str = "") -> list[Phase]:
    """All phases, for buffers of src, diff_dst and diff_weights.  bias: that of the sums of diff_dst."""
    g = job.g
    first = records(job, tables, accumulate=False)
    more = records(job, tables, accumulate=True) if g.mb > job.images else first
    src, dst, weights = buffers
    kernels, made = None, []
    for n in range(0, max(1, g.mb), job.images):
        rows, cycles, groups = first if n == 0 else more
        views = {
            "src": View(src, n * g.src.image_bytes),
            "weights": View(dst, n * g.dst.image_bytes),
            "dst": View(weights),
            "taps": View(TAPS),
        }
        if bias:
            views["bias"] = View(bias)
        arguments = tuple(views.get(name, NOTHING) for name in ARGUMENTS)
        kernels = kernels or tuple(tables.specs)
        made.append(Phase(kernels, arguments, rows, cycles, groups=groups, continues=n > 0))
    return made


Records = tuple[Int64, npt.NDArray[np.int32], Int64]


def records(job: TilesJob, tables: Tables, accumulate: bool) -> Records:
    """Records, their costs, and where groups begin: a group has every chunk of a range, for some units of a panel."""
    g, panels = job.g, job.panels
    chunks = [chunks_of(g, job.pixels)[begin:end] for begin, end in job.ranges]
    offsets, kernels, cycles, begins = [], [], [], [0]
    for units in job.unit_sets():
        for part, of_part in enumerate(chunks):
            for channels, numbers in job.panels_by_channels():
                tiles = [
                    each
                    for i, chunk in enumerate(of_part)
                    for unit in units
                    for each in of_unit(job, tables, unit, chunk, accumulate or i > 0, channels)
                ]
                table, places, costs = (np.array(column) for column in zip(*tiles, strict=True))
                for group, panel in product(range(g.groups), numbers):
                    channel = group * g.oc + panel * panels.vectors * panels.lanes
                    total = f32.size_bytes * (part * g.groups * g.oc + channel) if job.most else 0
                    at = part * job.weights_bytes + (group * job.panel_count + panel) * panels.panel_bytes(g)
                    src, dst = g.src.channel(group * g.ic), g.dst.channel(channel)
                    offsets.append(places + np.array((src, dst, total, at, 0, 0)))
                    kernels.append(table)
                    cycles.append(costs)
                    begins.append(begins[-1] + len(table))
    columns = dict(zip(ARGUMENTS, np.concatenate(offsets).T, strict=True))
    found = records_of(ARGUMENTS, columns, np.concatenate(kernels))
    return found, np.concatenate(cycles).astype(np.int32), np.array(begins, np.int64)


Tile = tuple[int, Int64, int]  # kernel, offsets, cycles


def of_unit(
    job: TilesJob, tables: Tables, unit: RowUnit, chunk: PixelChunk, accumulate: bool, channels: int
) -> Iterator[Tile]:
    """A unit's rows of so many output channels; and zeros in what a panel has after their vectors."""
    vectors = -(-channels // job.panels.lanes)
    spec, place = tile(job, tables, unit, chunk, vectors)
    if unit.sums:
        spec = replace(spec, row_sums=True, channels=channels)
    pixels = job.images * len(chunk.rows) * (chunk.end - chunk.begin)
    multiplied = sum(row.channel is not None for row in unit.rows) + unit.sums
    cost = CALL_CYCLES + vectors * (len(unit.rows) + pixels * multiplied // 2)
    yield tables.kernel(replace(spec, accumulate=accumulate)), place, min(cost, MOST_CYCLES)
    missing, lanes = job.panels.vectors - vectors, job.panels.lanes
    if missing:
        zeros = replace(
            spec, vectors=missing, channels=missing * lanes, groups=(), accumulate=accumulate, row_sums=False
        )
        skipped_bytes = np.array((0, 0, 0, f32.size_bytes * vectors * lanes, 0, 0))
        yield tables.kernel(zeros), place + skipped_bytes, CALL_CYCLES


def tile(job: TilesJob, tables: Tables, unit: RowUnit, chunk: PixelChunk, vectors: int) -> tuple[ConvTileSpec, Int64]:
    """The kernel of a unit's rows for a chunk of `job.images` images, and its offsets."""
    g, panels = job.g, job.panels
    axis, pixel, out = g.axes[-1], g.src.pixel_bytes, g.dst.pixel_bytes
    lines = offsets_of_rows(g, unit.outer, chunk.rows)
    images = np.arange(job.images)[:, None, None] * np.array((g.src.image_bytes, g.dst.image_bytes))
    lines = (images + lines).reshape(-1, 2)
    channel = min((row.channel for row in unit.rows if row.channel is not None), default=0)
    position = unit.rows[0].position
    base = lines[0] if len(lines) else np.zeros(2, np.int64)
    groups, words = [], []
    for numbers, begin, end in segments(g, unit.rows, chunk, unit.sums):
        at = begin
        for size, times, missing in runs(end - begin, job.missing(end)):
            starts = at + size * np.arange(times)
            along = np.stack((starts * axis.s * pixel, starts * out), 1)
            taps = (lines[:, None] - base + along).reshape(-1, 2)
            groups.append(TapGroup(numbers, size * g.types.group - missing))
            words += [np.array((len(taps),)), taps.ravel()]
            at += size * times
    rows = tuple(
        g.src.channel(row.channel if row.channel is not None else channel)
        - g.src.channel(channel)
        + job.along(row.position)
        - job.along(position)
        for row in unit.rows
    )
    apart, touching = g.dst.channel(panels.lanes), f32.size_bytes * panels.lanes
    spec = ConvTileSpec(
        isa=job.isa, vectors=vectors, channels=vectors * panels.lanes, src_pixel_bytes=rows,
        src_channel_bytes=axis.s * pixel, weights_row_bytes=out, dst_pixel_bytes=panels.apart(g) * panels.row_bytes,
        dst_vector_bytes=touching, whole_vectors=True, groups=tuple(groups),
        weights_vector_bytes=0 if apart == touching else apart, types=g.types,
    )  # fmt: skip
    start = tables.list_of(np.concatenate(words) if words else np.zeros(1, np.int64))
    src = g.src.start_bytes + g.src.channel(channel) + job.along(position) + base[0]
    place = np.array((src, g.dst.start_bytes + base[1], 0, unit.first * panels.row_bytes, start, 0))
    return spec, place
