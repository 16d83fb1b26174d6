"""The records of a reorder: boxes of loops become calls of kernels.

Two loops of a box run inside the kernel that reorder_blocks.py chooses; the others become records.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.transpose import across_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase, views
from asmdnn.planning.rounds import apart, in_loops
from asmdnn.planning.tuning import PhaseTuning, Tuning
from asmdnn.primitives.reorder.blocks import SINGLE, Blocks, ReorderSpec, Shape
from asmdnn.primitives.reorder.loops import Box, Loop, boxes, merge


class Call(NamedTuple):
    """The calls of one kernel for a box; each is expected to take `cycles`."""

    kernel: int
    box: Box
    shape: Shape
    cycles: int

    @property
    def records(self) -> int:
        return prod(loop.extent for loop in outer_loops(self.box, self.shape))


def reorder_phases(
    src: MemoryDesc,
    dst: MemoryDesc,
    buffers: tuple[str, ...],
    tuning: Tuning,
    conversion: Conversion | None = None,
    scales: tuple[int, ...] | None = None,
    streams: bool = False,
) -> list[Phase]:
    """Kernels and records that bring buffers[0] into the format of buffers[1].

    conversion: what the types say if None.  scales: the stride of each dim in buffers[2].  streams: the result is too
    large to be found in a cache later.
    """
    moves = tuning.moves
    maker = Blocks(conversion or Conversion(src.dtype.name, dst.dtype.name), streams, moves)
    index: dict[ReorderSpec, int] = {}
    calls: list[Call] = []
    for whole in with_zeros(maker, [maker.in_bytes(box) for box in boxes(src, dst, scales)]):
        for box, shape in maker.cut(whole):
            spec = maker.kernel(box, shape)
            cost = moves.call_cycles + shape.elements * max(maker.sizes) // moves.bytes_per_cycle
            calls.append(Call(index.setdefault(spec, len(index)), box, shape, cost))
    return phases_of(calls, tuple(index), buffers, tuning.phases)


def phases_of(
    calls: Sequence[Call], kernels: tuple[ReorderSpec, ...], buffers: tuple[str, ...], tuning: PhaseTuning
) -> list[Phase]:
    """One phase of all records, or, where there are many, rounds of each box apart from the others."""
    arguments, used = views(buffers), min(3, len(buffers))
    if sum(call.records for call in calls) > tuning.written_out:
        found: list[Phase] = []
        for call in calls:
            record = np.zeros((1, 1 + len(buffers)), np.int64)
            record[0, : 1 + used] = (call.kernel, call.box.src, call.box.dst, call.box.scale)[: 1 + used]
            rest = (0,) * (len(buffers) - used)
            loops = [(x.extent, ((x.src, x.dst, x.scale)[:used] + rest)) for x in outer_loops(call.box, call.shape)]
            made = in_loops(kernels, arguments, record, np.array([call.cycles], np.int32), loops, tuning)
            found += apart(made) if found else made
        return found
    records, cycles = [np.empty((0, 1 + len(buffers)), np.int64)], [np.empty(0, np.int32)]
    for call in calls:
        grid = starts(call.box, call.shape)
        rows = np.zeros((len(grid), 1 + len(buffers)), np.int64)
        rows[:, 0] = call.kernel
        rows[:, 1 : 1 + used] = grid[:, :used]
        records.append(rows)
        cycles.append(np.full(len(grid), call.cycles, np.int32))
    together, costs = np.concatenate(records), np.concatenate(cycles)
    order = np.argsort(together[:, 2], kind="stable")  # a line that two boxes share, such as of padding, is at hand
    return [Phase(kernels, arguments, np.ascontiguousarray(together[order]), costs[order])]


def with_zeros(maker: Blocks, found: list[Box]) -> list[Box]:
    """The boxes with padding taken into the transpose that writes the same rows of dst, so that lines are written once.

    That is padding behind all rows of a transpose, over the same other loops, and short enough to be unrolled.
    """
    taken: set[int] = set()
    result = []
    for box in found:
        shape = maker.shape(replace(box, zeros=1))
        if box.padding or not shape.transposes or not maker.conversion.is_copy:
            result.append(box)
            continue
        unit = shape.rows.dst
        outer = sorted((x.extent, x.dst) for x in merge([Loop(x.extent, 0, x.dst) for x in others_of(box, shape)]))
        zeros = 0
        for i, padding in enumerate(found):
            if padding.padding and padding.dst == box.dst + shape.rows.extent * unit:
                count = zeros_of(padding, outer, maker.sizes[1], unit)
                if count and shape.rows.extent + count <= across_of(unit):
                    zeros = count
                    taken.add(i)
        result.append(replace(box, zeros=zeros))
    return [box for i, box in enumerate(result) if i not in taken]


def others_of(box: Box, shape: Shape) -> list[Loop]:
    """The loops that padding behind the rows shares with them."""
    return [x for x in box.loops if x is not shape.rows and x is not shape.inner]


def zeros_of(padding: Box, outer: list[tuple[int, int]], size: int, unit: int) -> int:
    """How many units the padding has in every step of the loops `outer`; 0 if it has others than these."""
    dense = next((x for x in padding.loops if x.dst == size), SINGLE)
    rest = sorted((x.extent, x.dst) for x in padding.loops if x is not dense)
    return dense.extent * size // unit if rest == outer and dense.extent * size % unit == 0 else 0


def outer_loops(box: Box, shape: Shape) -> list[Loop]:
    """The loops outside of kernels, the outermost in dst first."""
    return sorted((x for x in box.loops if not shape.has(x)), key=lambda x: -x.dst)


def starts(box: Box, shape: Shape) -> Int64:
    """int64[records, 3]: where every call starts in src, dst and scales, so that dst is written as nearly in order as
    can be: lines that two calls share are still in a cache."""
    grid = np.array([[box.src, box.dst, box.scale]], np.int64)
    for loop in outer_loops(box, shape):
        steps = np.arange(loop.extent)[:, None] * (loop.src, loop.dst, loop.scale)
        grid = (grid[:, None] + steps).reshape(-1, 3)
    return grid
