"""Compensation of s8 weights: a phase over the result of a reorder, its kernels, records and the taps that they share.

The digits of the dims in the mask are loops over outputs, those of all others are summed.  Zero padding is summed too,
so that dims in blocks are whole loops.  Of the summed loops the dense one and some steps of the next are a kernel's,
the others become taps; each record owns its outputs, so that sums are the same for every number of threads.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product

import numpy as np

from asmdnn.generators.move.compensation import (
    FACTOR,
    LANES,
    MOST_SUMS,
    S32_BYTES,
    UNROLLED,
    VECTOR_BYTES,
    CompensationSpec,
    has_lanes,
)
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Box, Loop, cut_loop, digits, merge, pieces_of, together
from asmdnn.planning.phase import MOST_CYCLES, Int64, View
from asmdnn.primitives.reorder.quantization import strides_of
from asmdnn.types import s32

ONCE = Loop(1, (0, 0))


def compensation_desc(dst: MemoryDesc, mask: int) -> MemoryDesc:
    """s32, dense: the dims of the mask, or a single number."""
    dims = tuple(size for dim, size in enumerate(dst.dims) if mask >> dim & 1) or (1,)
    return MemoryDesc(dims, s32, LETTERS[: len(dims)])


def add_compensation(
    assembly: Assembly,
    dst: MemoryDesc,
    mask: int,
    places: tuple[View, View] = (View("dst"), View("compensation")),
    factor: int = FACTOR,
) -> None:
    """What computes the second buffer of `places` from the first: -factor times the sums of dst."""
    tuning = assembly.tuning
    if 0 in dst.dims:
        size_bytes = compensation_desc(dst, mask).size_bytes
        zeros = RowsSpec(isa=NARROWEST, rows=1, row_bytes=size_bytes, src_step=0, dst_step=size_bytes, zero=True)
        made = [Call(zeros, (0, 0), (), tuning.moves.call_cycles)] if size_bytes else []
        assembly.add(phases_of(made, places, tuning.phases))
        return
    summed = merge([x for dim in range(dst.ndims) if not mask >> dim & 1 for x in padded_loops(dst, dim)])
    dense = next((x.extent for x in summed if x.src == 1), 1)
    steps, taps = taps_of([x for x in summed if x.src != 1], dense, tuning.moves.compensation_vectors)
    made = []  # with ymm registers: on a Zen 4 60 to 100 bytes a nanosecond, near what L2 gives
    for box, outputs in calls(dst, mask, dense):
        spec = CompensationSpec(
            isa=NARROWEST, outputs=outputs.extent, dense=dense, src_step=outputs.src, repeats=steps.extent,
            repeat_step=steps.src, dst_step=outputs.dst, factor=factor,
        )  # fmt: skip
        cycles = min(tuning.moves.call_cycles + spec.cycles_a_tap * len(taps), MOST_CYCLES)
        outer = sorted((x for x in box.loops if x is not outputs), key=lambda x: -x.dst)
        made.append(Call(spec, box.starts, tuple(outer), cycles))
    tap_list = assembly.constant("taps", np.concatenate(([len(taps)], taps)))
    assembly.add(phases_of(made, (*places, View(tap_list)), tuning.phases))


def add_sums(assembly: Assembly, weights: SummedDesc, name: str = "dst") -> None:
    """What computes the sums that lie after weights, which are there."""
    elements = View(name, 0, weights.storage.size_bytes)
    for begin, factor in zip(weights.begins, (FACTOR, 1), strict=True):
        add_compensation(assembly, weights.storage, weights.mask, (elements, View(name, begin)), factor)


def but_depth(ndims: int) -> int:
    """The mask of all dims of weights but k."""
    return (1 << ndims) - 1 - (1 << ndims - 2)


def padded_loops(dst: MemoryDesc, dim: int) -> Iterator[Loop]:
    """The loops over a dim with its padding, in bytes of dst."""
    places, size = digits(dst, dim), dst.padded_dims[dim]
    (piece,) = pieces_of(size, size, (places, places))
    return iter(piece.loops)


def taps_of(loops: Sequence[Loop], dense: int, vectors: int) -> tuple[Loop, Int64]:
    """The steps of the innermost loop that a kernel repeats, adding at most so many vectors a tap; and where each tap
    begins, in the order of memory."""
    if not loops:
        return ONCE, np.zeros(1, np.int64)
    *outer, inner = loops
    most = vectors // (MOST_SUMS * -(-dense // VECTOR_BYTES)) if dense <= UNROLLED * VECTOR_BYTES else 1
    most = min(most, MAX_OFFSET // 2 // inner.src)
    repeats = next((n for n in range(min(most, inner.extent), 1, -1) if inner.extent % n == 0), 1)
    steps = [*outer, Loop(inner.extent // repeats, inner.every(repeats))]
    taps = reduce(np.add.outer, [np.arange(x.extent, dtype=np.int64) * x.src for x in steps])
    return Loop(repeats, inner.strides) if repeats > 1 else ONCE, taps.ravel()


def calls(dst: MemoryDesc, mask: int, dense: int) -> Iterator[tuple[Box, Loop]]:
    """Boxes of outputs, from bytes of dst to bytes of the compensation, each with the loop that one call does."""
    strides = strides_of(dst.dims, mask)
    choices = [
        list(pieces_of(size, size, (digits(dst, dim), [(1, strides[dim])])))
        for dim, size in enumerate(dst.dims)
        if mask >> dim & 1
    ]
    for pieces in product(*choices):
        box = together((dst.offset0, 0), pieces).in_bytes((1, S32_BYTES))
        outputs = outputs_of(box.loops, dense)
        most = MOST_SUMS * (LANES if has_lanes(dense, outputs.src) else 1)
        most = max(1, min(most, MAX_OFFSET // 2 // max(outputs.src, outputs.dst)))
        yield from cut_loop(box, outputs, most)


def outputs_of(loops: Sequence[Loop], dense: int) -> Loop:
    """What a call does: neighbours in dst, else as many as it can, the nearer the better."""
    neighbours = next((x for x in loops if x.src == dense), None)
    return neighbours or max(
        loops, key=lambda x: (min(x.extent, MOST_SUMS), -x.src), default=Loop(1, (dense, S32_BYTES))
    )
