"""The calls of kernels that sum gradients of depthwise weights: some columns of the kernel, a chunk of pixels each.

Where a level multiplies pairs of bf16, two rows of an image are a tap, and rows that are left are another call.
"""

from collections.abc import Iterator

import numpy as np

from asmdnn.generators.dot.depthwise_weights import ColumnRun, DepthwiseWeightsSpec
from asmdnn.generators.dot.row_factors import row_terms
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.phase import MOST_CYCLES, Int64
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution_backward.weights_tiles import CALL_CYCLES
from asmdnn.primitives.convolution_backward.weights_units import PanelRow, PixelChunk, offsets_of_rows, segments
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32

POSITION_CYCLES = 4  # a sum comes together and is stored


@dataclass(frozen=True, slots=True)
class DepthwiseJob:
    """dtype: of src and diff_dst.  chunks: of an image, in ranges whose sums are computed apart.  images: of a phase.
    sets: of positions of the last axis, as many as a kernel takes."""

    g: ConvGeometry
    isa: str
    dtype: DataType
    channels: int
    chunks: tuple[tuple[PixelChunk, ...], ...]
    images: int
    sets: tuple[range, ...]

    @property
    def vectors(self) -> int:
        return -(-self.channels // lanes_of(self.isa))

    @property
    def vector_bytes(self) -> int:
        """Of a row of weights: a vector of channels at a position."""
        return f32.size_bytes * lanes_of(self.isa)

    @property
    def weights_bytes(self) -> int:
        return self.vectors * self.g.positions * self.vector_bytes


Call = tuple[int, Int64, int]  # kernel, offsets, cycles


def calls(
    job: DepthwiseJob,
    specs: dict[DepthwiseWeightsSpec, int],
    words: list[Int64],
    outer: tuple[tuple[int, ...], int],
    positions: range,
    chunk: PixelChunk,
    accumulate: bool,
) -> Iterator[Call]:
    """For a position of the outer axes, some of the last axis, and a chunk."""
    g, axis = job.g, job.g.axes[-1]
    found = segments(g, tuple(PanelRow(0, s) for s in positions), chunk)
    alone = DepthwiseWeightsSpec(
        job.isa,
        tuple((s * axis.d - axis.p) * g.src.pixel_bytes for s in positions),
        tuple(ColumnRun(numbers, begin, end - begin) for numbers, begin, end in found),
        src_step=axis.s * g.src.pixel_bytes,
        dst_step=g.dst.pixel_bytes,
        weights_step=job.vector_bytes,
        accumulate=accumulate,
        dtype=job.dtype,
    )
    pixels = sum((end - begin) * (1 + len(numbers)) for numbers, begin, end in found)
    for spec, taps in taps_of(job, alone, outer[0], chunk):
        start = sum(map(len, words))
        words.append(np.concatenate((np.array((len(taps),)), taps.ravel())))
        place = (outer[1] + positions[0]) * job.vector_bytes
        offsets = np.array((g.src.start_bytes, g.dst.start_bytes, place, 8 * start))
        cycles = CALL_CYCLES + POSITION_CYCLES * len(positions) + len(taps) * pixels
        yield specs.setdefault(spec, len(specs)), offsets, min(cycles, MOST_CYCLES)


def taps_of(
    job: DepthwiseJob, alone: DepthwiseWeightsSpec, outer: tuple[int, ...], chunk: PixelChunk
) -> list[tuple[DepthwiseWeightsSpec, Int64]]:
    """Kernels, the second going on with the sums of the first, and their taps: pairs of rows, then those left."""
    g = job.g
    lines = offsets_of_rows(g, outer, chunk.rows)
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
