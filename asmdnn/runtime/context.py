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
        self._kernels: dict[int, Int64] = {}
        bounds, has_barrier = plan.split(parts), barriers_before(plan.phases)
        own = [*zip(plan.phases, bounds, strict=True)]
        keys = [share_key(*each) for each in own]
        alike = dict(zip(keys, own, strict=True))
        self._shares = dict(zip(alike, shares_of([*alike.values()]), strict=True))
        shares = [self._shares[key] for key in keys]
        self.phases = [self._table(*entry) for entry in zip(plan.phases, shares, has_barrier, strict=True)]

    @property
    def nbytes(self) -> int:
        """Of all tables."""
        return sum(array.nbytes for array in (*self._shares.values(), *self._kernels.values()))

    def _table(self, phase: Phase, shares: Int64, has_barrier: bool) -> PhaseTable:
        if id(phase.kernels) not in self._kernels:
            found = [self._addresses[number] for number in self._plan.numbers_of(phase)]
            self._kernels[id(phase.kernels)] = np.array(found, np.int64)
        kernels = self._kernels[id(phase.kernels)]
        has_own = any(view.buffer in self._plan.per_part for view in phase.arguments)
        if not phase.repeats and not has_own:
            return PhaseTable(phase, shares, kernels, has_barrier)
        return PhaseTable(phase, shares, kernels, has_barrier, phase.starts(), self._part_bytes(phase))

    def _part_bytes(self, phase: Phase) -> Int64:
        """int64[arguments]: what a part adds for each part before it."""
        plan = self._plan
        own = [plan.scratch_stride(v.buffer) if v.buffer in plan.per_part else 0 for v in phase.arguments]
        return np.array(own, np.int64)


def share_key(phase: Phase, bounds: Int64) -> tuple[int, bool, int, int, int]:
    """What shares of a phase depend on."""
    return id(bounds), phase.backwards, len(phase.records), phase.rounds, len(phase.arguments)


def shares_of(phases: Sequence[tuple[Phase, Int64]]) -> Int64:
    """int64[phases, parts, 8], in bytes, as they are walked, of phases and their bounds: see ShareWord."""
    arguments, sizes, backwards = np.array(
        [(len(phase.arguments), max(1, len(phase.records)), phase.backwards) for phase, _ in phases]
    ).T[:, :, None]
    round_bytes, record = WORD * arguments, WORD * (1 + arguments)
    bounds = np.array([own for _, own in phases])
    begin, end = bounds[:, :-1], np.maximum(bounds[:, 1:], bounds[:, :-1])
    empty = begin == end
    first, at = np.divmod(np.where(empty, 0, begin), sizes)
    last = np.where(empty, 0, (end - 1) // sizes)
    stop = np.where(empty, 0, end - last * sizes)
    back = backwards.astype(bool)
    first, at, last, stop = (
        np.where(back, last, first),
        np.where(back, stop - 1, at),
        np.where(back, first, last),
        np.where(back, np.where(empty, stop - 1, at - 1), stop),
    )
    way = np.where(back, -1, 1)
    ways = (
        way * record,
        np.where(back, record * (sizes - 1), 0),
        way * record * np.where(back, 1, sizes),
        way * round_bytes,
    )
    own = (round_bytes * first, record * at, round_bytes * last, record * stop)
    shares: Int64 = np.stack(np.broadcast_arrays(*own, *ways), 2)
    assert shares.shape[2] == len(ShareWord)
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
