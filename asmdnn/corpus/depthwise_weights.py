"""The specs of gradients of depthwise weights: sets of sums, segments with and without a loop, distances, types."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.corpus.conv import of_levels
from asmdnn.generators.dot.depthwise_weights import UNROLLED, ColumnRun, DepthwiseWeightsSpec, most_positions
from asmdnn.isa.levels import AVX2, AVX512_CORE, AVX512_CORE_BF16
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import DataType, bf16, f16, f32

TYPED = (*((dtype, isa) for dtype in (bf16, f16) for isa in (AVX2, AVX512_CORE)), (bf16, AVX512_CORE_BF16))
EDGES = (ColumnRun((1, 2), 0, 1), ColumnRun((0, 1, 2), 1, UNROLLED + 9), ColumnRun((0, 1), UNROLLED + 10, 2))


def spec_of(
    isa: str, count: int, segments: tuple[ColumnRun, ...], stride: int = 1, dtype: DataType = f32, **more: Any
) -> DepthwiseWeightsSpec:
    """Positions side by side, of images blocked by the vector."""
    pixel, vector = dtype.size_bytes * lanes_of(isa), f32.size_bytes * lanes_of(isa)
    places = tuple(pixel * k for k in range(count))
    return DepthwiseWeightsSpec(
        isa=isa, positions=places, segments=segments, src_step=stride * pixel, dst_step=pixel, weights_step=vector,
        dtype=dtype, **more,
    )  # fmt: skip


def rows(isa: str) -> Iterator[DepthwiseWeightsSpec]:
    """One set of sums and several, as many positions as there may be; rows of all kinds of length."""
    for count in (1, 2, 3, 5, 9, most_positions(isa)):
        every = tuple(range(count))
        for length in (1, 4, UNROLLED + 3):
            yield spec_of(isa, count, (ColumnRun(every, 0, length),), 2, accumulate=length == 4)
    for accumulate in (False, True):
        yield spec_of(isa, 3, EDGES, accumulate=accumulate)
        yield spec_of(isa, 3, EDGES, 2, accumulate=accumulate, lines=(0, 2048, 4096))
    yield spec_of(isa, 3, (), lines=(0, 2048))
    yield spec_of(isa, 3, ())
    apart = (ColumnRun((0, 1), 0, 3), ColumnRun((0,), 3, 40))
    yield DepthwiseWeightsSpec(
        isa=isa, positions=(-4096, 8192), segments=apart, src_step=1200, dst_step=600,
        weights_step=f32.size_bytes * lanes_of(isa),
    )  # fmt: skip


def typed(dtype: DataType, isa: str) -> Iterator[DepthwiseWeightsSpec]:
    """Rows that are widened, or a row of a pair alone; two rows where the level multiplies pairs."""
    pairs = isa == AVX512_CORE_BF16.name
    for second in (None, (2048, 1024))[: 1 + pairs]:
        of_type = partial(spec_of, isa, dtype=dtype, second_row=second)
        for count in (1, 3, most_positions(isa, dtype)):
            yield of_type(count, (ColumnRun(tuple(range(count)), 0, UNROLLED + 3),), 2, accumulate=count == 3)
        yield of_type(3, EDGES)
        if second is None and not pairs:
            yield of_type(3, EDGES, lines=(0, 2048, 4096))
        yield of_type(3, ())


FAMILIES = {
    **of_levels("depthwise-weights", rows=rows),
    **{f"depthwise-weights-{dtype}-{isa}": partial(typed, dtype, isa.name) for dtype, isa in TYPED},
}
