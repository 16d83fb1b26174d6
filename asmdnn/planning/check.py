"""The proof of a plan, from its schedule and its kernels' footprints, without running anything or writing rounds out.

1. Well formed: records are what the executor reads, and name kernels and tensors that exist.
2. In bounds: every byte that a record reads or writes lies inside the view that the argument points into, and every
   view inside its buffer.
3. Disjoint: no two records of a phase write one element, none reads what another writes; those of a group may in order.
4. Complete: every element of an output tensor, zero padding included, is written, and of a scratch buffer every
   element that is read, before it is.  Phases may each write a part; an element is written again only after all have
   been, or of scratch, by a phase after a barrier: it may have gaps, such as between rows that would share sets of L1.
5. Continued: a phase that continues goes on, record by record, with what the phase before has written.
6. Independent: whatever else a phase without a barrier before it writes has not been touched by phases since the last
   barrier, and it reads nothing that they have written; unless one thread runs them all, one after another.  An input
   that may be the memory of an output counts as this one, too.
7. Own scratch: in a buffer that every part has for itself, a group reads only what it has written.
8. Elements: of an input with gaps, such as a column of a matrix, nothing between its elements is read.  That would lie
   inside, and be other numbers.  Tap lists, and inputs of more than MOST_LOOKED_AT elements, are not looked at so.
9. Replaced: an input that may be the memory of an output is read before it is written over.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.errors import PlanError
from asmdnn.planning import bounds
from asmdnn.planning.coverage import Runs, cover, elements_of
from asmdnn.planning.groups import check_groups, merged_by_group
from asmdnn.planning.periods import loops_of, periods_of
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.phases import barriers_before
from asmdnn.planning.replaced import Replaced, check_pairs
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls, Extent, Footprints, element_sizes, in_chunks
from asmdnn.planning.written import Bools, FlatCoverage, Folded, Written, counted
from asmdnn.records import dataclass, field

MOST_LOOKED_AT = 1 << 24  # elements and gaps of an input


def check_plan(plan: Schedule) -> None:
    """Raise PlanError unless all of the above holds."""
    bounds.check_names(plan)
    check_pairs(plan)
    for index in range(len(plan.phases)):
        bounds.check_form(plan, index)
    proof = Proof(plan)
    for index, has_barrier in enumerate(barriers_before(plan.phases)):
        proof.phase(index, has_barrier)
    proof.end()


@dataclass(eq=False)
class Proof:
    """What is known after some phases of a plan.

    ready: buffers that hold what they should.  partial: those that are written in part, by whom and how often each
    element; completed: those that were written whole.  since_reads, since_writes: what phases since the last barrier
    have touched; in_turn: one thread runs them.  given: elements of inputs with gaps.
    """

    plan: Schedule
    ready: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    partial: dict[str, tuple[str, Written]] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)
    since_reads: list[Extent] = field(default_factory=list)
    since_writes: list[Extent] = field(default_factory=list)
    in_turn: bool = True
    sizes: dict[str, int] = field(default_factory=dict)
    periods: dict[str, int] = field(default_factory=dict)
    wholes: dict[str, Bools] = field(default_factory=dict)
    given: dict[str, Written | None] = field(default_factory=dict)
    calls: list[list[Calls]] = field(default_factory=list)
    replaced: Replaced = field(init=False)

    def __post_init__(self) -> None:
        self.ready = set(self.plan.tensors) | set(self.plan.constants)
        self.replaced = Replaced(self.plan)
        footprints = Footprints()
        self.calls = [footprints.calls_of(phase) for phase in self.plan.phases]
        self.sizes = element_sizes(self.plan, (one for of_phase in self.calls for one in of_phase))
        self.periods = periods_of(self.plan, self.calls, self.sizes)

    def phase(self, index: int, has_barrier: bool) -> None:
        """Check the phase, and record what it does."""
        plan, phase, where = self.plan, self.plan.phases[index], f"phase {index}"
        if has_barrier or index == 0:
            self.since_reads, self.since_writes, self.in_turn = [], [], True
        self.in_turn &= phase.alone
        calls = self.calls[index]
        for one in calls:
            bounds.check_calls(plan, one, where)
            self.check_gaps(one, where)
        grouped = phase.groups is not None or any(view.buffer in plan.per_part for view in phase.arguments)
        if grouped:
            check_groups(plan, phase, calls, self.ready, where)
        self.check_reads(phase, calls, where, grouped)
        self.replaced.phase(phase, calls, where)
        kept = bounds.continued(plan, index, *self.calls[max(0, index - 1) : index + 1]) if phase.continues else set()
        writes = [(one, a, extent) for one in calls for a, extent in one.writes if not self.is_own(extent)]
        if (phase.continues or phase.independent) and not self.in_turn:
            self.check_unsynchronised(calls, [extent for _, _, extent in writes if extent.buffer not in kept], where)
        for one, _, extent in writes:
            if one.accesses.partial and extent.buffer not in self.completed:
                raise PlanError(f"{one.where(where)}: data say what of {extent.buffer} is written, the rest never was")
        names = dict.fromkeys(extent.buffer for _, _, extent in writes)
        for name in names:
            own = [(one, a) for one, a, extent in writes if extent.buffer == name]
            in_order = not (phase.continues or phase.independent)
            self.note(name, self.runs(name, own, phase, where), where, name in kept, in_order)
        self.since_reads += self.with_results(extent for one in calls for _, extent in one.reads_of_others)
        self.since_writes += [extent for _, _, extent in writes]
        self.written |= names.keys()
        self.ready |= names.keys()

    def is_own(self, extent: Extent) -> bool:
        return extent.buffer in self.plan.per_part

    def with_results(self, extents: Iterable[Extent]) -> list[Extent]:
        """The extents, and those of outputs whose memory these may be."""
        found = list(extents)
        return found + self.replaced.places(found)

    def check_reads(self, phase: Phase, calls: list[Calls], where: str, grouped: bool) -> None:
        """What is read has been written, and no record of the phase writes what another one reads."""
        writes = [extent for one in calls for _, extent in one.writes]
        for one in calls:
            for argument in sorted({*one.accesses.reads, *one.moved}):
                name = one.view(argument).buffer
                if name not in self.ready and not grouped:
                    raise PlanError(f"{one.where(where)}: {name} is read before any phase has written it")
            for argument, extent in one.reads_of_others:
                if self.is_own(extent) or (grouped and phase.groups is not None and extent.buffer not in self.ready):
                    continue  # proved in order, by check_groups
                if extent.overlaps(writes):
                    raise PlanError(f"{where}: reads of {extent.buffer} may see what other records write")
                if extent.buffer in self.partial:
                    self.check_partial(one, argument, extent.buffer)

    def check_gaps(self, one: Calls, where: str) -> None:
        """Of an input whose elements have gaps between them only elements are read."""
        for argument, spans in one.accesses.reads.items():
            name = one.view(argument).buffer
            if name not in self.plan.tensors or name in self.plan.outputs or argument in one.moved or spans is None:
                continue
            if name not in self.given:
                self.given[name] = self.elements_given(name, where)
            given = self.given[name]
            element = given and given.missing(self.runs_of(one, argument, spans))
            if element is not None:
                raise PlanError(f"{one.where(where)}: bytes between the elements of {name} are read, at {element}")

    def elements_given(self, name: str, where: str) -> Written | None:
        """Those of an input as written ones; None where they are dense, or too many to be looked at one by one."""
        tensor = self.plan.tensors[name]
        runs, bytes_each = elements_of(tensor), self.element_bytes(name)
        count = sum(int((x.ends - x.begins).sum()) * prod(times for times, _ in x.loops) for x in runs)
        if not 0 < count * bytes_each < tensor.size_bytes <= MOST_LOOKED_AT * bytes_each:
            return None
        given = self.nothing(name)
        given.add(runs, True, where)
        return given

    def runs_of(self, one: Calls, argument: int, spans: Any) -> list[Runs]:
        """The elements that calls touch through an argument."""
        name = one.view(argument).buffer
        size = self.element_bytes(name)
        return [
            Runs(begins // size, -(-ends // size), tuple(x for x in loops_of(one, argument, size) if x[1]))
            for _, begins, ends in in_chunks(one, argument, spans, self.elements(name))
        ]

    def check_partial(self, one: Calls, argument: int, name: str) -> None:
        """What is read of a buffer that is not complete has been written."""
        where, written = self.partial[name]
        spans = one.accesses.reads.get(argument)
        size, view = self.element_bytes(name), one.view(argument)
        if argument in one.moved or spans is None:  # through a tap list: maybe all of its view
            if view.size_bytes is None:
                raise PlanError(f"{where}: element {written.unwritten} of {name} is never written")
            begin, end = view.offset_bytes // size, -(-(view.offset_bytes + view.size_bytes) // size)
            runs = [Runs(np.array([begin]), np.array([end]), ())]
        else:
            runs = self.runs_of(one, argument, spans)
        element = written.missing(runs)
        if element is not None:
            raise PlanError(f"{where}: element {element} of {name} is never written")

    def check_unsynchronised(self, calls: list[Calls], writes: list[Extent], where: str) -> None:
        """A phase without a barrier in front reads nothing that phases since the last one have written, and writes
        nothing that they have touched; buffers that are written in part are counted element by element."""
        reads = self.with_results(
            extent for one in calls for _, extent in one.reads_of_others if not self.is_own(extent)
        )
        late = [x.buffer for x in reads if x.overlaps(self.since_writes)]
        late += [x.buffer for x in writes if x.overlaps(self.since_reads)]
        late += [x.buffer for x in writes if x.buffer not in self.partial and x.overlaps(self.since_writes)]
        if late:
            raise PlanError(f"{where}: {min(late)} may be what other records touch, without a barrier in between")

    def runs(self, name: str, own: list[tuple[Calls, int]], phase: Phase, where: str) -> list[Runs]:
        """The elements of a buffer that the phase writes."""
        size = self.element_bytes(name)
        pieces = list[tuple[Int64, Int64, Int64, tuple[tuple[int, int], ...]]]()
        for one, argument in own:
            loop = loops_of(one, argument, size)
            for numbers, begins, ends in in_chunks(one, argument, one.accesses.writes[argument], self.elements(name)):
                if (begins % size).any() or (ends % size).any() or any(s % size for _, s in one.repeats(argument)):
                    raise PlanError(f"{where}: a write of {name} is not made of whole elements")
                pieces.append((numbers, begins // size, ends // size, loop))
        if phase.groups is not None:
            return merged_by_group(pieces, phase.groups, where)
        return [Runs(begins, ends, loop) for _, begins, ends, loop in pieces]

    def note(self, name: str, runs: Sequence[Runs], where: str, is_kept: bool, in_order: bool) -> None:
        """A phase has written a buffer.  Scratch with gaps is never complete, and may be written again by a phase that
        runs after all before it."""
        written = self.partial[name][1] if name in self.partial and not is_kept else self.nothing(name)
        written.add(runs, in_order and name in self.plan.scratch_bytes, where)
        if is_kept:
            return
        if written.is_complete:
            self.partial.pop(name, None)
            self.completed.add(name)
        else:
            self.partial[name] = (where, written)

    def nothing(self, name: str) -> Written:
        """The state of a buffer that has not been written."""
        tensor, elements = self.plan.tensors.get(name), self.elements(name)
        whole = [Runs(np.zeros(1, np.int64), np.full(1, elements), ())]
        runs = whole if tensor is None else elements_of(tensor)
        if name in self.periods:
            return Folded(name, self.periods[name], cover(runs, self.periods[name]), cover([], self.periods[name]))
        if name not in self.wholes:
            self.wholes[name] = np.zeros(elements, np.bool_)
            first, times = counted(runs)
            self.wholes[name][first : first + len(times)] = times > 0
        return FlatCoverage.of(name, self.wholes[name])

    def elements(self, name: str) -> int:
        return -(-self.plan.buffer_bytes(name) // self.element_bytes(name))

    def element_bytes(self, name: str) -> int:
        return self.sizes.get(name, 1)

    def end(self) -> None:
        """All outputs are written, and nothing else."""
        plan = self.plan
        for name in sorted(self.partial.keys() - plan.scratch_bytes.keys()):  # scratch may have gaps that nobody reads
            where, written = self.partial[name]
            raise PlanError(f"{where}: element {written.unwritten} of {name} is never written")
        scratch = set(plan.scratch_bytes) - set(plan.per_part)
        wanted = {name for name in (*plan.outputs, *scratch) if plan.buffer_bytes(name)}
        for name in sorted(wanted - self.written):
            raise PlanError(f"{name} is never written")
        for name in sorted(self.written - set(plan.outputs) - scratch):
            raise PlanError(f"{name} is written, which is neither an output nor scratch")
