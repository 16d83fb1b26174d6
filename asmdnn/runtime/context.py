"""What the executor reads beside records: shares of parts, kernel tables and rounds; see `generators/executor.py`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asmdnn.generators.executor import WORD, PhaseWord, RoundsWord
from asmdnn.planning.phase import Int64, KernelSpec, Phase, waits
from asmdnn.planning.plan import Plan

USUAL_MXCSR = 0x1F80  # round to nearest even, no exception is raised
FLUSHING_MXCSR = USUAL_MXCSR | 0x8040  # and subnormal results and operands are zero


@dataclass(frozen=True, eq=False, slots=True)
class PhaseTable:
    """The arrays of a phase; their addresses are words of the context, so they live as long as that.

    shares: int64[parts, 4].  kernels: int64[kernels of the phase], addresses.  rounds: int64[5] or None; starts and
    part_bytes are what it points to.
    """

    phase: Phase
    shares: Int64
    kernels: Int64
    waits: bool
    rounds: Int64 | None = None
    starts: Int64 | None = None
    part_bytes: Int64 | None = None


class PhaseTables:
    """The tables of all phases, those that phases share made once."""

    def __init__(self, plan: Plan, parts: int, addresses: Mapping[KernelSpec, int]) -> None:
        self._plan, self._addresses = plan, addresses
        self._shares: dict[tuple[object, ...], Int64] = {}
        self._kernels: dict[int, Int64] = {}
        bounds, meets = plan.split(parts), waits(plan.phases)
        self.phases = [self._table(*entry) for entry in zip(plan.phases, bounds, meets, strict=True)]

    def _table(self, phase: Phase, bounds: Int64, meets: bool) -> PhaseTable:
        key = (id(bounds), phase.backwards, len(phase.records), phase.rounds)
        if key not in self._shares:
            self._shares[key] = shares_of(phase, bounds)
        if id(phase.kernels) not in self._kernels:
            found = [self._addresses[spec] for spec in phase.kernels]
            self._kernels[id(phase.kernels)] = np.array(found, np.int64)
        part_bytes = self._part_bytes(phase)
        shares, kernels = self._shares[key], self._kernels[id(phase.kernels)]
        if not phase.repeats and not part_bytes.any():
            return PhaseTable(phase, shares, kernels, meets)
        starts = phase.starts()
        rounds = np.zeros(len(RoundsWord), np.int64)
        rounds[RoundsWord.STARTS], rounds[RoundsWord.PART_BYTES] = starts.ctypes.data, part_bytes.ctypes.data
        begin, end, step = 0, phase.records.nbytes, starts.strides[0]
        if phase.backwards:
            begin, end, step = end - phase.records.strides[0], -phase.records.strides[0], -step
        rounds[RoundsWord.BEGIN], rounds[RoundsWord.END], rounds[RoundsWord.NEXT] = begin, end, step
        return PhaseTable(phase, shares, kernels, meets, rounds, starts, part_bytes)

    def _part_bytes(self, phase: Phase) -> Int64:
        """int64[arguments]: what a part adds for each part before it."""
        plan = self._plan
        own = [plan.scratch_stride(v.buffer) if v.buffer in plan.per_part else 0 for v in phase.arguments]
        return np.array(own, np.int64)


def shares_of(phase: Phase, bounds: Int64) -> Int64:
    """int64[parts, 4]: first round, first record, last round, the end in that round; in bytes, as they are walked."""
    size, record = max(1, len(phase.records)), WORD * (1 + len(phase.arguments))
    round_bytes = WORD * len(phase.arguments)
    begin, end = bounds[:-1], np.maximum(bounds[1:], bounds[:-1])
    empty = begin == end
    first, at = np.divmod(np.where(empty, 0, begin), size)
    last = np.where(empty, 0, (end - 1) // size)
    stop = np.where(empty, 0, end - last * size)
    if phase.backwards:
        first, at, last, stop = last, stop - 1, first, at - 1
        stop = np.where(empty, at, stop)
    return np.ascontiguousarray(np.stack((round_bytes * first, record * at, round_bytes * last, record * stop), 1))


def phase_words(table: PhaseTable) -> list[int]:
    """The words of a phase, in front of its bases."""
    phase, words = table.phase, [0] * len(PhaseWord)
    record = phase.records.strides[0] if len(phase.records) else 0
    words[PhaseWord.RECORDS] = phase.records.ctypes.data
    words[PhaseWord.SHARES] = table.shares.ctypes.data
    words[PhaseWord.KERNELS] = table.kernels.ctypes.data
    words[PhaseWord.WAITS] = int(table.waits)
    words[PhaseWord.STEP] = -record if phase.backwards else record
    words[PhaseWord.MXCSR] = FLUSHING_MXCSR if phase.flushes else USUAL_MXCSR
    words[PhaseWord.ROUNDS] = 0 if table.rounds is None else table.rounds.ctypes.data
    return words
