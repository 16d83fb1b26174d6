"""The specs of gradients of depthwise weights: sets of sums, segments with and without a loop, distances."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.dot.depthwise_weights import UNROLLED, ColumnRun, DepthwiseWeightsSpec, most_positions


def spec_of(
    isa: str, count: int, segments: tuple[ColumnRun, ...], stride: int = 1, **more: bool
) -> DepthwiseWeightsSpec:
    """Positions side by side, of images blocked by the vector."""
    pixel = 4 * LANES[isa]
    return DepthwiseWeightsSpec(
        isa, tuple(pixel * k for k in range(count)), segments, stride * pixel, pixel, pixel, **more
    )


def rows(isa: str) -> Iterator[DepthwiseWeightsSpec]:
    """One set of sums and several, as many positions as there may be; rows of all kinds of length."""
    for count in (1, 2, 3, 5, 9, most_positions(isa)):
        every = tuple(range(count))
        for length in (1, 4, UNROLLED + 3):
            yield spec_of(isa, count, (ColumnRun(every, 0, length),), 2, accumulate=length == 4)
    edges = (ColumnRun((1, 2), 0, 1), ColumnRun((0, 1, 2), 1, UNROLLED + 9), ColumnRun((0, 1), UNROLLED + 10, 2))
    for accumulate in (False, True):
        yield spec_of(isa, 3, edges, accumulate=accumulate)
    yield spec_of(isa, 3, ())
    apart = (ColumnRun((0, 1), 0, 3), ColumnRun((0,), 3, 40))
    yield DepthwiseWeightsSpec(isa, (-4096, 8192), apart, 1200, 600, 4 * LANES[isa])


FAMILIES = of_levels("depthwise-weights", rows=rows)
