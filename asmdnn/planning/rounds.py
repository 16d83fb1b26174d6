"""Records in nested loops: a few of the inner steps written out, the outer loops as rounds."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.phase import Int64, Phase, Repeat, View
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.records import replace

Loop = tuple[int, tuple[int, ...]]  # (times, bytes of every argument from one to the next)


def in_loops(
    kernels: tuple[KernelSpec, ...],
    arguments: tuple[View, ...],
    records: Int64,
    cycles: npt.NDArray[np.int32],
    loops: Sequence[Loop],
    tuning: PhaseTuning,
) -> list[Phase]:
    """Phases that run all records in every step of the loops, the outermost first; no barrier between them."""
    outer, size, most = [loop for loop in loops if loop[0] > 1], len(records), tuning.round_records
    inner: list[Loop] = []
    while outer and size * outer[-1][0] <= most:
        size *= outer[-1][0]
        inner.insert(0, outer.pop())
    rest: list[Phase] = []
    if outer and 2 * size <= most:
        times, strides = outer.pop()
        together = most // size
        count, more = divmod(times, together)
        far = tuple(together * stride for stride in strides)
        if more:
            remaining = records.copy()
            remaining[:, 1:] += np.array(far, np.int64) * count
            rest = in_loops(kernels, arguments, remaining, cycles, [*outer, (more, strides), *inner], tuning)
        inner.insert(0, (together, strides))
        outer.append((count, far))
    repeats = tuple(Repeat(times, strides) for times, strides in outer if times > 1)
    many = written_out(records, inner)
    phase = Phase(kernels, arguments, many, np.resize(cycles, len(many)), repeats=repeats)
    return [phase, *without_barrier(rest)]


def written_out(records: Int64, loops: Sequence[Loop]) -> Int64:
    """All records in every step of the loops."""
    for times, strides in reversed(loops):
        steps = np.arange(times, dtype=np.int64)[:, None] * np.array((0, *strides), np.int64)
        records = (steps[:, None] + records).reshape(-1, records.shape[1])
    return records


def without_barrier(phases: Sequence[Phase]) -> list[Phase]:
    """The phases without a barrier before the first, which touches nothing that the phases before it touch."""
    return [replace(phase, independent=phase.independent or i == 0) for i, phase in enumerate(phases)]
