"""The calls of pooling kernels whose lanes are pixels of a row: stretches that a buffer has room for."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from asmdnn.generators.pooling.rows import BUFFER_BYTES, PoolRowsSpec, most_stride
from asmdnn.generators.pooling.window import PixelLoop
from asmdnn.isa.elements import storing_element
from asmdnn.isa.vectors import NARROWEST, lanes_of, vector_bytes
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.pooling.calls import PoolCall
from asmdnn.primitives.pooling.kernels import PoolKernels, reads_dst
from asmdnn.primitives.pooling.schedule import Planes, WindowNest, calls_of, pieces_of
from asmdnn.primitives.pooling.windows import Row, WindowRun, divisors_between
from asmdnn.records import replace
from asmdnn.types import F32_BYTES


def at_row_level(maker: PoolKernels) -> PoolKernels:
    """For the lower level if the CPU class wants it for rows that fill no whole vectors and stay in the caches, unless
    only the higher one has an instruction that rounds means, or registers for the stride."""
    row, wide_row = maker.windows.row, maker.tuning.pooling.wide_row
    wide = row is None or row.results % lanes_of(maker.isa) == 0 or row.results >= wide_row
    wide = wide or (row is not None and row.stride > most_stride(NARROWEST))
    rounds = not maker.windows.is_max and storing_element(maker.dtype.name, maker.isa).narrows_pairs
    return maker if wide or maker.streams or rounds else replace(maker, isa=NARROWEST)


def check_rows(maker: PoolKernels) -> None:
    """Raise Refused unless windows along a row are alike, and a register for each step of their stride is at hand."""
    maker, row = at_row_level(maker), maker.windows.row
    most = most_stride(maker.isa)
    if row is None or row.stride > most:
        raise Refused(f"windows along a row have different sizes, or a stride above {most}")
    if any(part.spec.width < 1 or part.spec.pitch_bytes > BUFFER_BYTES for part in row_parts(maker, row)):
        raise Refused("a vector of results lies in padding alone, or its windows exceed what a buffer holds")


def row_calls(maker: PoolKernels) -> Iterator[PoolCall]:
    """Of kernels whose lanes are pixels."""
    maker = at_row_level(maker)
    assert maker.windows.row is not None, "check_rows"
    return row_calls_of(maker, maker.windows.axes[:-1], list(row_parts(maker, maker.windows.row)))


class RowPart(NamedTuple):
    """A stretch of a row: the first column that is read, the first result, a spec without loops; and so many such
    stretches one after another."""

    column: int
    result: int
    spec: PoolRowsSpec
    times: int


def row_parts(maker: PoolKernels, row: Row) -> Iterator[RowPart]:
    """Stretches of a row that the buffer has room for, those that lie inside of src together."""
    columns, dilation, stride, padding, made = row
    size, runs = maker.planes.sizes[-1], maker.windows.axes[-1]
    extent = (columns - 1) * dilation + 1
    most = max(lanes_of(maker.isa), (BUFFER_BYTES // 8 // F32_BYTES - extent) // stride)
    inside = -(-padding // (most * stride))
    inside_end = max(inside, min(made // most, (size + padding - extent - (most - 1) * stride) // (most * stride) + 1))
    for part in (*range(inside), *range(inside, inside_end)[:1], *range(inside_end, -(-made // most))):
        first = part * most
        results = min(most, made - first)
        begin = first * stride - padding
        left, end = max(0, begin), min(size, begin + (results - 1) * stride + extent)
        divisors = () if maker.windows.is_max else divisors_between(runs, first, first + results)
        spec = PoolRowsSpec(
            isa=maker.isa,
            alg=maker.alg,
            loops=(),
            rows=(),
            width=end - left,
            results=results,
            columns=columns,
            stride=stride,
            dilation=dilation,
            before=left - begin,
            divisors=divisors,
            chain=maker.chain,
            kind=maker.dtype.name,
        )
        yield RowPart(left, first, spec, inside_end - inside if inside <= part < inside_end else 1)


def row_calls_of(
    maker: PoolKernels, runs: Sequence[Sequence[WindowRun]], parts: Sequence[RowPart]
) -> Iterator[PoolCall]:
    """Each part of a row, for every combination of runs of the other axes."""
    planes, lanes, tuning = maker.planes, lanes_of(maker.isa), maker.tuning.pooling
    for piece in pieces_of(without_last(planes), runs, maker.windows.steps[:-1]):
        for left, first, spec, times in parts:

            def make(
                piece: WindowNest, loops: tuple[PixelLoop, ...], _: tuple[int, ...], spec: PoolRowsSpec = spec
            ) -> PoolRowsSpec:
                divisors = tuple((n * piece.divisor, times) for n, times in spec.divisors)
                aligned = all(loop.dst_bytes % vector_bytes(maker.isa) == 0 for loop in loops)
                whole = spec.results % lanes == 0 and aligned
                streams = maker.streams and whole and not reads_dst(maker.chain)
                return replace(spec, loops=loops, rows=piece.window, divisors=divisors, streaming=streams)

            rows = prod(taps.positions for taps in piece.window)
            of_vector = spec.columns * spec.stride + tuning.row_vector_cycles
            cycles = spec.width / lanes * (rows + 1) + spec.results / lanes * of_vector + tuning.row_cycles
            size = maker.dtype.size_bytes
            moved = piece._replace(src=piece.src + size * left, dst=piece.dst + size * first)
            along_row = PixelLoop(times, size * spec.results * spec.stride, size * spec.results)
            for call in calls_of(planes, moved, cycles, make, maker.tuning):
                yield replace(call, loops=(*call.loops, (along_row, 0)))


def without_last(planes: Planes) -> Planes:
    """The planes as lines: without the axis along a row."""
    src = replace(planes.src, axis_bytes=planes.src.axis_bytes[:-1])
    dst = replace(planes.dst, axis_bytes=planes.dst.axis_bytes[:-1])
    return Planes(src, dst, planes.images, planes.blocks, planes.sizes[:-1])
