"""What the executor reads beside records: shares of parts, kernel tables and rounds; see `generators/context.py`."""

from collections.abc import Sequence

import numpy as np

from asmdnn.generators.context import WORD, PhaseWord, ShareWord
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.phases import barriers_before
from asmdnn.planning.plan import Plan
from asmdnn.records import dataclass

USUAL_MXCSR = 0x1F80  # round to nearest even, no exception is raised
FLUSHING_MXCSR = USUAL_MXCSR | 0x8040  # and subnormal results and operands are zero


@dataclass(frozen=True, eq=False, slots=True)
class PhaseTable:
    """The arrays of a phase; their addresses are words of the context, so they live as long as that.

    shares: int64[parts, 8].  kernels: int64[kernels of the phase], addresses.  starts, part_bytes: None if there is
    one round and no part has anything for itself.
    """

    phase: Phase
    shares: Int64
    kernels: Int64
    has_barrier: bool
    starts: Int64 | None = None
    part_bytes: Int64 | None = None


class PhaseTables:
    """The tables of all phases, those that phases share made once."""

    def __init__(self, plan: Plan, parts: int, addresses: Sequence[int]) -> None:
        """addresses: of the kernels of plan.specs."""
        self._plan, self._addresses = plan, addresses
        self._shares: dict[tuple[object, ...], Int64] = {}
        self._kernels: dict[int, Int64] = {}
        bounds, has_barrier = plan.split(parts), barriers_before(plan.phases)
        self.phases = [self._table(*entry) for entry in zip(plan.phases, bounds, has_barrier, strict=True)]

    @property
    def nbytes(self) -> int:
        """Of all tables."""
        return sum(array.nbytes for array in (*self._shares.values(), *self._kernels.values()))

    def _table(self, phase: Phase, bounds: Int64, has_barrier: bool) -> PhaseTable:
        key = (id(bounds), phase.backwards, len(phase.records), phase.rounds)
        if key not in self._shares:
            self._shares[key] = shares_of(phase, bounds)
        if id(phase.kernels) not in self._kernels:
            found = [self._addresses[number] for number in self._plan.numbers_of(phase)]
            self._kernels[id(phase.kernels)] = np.array(found, np.int64)
        shares, kernels = self._shares[key], self._kernels[id(phase.kernels)]
        has_own = any(view.buffer in self._plan.per_part for view in phase.arguments)
        if not phase.repeats and not has_own:
            return PhaseTable(phase, shares, kernels, has_barrier)
        return PhaseTable(phase, shares, kernels, has_barrier, phase.starts(), self._part_bytes(phase))

    def _part_bytes(self, phase: Phase) -> Int64:
        """int64[arguments]: what a part adds for each part before it."""
        plan = self._plan
        own = [plan.scratch_stride(v.buffer) if v.buffer in plan.per_part else 0 for v in phase.arguments]
        return np.array(own, np.int64)


def shares_of(phase: Phase, bounds: Int64) -> Int64:
    """int64[parts, 8], in bytes, as they are walked: see ShareWord."""
    size, record = max(1, len(phase.records)), WORD * (1 + len(phase.arguments))
    round_bytes = WORD * len(phase.arguments)
    ways = (record, 0, record * size, round_bytes)
    begin, end = bounds[:-1], np.maximum(bounds[1:], bounds[:-1])
    empty = begin == end
    first, at = np.divmod(np.where(empty, 0, begin), size)
    last = np.where(empty, 0, (end - 1) // size)
    stop = np.where(empty, 0, end - last * size)
    if phase.backwards:
        first, at, last, stop = last, stop - 1, first, at - 1
        stop = np.where(empty, at, stop)
        ways = (-record, record * (size - 1), -record, -round_bytes)
    own = np.stack((round_bytes * first, record * at, round_bytes * last, record * stop), 1)
    shares: Int64 = np.concatenate((own, np.tile(np.array(ways, np.int64), (len(own), 1))), 1)
    assert shares.shape[1] == len(ShareWord)
    return shares


def phase_words(table: PhaseTable) -> list[int]:
    """The words of a phase, in front of its bases."""
    phase, words = table.phase, [0] * len(PhaseWord)
    words[PhaseWord.RECORDS] = phase.records.ctypes.data
    words[PhaseWord.SHARES] = table.shares.ctypes.data
    words[PhaseWord.KERNELS] = table.kernels.ctypes.data
    words[PhaseWord.BARRIER], words[PhaseWord.ARGUMENTS] = int(table.has_barrier), len(phase.arguments)
    words[PhaseWord.MXCSR] = FLUSHING_MXCSR if phase.flushes else USUAL_MXCSR
    if table.starts is not None and table.part_bytes is not None:
        words[PhaseWord.STARTS], words[PhaseWord.PART_BYTES] = table.starts.ctypes.data, table.part_bytes.ctypes.data
    return words
