"""Resampling where channels are dense: a kernel for each run of results in a row whose taps have one pattern."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.resample import ResampleSpec, ResampleStep
from asmdnn.generators.functions.resample_typed import TypedResampleSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of, vector_bytes
from asmdnn.planning.phase import Int64, Phase, View
from asmdnn.planning.refusal import Refused
from asmdnn.planning.rounds import Loop, in_loops, without_barrier, written_out
from asmdnn.planning.tuning import PhaseTuning, ResamplingTuning
from asmdnn.primitives.pooling.schedule import Planes
from asmdnn.primitives.resampling.taps import ResampleRun, ResampleTap, ResampleTaps, pattern, runs_of
from asmdnn.types import f32

LINE_ELEMENTS = 16
F32 = ("f32", "f32")
Cycles = npt.NDArray[np.int32]
Piece = tuple[Int64, Cycles, tuple[Loop, ...]]  # records of some planes, their cycles, and the loops over all


class DenseChannels:
    """The records of all rows of dst, by the runs of the last axis.

    axes: taps of every spatial axis; streams: whether dst goes past the caches; kinds: of src and dst.
    """

    def __init__(
        self,
        isa: str,
        planes: Planes,
        axes: Sequence[ResampleTaps],
        streams: bool,
        tuning: ResamplingTuning,
        chain: tuple[PostOp, ...] = (),
        kinds: tuple[str, str] = F32,
    ) -> None:
        self.isa, self.planes, self.axes, self.chain, self.kinds = isa, planes, axes, chain, kinds
        self.runs, self.elements = runs_of(axes[-1]), planes.src.block
        self.record_cycles = tuning.channels_cycles
        lanes, pixel = lanes_of(isa), planes.dst.pixel_bytes
        lines = self.elements % LINE_ELEMENTS == 0 or pixel == self.elements * f32.size_bytes  # are written at once
        dense = max((run.groups * run.together for run in self.runs if run.step in (0, run.together)), default=0)
        in_order = tuning.pieces_stream or 2 * dense >= len(axes[-1])  # else pieces of a row come one after the other
        streams = streams and kinds == F32
        self.streams = streams and lines and in_order and self.elements % lanes == 0 and pixel % vector_bytes(isa) == 0

    def phases(self, arguments: tuple[View, ...], tuning: PhaseTuning) -> list[Phase]:
        """All records in the order of dst, or, of many, rounds of those of some planes.  Raises Refused."""
        index: dict[ResampleSpec, int] = {}
        pieces = list(self.pieces(index, tuning.call_cycles))
        kernels = tuple(index)
        if sum(len(records) * prod(times for times, _ in loops) for records, _, loops in pieces) > tuning.written_out:
            made = [
                in_loops(kernels, arguments, *in_order_of_dst(records, cycles), loops, tuning)
                for records, cycles, loops in pieces
            ]
            return [*made[0], *(phase for some in made[1:] for phase in without_barrier(some))]
        everything = [written_out(records, loops) for records, _, loops in pieces]
        costs = [np.resize(cycles, len(all_of)) for all_of, (_, cycles, _) in zip(everything, pieces, strict=True)]
        return [Phase(kernels, arguments, *in_order_of_dst(np.concatenate(everything), np.concatenate(costs)))]

    def pieces(self, index: dict[ResampleSpec, int], call_cycles: int) -> Iterator[Piece]:
        """The records of as many planes as a call takes, for all loops over planes; kernels get their number."""
        found: dict[tuple[Loop, ...], list[tuple[Int64, Cycles]]] = {}
        for at, rows in self.rows_alike():
            for run in self.runs:
                chosen = [taps[o] for o, taps in zip((*at, run.output), self.axes, strict=True)]
                for count, first, loops in self.plane_groups(run):
                    number = index.setdefault(self.spec(chosen, run, count), len(index))
                    place = np.array((number, *first, *[0] * (len(self.axes) - 1), self.weights_at(-1, run.output)))
                    place[1] += self.planes.src.pixel_bytes * chosen[-1].indices[0]
                    place[2] += self.planes.dst.pixel_bytes * run.output
                    cycles = call_cycles + count * self.cost(run, chosen)
                    found.setdefault(loops, []).append((rows + place, np.full(len(rows), cycles, np.int32)))
        for loops, some in found.items():
            records, costs = zip(*some, strict=True)
            yield np.concatenate(records), np.concatenate(costs), loops

    def rows_alike(self) -> list[tuple[tuple[int, ...], Int64]]:
        """Rows of a plane whose taps lie in the same patterns: one of them, and what each adds to a record."""
        src, dst = self.planes.src, self.planes.dst
        sizes = [len(taps) for taps in self.axes[:-1]]
        places = np.indices(sizes).reshape(len(sizes), prod(sizes))
        rows, kind = np.zeros((prod(sizes), 3 + len(self.axes)), np.int64), np.zeros(prod(sizes), np.int64)
        for axis, o in enumerate(places):
            taps, patterns = self.axes[axis], self.axes[axis].patterns
            kind = kind * (patterns.max() + 1) + patterns[o]
            rows[:, 1] += taps.indices[o, 0] * src.axis_bytes[axis]
            rows[:, 2] += o * dst.axis_bytes[axis]
            rows[:, 3 + axis] = o * self.weights_at(axis, 1)
        _, first = np.unique(kind, return_index=True)
        return [(tuple(places[:, i].tolist()), rows[kind == kind[i]]) for i in sorted(first.tolist())]

    def weights_at(self, axis: int, o: int) -> int:
        """The byte offset of a result's weights."""
        count = self.axes[axis].each
        return f32.size_bytes * o * count if count > 1 else 0

    def cost(self, run: ResampleRun, chosen: Sequence[ResampleTap]) -> int:
        """Cycles of a run in one plane."""
        taps = prod(len(tap.indices) for tap in chosen)
        return run.groups * (6 + -(-self.elements // lanes_of(self.isa)) * (1 + taps + run.together))

    def plane_groups(self, run: ResampleRun) -> Iterator[tuple[int, tuple[int, int], tuple[Loop, ...]]]:
        """How many planes a record takes, where its first one is in src and dst, and the loops over all."""
        starts = self.planes.src.start_bytes, self.planes.dst.start_bytes
        *outer, inner = ((loop.times, loop[1:]) for loop in self.planes.loops())
        row_cycles = run.groups * (6 + 3 * run.together * -(-self.elements // lanes_of(self.isa)))
        times, step = inner
        near = MAX_OFFSET // 2 // max(1, *step)  # planes that displacements in code reach
        count = max(1, min(self.record_cycles // row_cycles, times, near))
        whole, rest = divmod(times, count)
        for first, steps, planes in ((0, whole, count), (whole * count, 1, rest)):
            if planes:
                loops = (*outer, (steps, (planes * step[0], planes * step[1])))
                begin = starts[0] + first * step[0], starts[1] + first * step[1]
                weights = (0,) * len(self.axes)
                yield planes, begin, tuple((times, (*strides, *weights)) for times, strides in loops)

    def spec(self, chosen: Sequence[ResampleTap], run: ResampleRun, count: int) -> ResampleSpec:
        """The kernel of a run in so many planes.  Raises Refused where steps exceed what code can say."""
        planes, plane = self.planes, self.planes.loops()[-1]
        src_pixel, dst_pixel = planes.src.pixel_bytes, planes.dst.pixel_bytes
        weights = self.weights_at(-1, run.step)
        loops = [ResampleStep(run.groups, run.moves * src_pixel, run.step * dst_pixel, weights)]
        if count > 1:
            loops.insert(0, ResampleStep(count, plane.src_bytes, plane.dst_bytes, 0))
        steps = zip(chosen, planes.src.axis_bytes, strict=True)
        taps = tuple(tuple(i * at for i in pattern(tap)) for tap, at in steps)
        reach = max(abs(step) * loop.times for loop in loops for step in loop[1:3])
        if max(reach, *(abs(i) for each in taps for i in each)) > MAX_OFFSET // 2:
            raise Refused("a plane spans more than 1 GiB")
        typed: dict[str, Any] = {} if self.kinds == F32 else {"types": self.kinds}
        return (TypedResampleSpec if typed else ResampleSpec)(
            isa=self.isa, loops=tuple(loops), taps=taps, elements=self.elements, together=run.together,
            dst_pixel_bytes=dst_pixel, streaming=self.streams, chain=self.chain, **typed,
        )  # fmt: skip


def in_order_of_dst(records: Int64, cycles: Cycles) -> tuple[Int64, Cycles]:
    """Records by where they write."""
    order = np.argsort(records[:, 2], kind="stable")
    return np.ascontiguousarray(records[order]), cycles[order]
