"""A plan: kernel specs, and as plain numpy data the schedule, which says what works on which bytes in which order.

A record is int64[1 + arguments]: the kernel's index, then the byte offset of every argument from its buffer's start.
Records of one phase write disjoint bytes and may run in any order on any thread; between two phases all threads meet.
What a record computes does not depend on who runs it, so results are bitwise equal for every thread count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from asmdnn.generators.footprint import Footprint
from asmdnn.isa.assembler import Assembler
from asmdnn.memory import MemoryDesc

Int64 = npt.NDArray[np.int64]

INLINE_CYCLES = 12_000  # below this a team costs more than it saves: a fork-join is 3,000 cycles when all is warm


class KernelSpec(Protocol):
    """Everything that a kernel's bytes depend on, as a frozen dataclass."""

    @property
    def isa(self) -> str: ...
    @property
    def name(self) -> str: ...
    def generate(self, asm: Assembler) -> None: ...
    def footprint(self) -> Footprint: ...


@dataclass(frozen=True, eq=False)
class Phase:
    """Records that may run at the same time.

    arguments: the buffer's name behind each argument.  records: int64[n, 1 + arguments].  cycles: int64[n], what each
    record is expected to cost; threads get ranges of equal cost.
    """

    arguments: tuple[str, ...]
    records: Int64
    cycles: Int64

    def split(self, parts: int) -> Int64:
        """int64[parts + 1]: the first record of each part, and the end; parts cost the same within a record."""
        done = np.cumsum(self.cycles)
        total = int(done[-1]) if len(done) else 0
        inner = np.searchsorted(done, total * np.arange(1, parts) / parts, side="left")
        return np.concatenate(([0], inner, [len(done)])).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Plan:
    """What an implementation will do, for any number of threads.

    tensors: the descriptors of the arguments that the caller passes; constants: data that the plan owns (tap lists);
    scratch_bytes: buffers that live during a call, 64-byte aligned.  `outputs` names the tensors that are written.
    """

    implementation: str
    specs: tuple[KernelSpec, ...]
    phases: tuple[Phase, ...]
    tensors: Mapping[str, MemoryDesc]
    constants: Mapping[str, Int64]
    scratch_bytes: Mapping[str, int]
    outputs: tuple[str, ...]

    @cached_property
    def cycles(self) -> int:
        """The expected cost of one call on one thread."""
        return sum(int(phase.cycles.sum()) for phase in self.phases)

    def parts(self, threads: int) -> int:
        """How many threads are worth waking for this plan."""
        return threads if self.cycles >= INLINE_CYCLES else 1

    def buffer_bytes(self, name: str) -> int:
        """The size of a tensor, constant or scratch buffer."""
        if name in self.tensors:
            return self.tensors[name].size_bytes
        return self.constants[name].nbytes if name in self.constants else self.scratch_bytes[name]

    def check(self) -> None:
        """Prove that every access is inside its buffer, that records of a phase are disjoint, that all is written.

        Raises PlanError, which names the phase, the record and the argument.
        """
        from asmdnn.runtime.check import check_plan

        check_plan(self)


def concatenate(phases: Sequence[tuple[Phase, int]], arguments: int) -> tuple[Phase, ...]:
    """Phases whose kernel indices are shifted by the given numbers, all widened to `arguments` arguments."""
    widened = []
    for phase, shift in phases:
        records = np.zeros((len(phase.records), 1 + arguments), np.int64)
        records[:, : phase.records.shape[1]] = phase.records
        records[:, 0] += shift
        names = phase.arguments + phase.arguments[-1:] * (arguments - len(phase.arguments))
        widened.append(Phase(names, records, phase.cycles))
    return tuple(widened)
