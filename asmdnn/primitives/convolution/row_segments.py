"""The rows of an image in segments: so many pixels at a time, of which the code knows how many are at an edge."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from asmdnn.generators.dot.row_cuts import Segment
from asmdnn.planning.cuts import runs_of
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.records import replace

SEGMENT_PIXELS = 2  # what a segment costs beside its own pixels, by and large
MOST_ROWS = 1024  # whose segments are known: layers have them in common
WORTH_A_SIZE = 0.95  # of the cost with few sizes, which rows of many widths share, where odd or two ones are chosen


@lru_cache(MOST_ROWS)
def counted_columns(axis: Axis, most: int, again: bool) -> tuple[tuple[Segment, ...], int]:
    """A row in segments of at most so many pixels, where the code does not know how many are inside the image; and how
    many pixels of the first one the second computes again, which it may if `again`."""
    overlapping = overlapping_columns(axis, most) if again else None
    segments, overlap = overlapping or (cut_columns(axis, most), 0)
    return counted(axis, segments), overlap


@lru_cache(MOST_ROWS)
def cut_columns(axis: Axis, pixels: int) -> tuple[Segment, ...]:
    """A row in segments of at most so many pixels, equal ones as one."""
    found: list[Segment] = []
    x = 0
    for size, times in runs_of(axis.o, pixels):
        step, extent = size * axis.s, extent_of(axis, size)
        begin = x * axis.s - axis.p
        inside = min(times, max(0, -(begin // step)))  # from here on, to `after`, all columns are inside the image
        inside_end = max(inside, min(times, (axis.i - extent - begin) // step + 1))
        for i in (*range(inside), *range(inside, inside_end)[:1], *range(inside_end, times)):
            segment = segment_at(axis, x + i * size, size)
            found.append(replace(segment, times=inside_end - inside if inside <= i < inside_end else 1))
        x += size * times
    return together(found)


def overlapping_columns(axis: Axis, most: int) -> tuple[tuple[Segment, ...], int] | None:
    """A row in segments of one size, and how many pixels of the first one the second computes again; None where one
    segment does, where more than one at either end is at an edge, or where too much were computed again."""
    if axis.o <= most:
        return None
    exact = (axis.o + SEGMENT_PIXELS * -(-axis.o // most)) / WORTH_A_SIZE
    sizes = [size for size in range(most, 1, -1) if cost_of(axis, size) <= exact]
    return next((cut for size in sorted(sizes, key=lambda x: cost_of(axis, x)) if (cut := of_size(axis, size))), None)


def cost_of(axis: Axis, size: int) -> float:
    """Of a row in segments of one size, in pixels."""
    total = -(-axis.o // size) * (size + SEGMENT_PIXELS)
    return total / WORTH_A_SIZE if size % 2 else total


def of_size(axis: Axis, size: int) -> tuple[tuple[Segment, ...], int] | None:
    """The same of one size, less than the row."""
    times = -(-axis.o // size)
    overlap = times * size - axis.o
    places = [0, *(i * size - overlap for i in (1, times - 2) if times > 2), axis.o - size]
    left, *inner, right = (segment_at(axis, place, size) for place in places)
    if any(not is_inside(axis, segment) for segment in inner):
        return None
    return (left, *together([*(replace(x, times=times - 2) for x in inner[:1]), right])), overlap


def counted(axis: Axis, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """The same, but how many there are of those inside the image is no part of the code."""
    return tuple(replace(segment, is_counted=is_inside(axis, segment)) for segment in segments)


def together(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Neighbours that are alike as one."""
    alike = groupby(segments, lambda segment: replace(segment, times=1))
    return tuple(replace(segment, times=sum(one.times for one in same)) for segment, same in alike)


def segment_at(axis: Axis, pixel: int, size: int) -> Segment:
    """Of `size` pixels from one on."""
    first, extent = pixel * axis.s - axis.p, extent_of(axis, size)
    low = min(extent, max(0, -first))
    return Segment(size, low, max(low, min(extent, axis.i - first)))


def is_inside(axis: Axis, segment: Segment) -> bool:
    """Whether no column of it is in the padding."""
    return segment.low == 0 and segment.high == extent_of(axis, segment.pixels)


def extent_of(axis: Axis, size: int) -> int:
    """Columns from the first one that a segment's first pixel has to after the last one."""
    return (size - 1) * axis.s + (axis.k - 1) * axis.d + 1
