"""The planes and rows of an image for kernels of rows: chunks, cut into bands; of many chunks, one that comes again."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from types import MappingProxyType

import numpy as np

from asmdnn.generators.dot.row_cuts import Band
from asmdnn.planning.cuts import ranges_of, runs_of
from asmdnn.primitives.convolution.axis import Axis, TransposedAxis
from asmdnn.primitives.convolution.rounds import inside
from asmdnn.records import dataclass

MOST_CUTS = 256  # of whose rows chunks are known: images of many widths have the same heights


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Output rows [begin, end) of an image, cut into bands."""

    begin: int
    end: int
    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class ChunkRounds:
    """Chunks, `times` them, each time `rows` further down."""

    chunks: Sequence[RowChunk]
    times: int = 1
    rows: int = 0


@lru_cache(MOST_CUTS)
def row_pieces(axis: Axis, size: int, most: int, unit: int = 1) -> tuple[ChunkRounds, ...]:
    """All rows in chunks of at most `size` and of `unit` rows each time, written out if they are at most `most` chunks.

    Of more, those whose windows lie inside the image are one that repeats.  Rows of a deconvolution are not alike.
    """
    runs = runs_of(axis.o, size)
    if sum(times for _, times in runs) <= most or isinstance(axis, TransposedAxis):
        return (ChunkRounds(cut_rows(axis, ranges_of(axis.o, max(1, size // unit), unit))),)
    low, high = inside(axis)
    pieces, edges, begin = list[ChunkRounds](), list[tuple[int, int]](), 0
    for rows, times in runs:
        first = min(times, max(0, -(-(low - begin) // rows)))
        after = max(first, min(times, (high - begin) // rows))
        starts = [begin + i * rows for i in (*range(first), *range(after, times))]
        edges += [(start, start + rows) for start in starts]
        if after > first:
            inner = begin + first * rows
            pieces.append(ChunkRounds(cut_rows(axis, [(inner, inner + rows)]), after - first, rows))
        begin += rows * times
    return (*pieces, ChunkRounds(cut_rows(axis, edges))) if edges else tuple(pieces)


def cut_rows(axis: Axis, ranges: Sequence[tuple[int, int]]) -> Sequence[RowChunk]:
    """A chunk of each range of rows."""
    return chunks_along(axis, tuple(ranges))


@lru_cache(MOST_CUTS)
def chunks_along(axis: Axis, ranges: tuple[tuple[int, int], ...]) -> tuple[RowChunk, ...]:
    found = []
    reach = axis.reach(np.concatenate([np.arange(begin, end) for begin, end in ranges])).tolist()
    at = 0
    for begin, end in ranges:
        kernel_rows = [(low, high - low) if high > low else (0, 0) for low, high, *_ in reach[at : at + end - begin]]
        bands = tuple(Band(len(list(same)), *kernel) for kernel, same in groupby(kernel_rows))
        found.append(RowChunk(begin, end, bands))
        at += end - begin
    return tuple(found)


@lru_cache(MOST_CUTS)
def planes_of(axis: Axis) -> Mapping[int, Sequence[tuple[int, int]]]:
    """By how many planes of the kernel reach it, the planes of dst, each with the first plane of the kernel."""
    found: dict[int, list[tuple[int, int]]] = {}
    for z, (low, high) in enumerate(axis.reach(np.arange(axis.o)).tolist()):
        found.setdefault(high - low, []).append((z, low if high > low else 0))
    return MappingProxyType(found)
