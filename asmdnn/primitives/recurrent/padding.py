"""Rows after the ends of padded sequences: zeros, so that products over all rows count them as nothing."""

from collections.abc import Iterator

import numpy as np

from asmdnn.generators.move.rows import ARGUMENTS, RowsSpec
from asmdnn.isa.vectors import NARROWEST
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import NOTHING, Phase, View, records_of
from asmdnn.primitives.recurrent.rows import BufferRows, Runs, Time, runs_of

VECTOR_BYTES = 32


def add_zeros(assembly: Assembly, time: Time, rows: BufferRows, columns: int) -> None:
    """Zeros in the steps after the end of each sequence; nothing where all have all steps."""
    if not time.is_padded:
        return
    ended = [(step, runs_of([n <= step for n in time.lengths])) for step in range(time.sizes.steps)]
    assembly.add([moved(assembly, ended, None, rows, columns)])


def add_copy(assembly: Assembly, time: Time, source: BufferRows, rows: BufferRows, columns: int) -> None:
    """The steps that sequences have, from one place to another one."""
    steps = [(step, runs_of([n > step for n in time.lengths])) for step in range(time.sizes.steps)]
    assembly.add([moved(assembly, steps, source, rows, columns)])


def moved(
    assembly: Assembly, steps: list[tuple[int, Runs]], source: BufferRows | None, target: BufferRows, columns: int
) -> Phase:
    """The phase that copies runs of rows, or makes them zeros."""
    numbers: dict[RowsSpec, int] = {}
    found, cycles, size = [], [], columns * target.dtype.size_bytes
    for step, first, count in runs_in(steps):
        src, step_bytes = (source.start(step, first), source.row_bytes) if source else (0, 0)
        dst = target.start(step, first)
        spec = RowsSpec(
            isa=NARROWEST, rows=count, row_bytes=size, src_step=step_bytes, dst_step=target.row_bytes,
            zero=source is None,
        )  # fmt: skip
        found.append((numbers.setdefault(spec, len(numbers)), src, dst))
        cycles.append(assembly.tuning.phases.call_cycles + 2 * count * size // VECTOR_BYTES)
    kernel, src_at, dst_at = np.array(found, np.int64).T
    records = records_of(ARGUMENTS, {"src": src_at, "dst": dst_at}, kernel)
    place = View(source.buffer) if source else NOTHING
    return Phase(
        tuple(numbers), (place, View(target.buffer)), records, np.array(cycles, np.int32),
        alone=sum(cycles) < assembly.tuning.recurrent.alone_cycles,
    )  # fmt: skip


def runs_in(steps: list[tuple[int, Runs]]) -> Iterator[tuple[int, int, int]]:
    """(step, first row, how many)."""
    return ((step, *run) for step, runs in steps for run in runs)
