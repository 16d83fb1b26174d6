"""Resampling where rows are dense: records of rows of dst, in groups that are made of the same rows of src."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np

from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.resample import ResampleStep
from asmdnn.generators.functions.resample_columns import Column, Pick, first_result, fits_registers, stretches
from asmdnn.generators.functions.resample_rows import ResampleRowsSpec
from asmdnn.generators.functions.resample_rows_typed import TypedResampleRowsSpec
from asmdnn.generators.functions.resample_types import SPARES
from asmdnn.isa.elements import size_of
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.assembly import constant_words
from asmdnn.planning.calls import Call
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import Int64
from asmdnn.primitives.pooling.schedule import Planes
from asmdnn.primitives.resampling.taps import Numbers, ResampleRun, ResampleTap, ResampleTaps, pattern, runs_of
from asmdnn.records import dataclass
from asmdnn.types import f32

MOST_STRETCHES = 512  # of a row, each with code of its own
MOST_TAPS = 2048  # of all stretches
MOST_KERNELS = 24
LINE_ELEMENTS = 16
ONE = ResampleTaps(np.zeros((1, 1), np.int64), np.ones((1, 1)))  # the rows of a tensor that has one in each plane


def results_of(taps: ResampleTaps, lanes: int) -> Int64:
    """For each vector of a row its results, the last one again in lanes that have none."""
    first = np.minimum(np.arange(0, len(taps), lanes), first_result(len(taps), len(taps), lanes))
    return np.minimum(np.add.outer(first, np.arange(lanes)), len(taps) - 1)


def columns_of(taps: ResampleTaps, size: int, lanes: int, element_bytes: int) -> tuple[Column, ...] | None:
    """How each vector of results is brought from a row of `size` elements; None if more than `MOST_STRETCHES` times the
    next one's lanes are others."""
    places = taps.indices[results_of(taps, lanes)].transpose(0, 2, 1)  # [vector, tap, lane]
    begin = np.minimum(places.min(axis=2, initial=size), max(0, size - lanes))
    chosen = places - begin[:, :, None]
    chosen[:, :, len(taps) :] = 0  # of a row that is no whole vector
    if (chosen[1:] != chosen[:-1]).any(axis=(1, 2)).sum() > MOST_STRETCHES:
        return None
    both = zip((element_bytes * begin).tolist(), chosen.tolist(), strict=True)
    return tuple(tuple(Pick(at, tuple(lane)) for at, lane in zip(*vector, strict=True)) for vector in both)


def most_vectors(columns: Sequence[Column], lanes: int) -> int:
    """Of src for a tap of a vector of results."""
    kinds = {pick.lanes: pick for column in columns for pick in column}
    return max((len(pick.vectors(lanes)) for pick in kinds.values()), default=0)


def factors_of(taps: ResampleTaps, lanes: int) -> Int64:
    """Their weights, f32[vectors, taps, lanes], as words."""
    weights = taps.weights[results_of(taps, lanes)].astype(np.float32).transpose(0, 2, 1).copy()
    weights[:, :, len(taps) :] = 0
    return weights.ravel().view(np.int64)


@dataclass(frozen=True, slots=True)
class DenseRows:
    """All rows of dst.  axes: taps of every spatial axis; streams: whether dst goes past the caches; types: of src and
    dst, plain bits where elements are moved."""

    isa: str
    planes: Planes
    axes: Sequence[ResampleTaps]
    streams: bool
    record_cycles: int
    chain: tuple[PostOp, ...] = ()
    types: tuple[str, str] = (f32.name, f32.name)

    @property
    def in_f32(self) -> bool:
        return {*self.types} == {f32.name}

    @property
    def spares(self) -> int:
        """Registers that results need before they are stored, at most."""
        return 0 if self.in_f32 and not self.chain else SPARES

    @property
    def outer(self) -> Sequence[ResampleTaps]:
        return self.axes[:-1] or [ONE]

    def columns(self) -> tuple[Column, ...] | None:
        """Of every vector of a row; None where code for it would be long, or registers do not hold all taps."""
        lanes = lanes_of(self.isa)
        columns = columns_of(self.axes[-1], self.planes.sizes[-1], lanes, size_of(self.types[0]))
        if columns is None or not fits_registers(self.isa, columns, self.row_taps, self.spares):
            return None
        several = len(stretches(columns, len(self.axes[-1]) // lanes))
        taps = several * self.axes[-1].each * self.row_taps
        return columns if several <= MOST_STRETCHES and taps <= MOST_TAPS else None

    def constants(self) -> dict[str, Int64]:
        """What kernels read beside src: weights of rows, and factors along a row."""
        found = {}
        if self.row_taps > 1:
            rows = reduce(products, (taps.weights for taps in self.outer))
            found["weights"] = constant_words(rows.astype(np.float32))
        if self.axes[-1].each > 1:
            found["factors"] = factors_of(self.axes[-1], lanes_of(self.isa))
        return found

    @property
    def row_taps(self) -> int:
        return prod(taps.each for taps in self.outer)

    def calls(self) -> list[Call] | None:
        """Every kernel and where it is called; None where rows differ so that there would be many kernels, or lie too
        far apart for code."""
        columns = self.columns()
        found: list[tuple[ResampleRowsSpec, Call]] = []
        runs = runs_of(self.outer[-1])
        for at in product(*(range(len(taps)) for taps in self.outer[:-1])):
            for run in runs:
                chosen = [taps[o] for o, taps in zip((*at, run.output), self.outer, strict=True)]
                found += self.calls_of(run, (*at, run.output), chosen, columns) if columns else []
        kernels = {kernel for kernel, _ in found}
        if columns is None or len(kernels) > MOST_KERNELS or not all(map(within_reach, kernels)):
            return None
        return [call for _, call in found]

    def calls_of(
        self, run: ResampleRun, at: Sequence[int], chosen: Sequence[ResampleTap], columns: tuple[Column, ...]
    ) -> Iterator[tuple[ResampleRowsSpec, Call]]:
        """Of a run of rows in all planes, and their kernels: some planes at a time, or some rows of a long one."""
        src, dst = self.planes.src, self.planes.dst
        src_steps, dst_steps = ((*layout.axis_bytes[:-1],) or (0,) for layout in (src, dst))
        weights = f32.size_bytes * self.row_taps if self.row_taps > 1 else 0
        starts = (
            src.start_bytes + sum(tap.indices[0] * step for tap, step in zip(chosen, src_steps, strict=True)),
            dst.start_bytes + sum(o * step for o, step in zip(at, dst_steps, strict=True)),
            weights * self.row_number(at),
        )
        taps = product(*([i * step for i in pattern(tap)] for tap, step in zip(chosen, src_steps, strict=True)))
        offsets = tuple(sum(each) for each in taps)
        groups = ResampleStep(run.groups, run.moves * src_steps[-1], run.step * dst_steps[-1], run.step * weights)
        *outer, planes = [ResampleStep(*loop, 0) for loop in self.planes.loops()]
        cycles = self.cost(run, columns)
        inside: tuple[ResampleStep, ...] = (groups,)
        if cycles * groups.times > self.record_cycles:
            outer, planes, inside = [*outer, planes], groups, ()
        else:
            cycles *= groups.times
        most = min(planes.times, max(1, self.record_cycles // cycles))
        whole, rest = divmod(planes.times, most)
        for first, times, count in ((0, whole, most), (whole * most, 1, rest)):
            if times and count:
                loops = (planes._replace(times=count), *inside)
                spec = self.spec(loops, offsets, columns, run.together, dst_steps[-1])
                begin = tuple(start + first * step for start, step in zip(starts, planes[1:], strict=True))
                walked = [*outer, ResampleStep(times, *(count * step for step in planes[1:]))]
                yield spec, Call(spec, begin, tuple(Loop(loop.times, loop[1:]) for loop in walked), count * cycles)

    def spec(self, loops: tuple[ResampleStep, ...], offsets: tuple[int, ...], columns: tuple[Column, ...],
             together: int, dst_row: int) -> ResampleRowsSpec:  # fmt: skip
        results, width = len(self.axes[-1]), self.planes.sizes[-1]
        steps, line_bytes = (dst_row, *(loop.dst_bytes for loop in loops)), LINE_ELEMENTS * f32.size_bytes
        streams = self.streams and results % LINE_ELEMENTS == 0 and not any(step % line_bytes for step in steps)
        typed: dict[str, Any] = {} if self.in_f32 else {"types": self.types}
        return (TypedResampleRowsSpec if typed else ResampleRowsSpec)(
            isa=self.isa, loops=loops, taps=offsets, columns=columns, width=width, results=results, together=together,
            dst_row_bytes=dst_row, streaming=streams and self.in_f32, chain=self.chain, **typed,
        )  # fmt: skip

    def row_number(self, at: Sequence[int]) -> int:
        """Of a row of dst in its plane."""
        number = 0
        for o, taps in zip(at, self.outer, strict=True):
            number = number * len(taps) + o
        return number

    def cost(self, run: ResampleRun, columns: Sequence[Column]) -> int:
        """Cycles of a group of rows in one plane."""
        taps, vectors = self.row_taps, most_vectors(columns, lanes_of(self.isa))
        brought = taps * ((1 + vectors) * len(columns[0]) - 1)
        return 8 + len(columns) * (brought + run.together * (1 + (taps > 1) * 2 * taps))


def products(some: Numbers, others: Numbers) -> Numbers:
    """Weights of pairs of results, and of their pairs of taps."""
    rows, taps = (n * m for n, m in zip(some.shape, others.shape, strict=True))
    return (some[:, None, :, None] * others[None, :, None, :]).reshape(rows, taps)


def within_reach(spec: ResampleRowsSpec) -> bool:
    """Whether displacements and steps fit 32 bits."""
    reach = max(abs(step) * loop.times for loop in spec.loops for step in loop[1:])
    return max(reach, spec.together * spec.dst_row_bytes, *map(abs, spec.taps)) <= MAX_OFFSET // 2
