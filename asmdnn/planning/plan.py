"""A plan: kernel specs, and as plain numpy data the schedule, which says what works on which bytes in which order.

A barrier stands before each phase, unless it continues the one before or is independent.  What a record computes does
not depend on who runs it, so results are bitwise equal for every thread count.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import NoReturn

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.forking import importing
from asmdnn.generators.contract import KernelSpec
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.splitting import split
from asmdnn.records import dataclass, once, replace

ALIGNMENT_BYTES = 64  # of scratch
APART_BYTES = 128  # between what two threads write
Pairs = tuple[tuple[str, str], ...]  # of inputs, and of outputs whose memory they may be
OBJECTS_BYTES = 2_000  # Python objects of a plan, and of each phase, about, beside the schedule


@dataclass(frozen=True, eq=False)
class Plan:
    """What an implementation will do, for any number of threads.

    tensors: the descriptors of the arguments that the caller passes; constants: data that the plan owns (tap lists),
    read-only from here on; scratch_bytes: buffers that live during a call, 64-byte aligned.  `outputs` names the
    tensors that are written; `in_place` pairs of an input and an output of its descriptor, whose memory it may be;
    `per_part` the scratch of which every part of a phase has its own, that size each.
    """

    implementation: str
    phases: tuple[Phase, ...]
    tensors: Mapping[str, MemoryDesc]
    constants: Mapping[str, Int64]
    scratch_bytes: Mapping[str, int]
    outputs: tuple[str, ...]
    in_place: Pairs = ()
    per_part: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tensors", "constants", "scratch_bytes"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        for array in self.constants.values():
            array.setflags(write=False)

    def __reduce__(self) -> NoReturn:
        """Of this process.  Raises InvalidArguments."""
        raise InvalidArguments("a Plan has no pickle: pickle the description that it is of, and plan it again")

    @once
    def specs(self) -> tuple[KernelSpec, ...]:
        """The kernels of all phases, each once."""
        return self._numbered[0]

    def numbers_of(self, phase: Phase) -> tuple[int, ...]:
        """The numbers in `specs` of the kernels of one of its phases."""
        return self._numbered[1][id(phase.kernels)]

    @once
    def _numbered(self) -> tuple[tuple[KernelSpec, ...], Mapping[int, tuple[int, ...]]]:
        """`specs`, and the numbers of each table of kernels that phases share, by its id: hashes take their time."""
        known, tables = dict[KernelSpec, int](), dict[int, tuple[int, ...]]()
        for phase in self.phases:
            if id(phase.kernels) not in tables:
                tables[id(phase.kernels)] = tuple([known.setdefault(spec, len(known)) for spec in phase.kernels])
        return tuple(known), tables

    @once
    def cycles(self) -> int:
        """The expected cost of one call on one thread."""
        return sum(phase.total_cycles for phase in self.phases)

    @once
    def shared_cycles(self) -> int:
        """Of what threads share, all phases but those that one runs alone."""
        return sum(phase.total_cycles for phase in self.phases if not phase.alone)

    @property
    def arguments(self) -> int:
        """Of the largest frame."""
        return max(len(phase.arguments) for phase in self.phases)

    def scratch_offsets(self, parts: int = 1) -> dict[str, int]:
        """Where each scratch buffer starts in the scratchpad of a call in so many parts."""
        sizes = [self.scratch_stride(name) * self.copies(name, parts) for name in self.scratch_bytes]
        return dict(zip(self.scratch_bytes, accumulate(sizes, initial=0), strict=False))

    def scratchpad_bytes(self, parts: int = 1) -> int:
        """The temporary memory of one call: all scratch buffers side by side."""
        return sum(self.scratch_stride(name) * self.copies(name, parts) for name in self.scratch_bytes)

    def scratch_stride(self, name: str) -> int:
        """From a scratch buffer to what lies after it: of what parts have of their own, not the next lines, which CPUs
        fetch together with these."""
        size = self.scratch_bytes[name] + APART_BYTES * (name in self.per_part)
        return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    def copies(self, name: str, parts: int) -> int:
        return parts if name in self.per_part else 1

    @property
    def nbytes(self) -> int:
        """Bytes of the schedule: records, their costs, and constants."""
        return bytes_of([self])

    @property
    def kept_bytes(self) -> int:
        """What goes with the plan: its schedule, and about what Python keeps of its objects."""
        return kept_bytes_of([self])

    def parts(self, threads: int) -> int:
        """In how many parts so many threads share the work."""
        return max(1, min(threads, max(phase.shares for phase in self.phases)))

    def split(self, parts: int) -> list[Int64]:
        """For each phase int64[parts + 1]: the first record of every part, and the end, counted through all rounds.

        Parts are cut where their costs come nearest to equal; phases that continue one another are cut alike.
        """
        return split(self.phases, parts)

    def buffer_bytes(self, name: str) -> int:
        """The size of a tensor, constant or scratch buffer."""
        if name in self.tensors:
            return self.tensors[name].size_bytes
        return self.constants[name].nbytes if name in self.constants else self.scratch_bytes[name]

    def calls_as(self, other: "Plan") -> bool:
        """Whether it makes the same calls of the same kernels on the same places, so that all bits are equal."""
        if self is other:
            return True
        data = self.constants.keys() == other.constants.keys() and all(
            np.array_equal(array, other.constants[name]) for name, array in self.constants.items()
        )
        alike = data and self.tensors == other.tensors and len(self.phases) == len(other.phases)
        return alike and all(a.calls_as(b) for a, b in zip(self.phases, other.phases, strict=True))

    def check(self) -> None:
        """Prove that every access is inside its view, that records of a phase are disjoint, that all is written.

        Raises PlanError, which names the phase, the record and the argument.
        """
        with importing():
            from asmdnn.planning.check import check_plan

        check_plan(self)


def alike(tensors: Mapping[str, MemoryDesc], names: Iterable[str], output: str) -> Pairs:
    """Each of these inputs that has the output's descriptor, with the output."""
    return tuple([(name, output) for name in names if tensors[name] == tensors[output]])


def with_tensors(plan: Plan, tensors: Mapping[str, MemoryDesc]) -> Plan:
    """The plan of tensors that are described otherwise, such as a matrix as the image that it is; of other dims none is
    another one's memory."""
    pairs = tuple([pair for pair in plan.in_place if tensors[pair[0]] == tensors[pair[1]]])
    return replace(plan, tensors=tensors, in_place=pairs)


def bytes_of(plans: Sequence[Plan]) -> int:
    """Of the schedules of several plans, whose arrays may be the same ones."""
    arrays = [array for plan in plans for phase in plan.phases for array in (phase.records, phase.cycles)]
    arrays += [array for plan in plans for array in plan.constants.values()]
    return sum({id(array): array.nbytes for array in arrays}.values())


def kept_bytes_of(plans: Sequence[Plan]) -> int:
    """What goes with several plans."""
    return bytes_of(plans) + OBJECTS_BYTES * sum(1 + len(plan.phases) for plan in plans)
