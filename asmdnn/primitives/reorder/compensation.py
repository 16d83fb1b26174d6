"""Compensation of s8 weights: a phase over the result of a reorder, its kernels, records and the taps that they share.

The digits of the dims in the mask are loops over outputs, those of all others are summed.  Zero padding is summed too,
so that dims in blocks are whole loops.  Of the summed loops the dense one and some steps of the next are a kernel's,
the others become taps; each record owns its outputs, so that sums are the same for every number of threads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product

import numpy as np

from asmdnn.generators.move import compensation
from asmdnn.generators.move.compensation import (
    LANES,
    MOST_SUMS,
    S32_BYTES,
    UNROLLED,
    VECTOR_BYTES,
    CompensationSpec,
    has_lanes,
)
from asmdnn.generators.move.rows import ARGUMENTS as ROWS_ARGUMENTS
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.phase import Int64, Phase, views
from asmdnn.planning.tuning import MoveTuning
from asmdnn.primitives.reorder.blocks import KERNEL_ISA, MAX_OFFSET, SINGLE, Shape, split
from asmdnn.primitives.reorder.loops import Box, Loop, digits, merge, pieces_of
from asmdnn.primitives.reorder.quantization import strides_of
from asmdnn.primitives.reorder.schedule import starts
from asmdnn.types import s32

MOST_CYCLES = 2**31 - 1
Phased = tuple[Phase, dict[str, Int64]]


def compensation_desc(dst: MemoryDesc, mask: int) -> MemoryDesc:
    """s32, dense: the dims of the mask, or a single number."""
    dims = tuple(size for dim, size in enumerate(dst.dims) if mask >> dim & 1) or (1,)
    return MemoryDesc(dims, s32, LETTERS[: len(dims)])


def compensation_phase(dst: MemoryDesc, mask: int, tuning: MoveTuning) -> Phased:
    """The phase and the constants that compute the buffer "compensation" from "dst"."""
    if 0 in dst.dims:
        return nothing_to_sum(compensation_desc(dst, mask).size_bytes, tuning)
    summed = merge([x for dim in range(dst.ndims) if not mask >> dim & 1 for x in padded_loops(dst, dim)])
    dense = next((x.extent for x in summed if x.src == 1), 1)
    steps, taps = taps_of([x for x in summed if x.src != 1], dense, tuning.compensation_vectors)
    index: dict[CompensationSpec | RowsSpec, int] = {}
    records, cycles = [], []
    for box, outputs in calls(dst, mask, dense):
        spec = CompensationSpec(KERNEL_ISA, outputs.extent, dense, outputs.src, steps.extent, steps.src, outputs.dst)
        grid = starts(box, Shape(False, SINGLE, outputs))
        grid[:, 2] = 0  # all walk the same taps
        kernel = np.full((len(grid), 1), index.setdefault(spec, len(index)))
        records.append(np.concatenate((kernel, grid), axis=1))
        cost = min(tuning.call_cycles + spec.cycles_a_tap * len(taps), MOST_CYCLES)
        cycles.append(np.full(len(grid), cost, np.int32))
    arguments = ("dst", *compensation.ARGUMENTS[1:])
    together = np.ascontiguousarray(np.concatenate(records))
    phase = Phase(tuple(index), views(arguments), together, np.concatenate(cycles))
    return phase, {"taps": np.concatenate(([len(taps)], taps))}


def nothing_to_sum(size_bytes: int, tuning: MoveTuning) -> Phased:
    """Zeros, if there are any outputs."""
    spec = RowsSpec(KERNEL_ISA, 1, size_bytes, 0, size_bytes, zero=True)
    count = int(size_bytes > 0)
    records = np.zeros((count, 1 + len(ROWS_ARGUMENTS)), np.int64)
    cycles = np.full(count, tuning.call_cycles, np.int32)
    return Phase((spec,) * count, views(("dst", "compensation")), records, cycles), {}


def padded_loops(dst: MemoryDesc, dim: int) -> Iterator[Loop]:
    """The loops over a dim with its padding, in bytes of dst."""
    places, size = digits(dst, dim), dst.padded_dims[dim]
    (piece,) = pieces_of(size, size, places, places, 0)
    return (x for x in piece.loops if x.extent > 1)


def taps_of(loops: Sequence[Loop], dense: int, vectors: int) -> tuple[Loop, Int64]:
    """The steps of the innermost loop that a kernel repeats, adding at most so many vectors a tap; and where each tap
    begins, in the order of memory."""
    if not loops:
        return Loop(1, 0, 0), np.zeros(1, np.int64)
    *outer, inner = loops
    most = vectors // (MOST_SUMS * -(-dense // VECTOR_BYTES)) if dense <= UNROLLED * VECTOR_BYTES else 1
    most = min(most, MAX_OFFSET // 2 // inner.src)
    repeats = next((n for n in range(min(most, inner.extent), 1, -1) if inner.extent % n == 0), 1)
    steps = [*outer, Loop(inner.extent // repeats, inner.src * repeats, 0)]
    taps = reduce(np.add.outer, [np.arange(x.extent, dtype=np.int64) * x.src for x in steps])
    return replace(inner, extent=repeats) if repeats > 1 else Loop(1, 0, 0), taps.ravel()


def calls(dst: MemoryDesc, mask: int, dense: int) -> Iterator[tuple[Box, Loop]]:
    """Boxes of outputs, from bytes of dst to bytes of the compensation, each with the loop that one call does."""
    places, strides = [digits(dst, dim) for dim in range(dst.ndims)], strides_of(dst.dims, mask)
    choices = [
        list(pieces_of(size, size, places[dim], places[dim], strides[dim]))
        for dim, size in enumerate(dst.dims)
        if mask >> dim & 1
    ]
    for pieces in product(*choices):
        loops = merge([Loop(x.extent, x.src, x.scale * S32_BYTES) for p in pieces for x in p.loops if x.extent > 1])
        start = dst.offset0 + sum(p.src for p in pieces), S32_BYTES * sum(p.scale for p in pieces)
        box, outputs = Box(*start, tuple(loops), False), outputs_of(loops, dense)
        most = MOST_SUMS * (LANES if has_lanes(dense, outputs.src) else 1)
        most = max(1, min(most, MAX_OFFSET // 2 // max(outputs.src, outputs.dst)))
        if outputs.extent <= most:
            yield box, outputs
        else:
            yield from ((part, part.loops[-1]) for part in split(box, outputs, most))


def outputs_of(loops: Sequence[Loop], dense: int) -> Loop:
    """What a call does: neighbours in dst, else as many as it can, the nearer the better."""
    neighbours = next((x for x in loops if x.src == dense), None)
    return neighbours or max(loops, key=lambda x: (min(x.extent, MOST_SUMS), -x.src), default=Loop(1, dense, S32_BYTES))
