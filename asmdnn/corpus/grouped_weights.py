"""The specs of gradients of weights of groups with few channels: sets of sums, segments with and without a loop,
distances, types."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from asmdnn.corpus.conv import of_levels
from asmdnn.generators.dot.grouped_weights import UNROLLED, ColumnRun, GroupedWeightsSpec
from asmdnn.generators.dot.sums_in_registers import joins_lines, most_positions
from asmdnn.isa.levels import AVX2, AVX512_CORE, AVX512_CORE_BF16
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import DataType, bf16, f16, f32

WHOLE = ((f32, AVX2), (f32, AVX512_CORE))
TYPED = (*((dtype, isa) for dtype in (bf16, f16) for isa in (AVX2, AVX512_CORE)), (bf16, AVX512_CORE_BF16))
EDGES = (ColumnRun((1, 2), 0, 1), ColumnRun((0, 1, 2), 1, UNROLLED + 9), ColumnRun((0, 1), UNROLLED + 10, 2))

EDGES_OF_TWO = (ColumnRun((1,), 0, 1), ColumnRun((0, 1), 1, 5), ColumnRun((0,), 6, 2))


def spec_of(
    isa: str, count: int, segments: tuple[ColumnRun, ...], stride: int = 1, dtype: DataType = f32, **more: Any
) -> GroupedWeightsSpec:
    """Positions side by side, of images blocked by the vector."""
    pixel, vector = dtype.size_bytes * lanes_of(isa), f32.size_bytes * lanes_of(isa)
    places = tuple(pixel * k for k in range(count))
    return GroupedWeightsSpec(
        isa=isa, positions=places, segments=segments, src_step=stride * pixel, dst_step=pixel, weights_step=vector,
        dtype=dtype, **more,
    )  # fmt: skip


def rows(isa: str) -> Iterator[GroupedWeightsSpec]:
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
    yield GroupedWeightsSpec(
        isa=isa, positions=(-4096, 8192), segments=apart, src_step=1200, dst_step=600,
        weights_step=f32.size_bytes * lanes_of(isa),
    )  # fmt: skip


def of_groups(dtype: DataType, isa: str) -> Iterator[GroupedWeightsSpec]:
    """Groups of each size up to the lanes, of 16 bits below them: few positions, and as many as registers take."""
    lanes, vector = lanes_of(isa), f32.size_bytes * lanes_of(isa)
    for group in (group for group in (2, 4, 8, 16) if group < lanes + (dtype == f32)):
        most = most_positions(isa, dtype, group)
        of_group = partial(spec_of, isa, dtype=dtype, group=group, input_step=9 * vector)
        for count in {1, min(3, most), most}:
            every = tuple(range(count))
            yield of_group(count, (ColumnRun(every, 0, UNROLLED + 3), ColumnRun(every[:1], UNROLLED + 3, 1)), 2)
            yield of_group(count, (ColumnRun(every, 0, 3),), accumulate=True)
        yield of_group(1, (ColumnRun((0,), 0, UNROLLED + 3),), 2, prefetched=(4096, 4160))
    pixel = dtype.size_bytes * lanes_of(isa)
    if joins_lines(2, (0, pixel), pixel, isa, dtype, 2):
        yield spec_of(isa, 2, EDGES_OF_TWO, dtype=dtype, group=2, input_step=9 * vector, lines=(0, 2048))
    if isa == AVX512_CORE_BF16.name:
        yield spec_of(isa, 2, EDGES_OF_TWO, dtype=dtype, group=2, input_step=9 * vector, second_row=(2048, 1024))


def typed(dtype: DataType, isa: str) -> Iterator[GroupedWeightsSpec]:
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
    **of_levels("grouped-weights", rows=rows),
    **{f"grouped-weights-{dtype}-{isa}": partial(typed, dtype, isa.name) for dtype, isa in TYPED},
    **{f"weights-of-groups-{dtype}-{isa}": partial(of_groups, dtype, isa.name) for dtype, isa in (*WHOLE, *TYPED)},
}
