"""Resampling where rows are dense: records of rows of dst, in groups that are made of the same rows of src."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.resample import Step
from asmdnn.generators.functions.resample_rows import Column, Pick, ResampleRowsSpec, first_result, stretches
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.calls import Call
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import Int64
from asmdnn.primitives.pooling.schedule import MAX_OFFSET, Planes
from asmdnn.primitives.resampling.taps import ResampleRun, ResampleTap, pattern, runs_of

MOST_STRETCHES = 96  # of a row, each with code of its own
MOST_KERNELS = 24
LINE_ELEMENTS = 16
ONE = [ResampleTap((0,), (1.0,))]  # the rows of a tensor that has one in each plane


def columns_of(taps: Sequence[ResampleTap], size: int, lanes: int) -> tuple[Column, ...] | None:
    """How each vector of results is brought from a row of `size` elements; None if it is made of more than a vector."""
    found = []
    for vector in range(-(-len(taps) // lanes)):
        first = first_result(vector, len(taps), lanes)
        some = taps[first : first + lanes]
        picks = []
        for tap in range(len(taps[0].indices)):
            places = [result.indices[tap] for result in some]
            begin = min(min(places), max(0, size - lanes))
            if max(places) - begin >= lanes:
                return None
            chosen = [place - begin for place in places]
            picks.append(Pick(4 * begin, (*chosen, *[0] * (lanes - len(chosen)))))
        found.append(tuple(picks))
    return tuple(found)


def factors_of(taps: Sequence[ResampleTap], lanes: int) -> Int64:
    """Their weights, f32[vectors, taps, lanes], as words."""
    vectors = -(-len(taps) // lanes)
    weights = np.zeros((vectors, len(taps[0].weights), lanes), np.float32)
    for vector in range(vectors):
        first = first_result(vector, len(taps), lanes)
        some = np.array([tap.weights for tap in taps[first : first + lanes]], np.float32)
        weights[vector, :, : len(some)] = some.T
    return weights.ravel().view(np.int64)


@dataclass(frozen=True, slots=True)
class DenseRows:
    """All rows of dst.  axes: taps of every spatial axis; streams: whether dst goes past the caches."""

    isa: str
    planes: Planes
    axes: Sequence[Sequence[ResampleTap]]
    streams: bool
    record_cycles: int
    chain: tuple[PostOp, ...] = ()

    @property
    def outer(self) -> Sequence[Sequence[ResampleTap]]:
        return self.axes[:-1] or [ONE]

    def columns(self) -> tuple[Column, ...] | None:
        """Of every vector of a row; None where code for it would be long."""
        lanes = lanes_of(self.isa)
        columns = columns_of(self.axes[-1], self.planes.sizes[-1], lanes)
        if columns is None or len(stretches(columns, len(self.axes[-1]) // lanes)) > MOST_STRETCHES:
            return None
        return columns

    def constants(self) -> dict[str, Int64]:
        """What kernels read beside src: weights of rows, and factors along a row."""
        found = {}
        if self.row_taps > 1:
            rows = [
                [prod(weights) for weights in product(*(tap.weights for tap in chosen))]
                for chosen in product(*self.outer)
            ]
            flat = np.array(rows, np.float32).ravel()
            found["weights"] = np.pad(flat, (0, flat.size % 2)).view(np.int64)
        if len(self.axes[-1][0].indices) > 1:
            found["factors"] = factors_of(self.axes[-1], lanes_of(self.isa))
        return found

    @property
    def row_taps(self) -> int:
        return prod(len(taps[0].indices) for taps in self.outer)

    def calls(self) -> list[Call] | None:
        """Every kernel and where it is called; None where rows differ so that there would be many kernels, or lie too
        far apart for code."""
        columns = self.columns()
        found: list[tuple[ResampleRowsSpec, Call]] = []
        for at in product(*(range(len(taps)) for taps in self.outer[:-1])):
            for run in runs_of(self.outer[-1]):
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
        weights = 4 * self.row_taps if self.row_taps > 1 else 0
        starts = (
            src.start_bytes + sum(tap.indices[0] * step for tap, step in zip(chosen, src_steps, strict=True)),
            dst.start_bytes + sum(o * step for o, step in zip(at, dst_steps, strict=True)),
            weights * self.row_number(at),
        )
        taps = product(*([i * step for i in pattern(tap)] for tap, step in zip(chosen, src_steps, strict=True)))
        offsets = tuple(sum(each) for each in taps)
        groups = Step(run.groups, run.moves * src_steps[-1], run.step * dst_steps[-1], run.step * weights)
        *outer, planes = [Step(*loop, 0) for loop in self.planes.loops()]
        cycles = self.cost(run, columns)
        inside: tuple[Step, ...] = (groups,)
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
                walked = [*outer, Step(times, *(count * step for step in planes[1:]))]
                yield spec, Call(spec, begin, tuple(Loop(loop.times, loop[1:]) for loop in walked), count * cycles)

    def spec(self, loops: tuple[Step, ...], offsets: tuple[int, ...], columns: tuple[Column, ...], together: int,
             dst_row: int) -> ResampleRowsSpec:  # fmt: skip
        results, width = len(self.axes[-1]), self.planes.sizes[-1]
        steps = (dst_row, *(loop.dst_bytes for loop in loops))
        streams = self.streams and results % LINE_ELEMENTS == 0 and not any(s % (4 * LINE_ELEMENTS) for s in steps)
        sizes = width, results, together, dst_row
        return ResampleRowsSpec(self.isa, loops, offsets, columns, *sizes, streams, self.chain)

    def row_number(self, at: Sequence[int]) -> int:
        """Of a row of dst in its plane."""
        number = 0
        for o, taps in zip(at, self.outer, strict=True):
            number = number * len(taps) + o
        return number

    def cost(self, run: ResampleRun, columns: Sequence[Column]) -> int:
        """Cycles of a group of rows in one plane."""
        taps = self.row_taps
        return 8 + len(columns) * (taps * (2 * len(columns[0]) - 1) + run.together * (1 + (taps > 1) * 2 * taps))


def within_reach(spec: ResampleRowsSpec) -> bool:
    """Whether displacements and steps fit 32 bits."""
    reach = max(abs(step) * loop.times for loop in spec.loops for step in loop[1:])
    return max(reach, spec.together * spec.dst_row_bytes, *map(abs, spec.taps)) <= MAX_OFFSET // 2
