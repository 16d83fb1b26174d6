"""A plan: kernel specs, and as plain numpy data the schedule, which says what works on which bytes in which order.

A record is int64[1 + arguments]: the kernel's index, then the byte offset of every argument from its buffer's start.
Records of one phase write disjoint bytes and may run in any order on any thread.  Before a phase all threads meet,
unless it continues the one before: then its record i goes on with what record i there has written, on the same thread.
What a record computes does not depend on who runs it, so results are bitwise equal for every thread count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from asmdnn.forking import importing
from asmdnn.generators.footprint import Footprint
from asmdnn.isa.assembler import Assembler
from asmdnn.memory import MemoryDesc

Int64 = npt.NDArray[np.int64]

ALIGNMENT_BYTES = 64  # of scratch
INLINE_CYCLES = 12_000  # below this a team costs more than it saves: a fork-join is 3,000 cycles when all is warm


class KernelSpec(Protocol):
    """Everything that a kernel's bytes depend on, as a frozen dataclass.

    isa: the level that it needs.  frame: what the words of its frame are, in order.  footprint: what a call touches,
    relative to the frame's pointers.
    """

    @property
    def isa(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def frame(self) -> tuple[str, ...]: ...
    def generate(self, asm: Assembler) -> None: ...
    def footprint(self) -> Footprint: ...


@dataclass(frozen=True, eq=False)
class Phase:
    """Records that may run at the same time.

    arguments: the buffer's name behind each argument.  records: int64[n, 1 + arguments].  cycles: int32[n], what each
    record is expected to cost; threads get ranges of equal cost.  continues: record i follows record i of the phase
    before, whose output only it touches, so that no thread has to wait.
    """

    arguments: tuple[str, ...]
    records: Int64
    cycles: npt.NDArray[np.int32]
    continues: bool = False

    def uses(self) -> list[tuple[int, int, int]]:
        """(kernel, its records, their expected cycles together) for every kernel of the phase."""
        kernel, records = np.unique(self.records[:, 0], return_counts=True)
        cycles = np.bincount(self.records[:, 0], weights=self.cycles)
        return [(int(k), int(n), int(cycles[k])) for k, n in zip(kernel, records, strict=True)]


@dataclass(frozen=True, eq=False)
class Plan:
    """What an implementation will do, for any number of threads.

    tensors: the descriptors of the arguments that the caller passes; constants: data that the plan owns (tap lists);
    scratch_bytes: buffers that live during a call, 64-byte aligned.  `outputs` names the tensors that are written;
    `in_place` the inputs that may be the same memory as an output of the same descriptor.
    """

    implementation: str
    specs: tuple[KernelSpec, ...]
    phases: tuple[Phase, ...]
    tensors: Mapping[str, MemoryDesc]
    constants: Mapping[str, Int64]
    scratch_bytes: Mapping[str, int]
    outputs: tuple[str, ...]
    in_place: tuple[str, ...] = ()

    @property
    def cycles(self) -> int:
        """The expected cost of one call on one thread."""
        return sum(int(phase.cycles.sum(dtype=np.int64)) for phase in self.phases)

    @property
    def scratch_offsets(self) -> Mapping[str, int]:
        """Where each scratch buffer starts in the scratchpad."""
        sizes = [-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in self.scratch_bytes.values()]
        return dict(zip(self.scratch_bytes, accumulate(sizes, initial=0), strict=False))

    @property
    def scratchpad_bytes(self) -> int:
        """The temporary memory of one call: all scratch buffers side by side."""
        return sum(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in self.scratch_bytes.values())

    def parts(self, threads: int) -> int:
        """How many threads are worth waking for this plan."""
        records = max(len(phase.records) for phase in self.phases)
        return min(threads, records) if self.cycles >= INLINE_CYCLES else 1

    def split(self, parts: int) -> list[Int64]:
        """For each phase int64[parts + 1]: the first record of every part, and the end.

        Parts are cut where their costs come nearest to equal; phases that continue one another are cut alike.
        """
        heads = [i for i, phase in enumerate(self.phases) if not phase.continues] + [len(self.phases)]
        splits = []
        for head, end in pairwise(heads):
            together = np.sum([phase.cycles for phase in self.phases[head:end]], axis=0, dtype=np.int64)
            cost = np.cumsum(together)
            splits += [cut_evenly(np.concatenate(([0], cost)), parts)] * (end - head)
        return splits

    def buffer_bytes(self, name: str) -> int:
        """The size of a tensor, constant or scratch buffer."""
        if name in self.tensors:
            return self.tensors[name].size_bytes
        return self.constants[name].nbytes if name in self.constants else self.scratch_bytes[name]

    def check(self) -> None:
        """Prove that every access is inside its buffer, that records of a phase are disjoint, that all is written.

        Raises PlanError, which names the phase, the record and the argument.
        """
        with importing():
            from asmdnn.planning.check import check_plan

        check_plan(self)


def cut_evenly(done: Int64, parts: int) -> Int64:
    """int64[parts + 1]: where to cut so that parts cost nearly the same; done[i] is the cost of the first i records."""
    target = done[-1] * np.arange(parts + 1) / parts
    above = np.minimum(np.searchsorted(done, target), len(done) - 1)  # a float target may round past the end
    below = np.maximum(above - 1, 0)
    cuts: Int64 = np.where(target - done[below] < done[above] - target, below, above).astype(np.int64)
    return cuts


def concatenate(phases: Sequence[tuple[Phase, int]], arguments: int) -> tuple[Phase, ...]:
    """Phases whose kernel indices are shifted by the given numbers, all widened to `arguments` arguments."""
    widened = []
    for phase, shift in phases:
        records = np.zeros((len(phase.records), 1 + arguments), np.int64)
        records[:, : phase.records.shape[1]] = phase.records
        records[:, 0] += shift
        names = phase.arguments + phase.arguments[-1:] * (arguments - len(phase.arguments))
        widened.append(replace(phase, arguments=names, records=records))
    return tuple(widened)
