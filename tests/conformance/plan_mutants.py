"""Real plans with one thing wrong, as a planner would make them that is off by one, forgets a tail or a barrier.

Each mutation yields mutants of a plan: of the first, the middle and the last of what it changes.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from asmdnn.planning.phase import NOTHING, Int64, Phase, Repeat, View
from asmdnn.planning.phases import barriers_before
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.touches import Calls, Footprints, element_sizes
from asmdnn.records import replace

Mutation = Callable[[Plan], Iterator[Plan]]
WORD_BYTES = 8  # of a constant
EXPONENTS = 1 << 30 | 1 << 62  # the highest bits of those of two f32


def some(count: int) -> list[int]:
    """The first, the middle and the last number."""
    return sorted({0, count // 2, count - 1} if count else ())


def with_phase(plan: Plan, index: int, **changes: Any) -> Plan:
    phases = list(plan.phases)
    phases[index] = replace(phases[index], **changes)
    return replace(plan, phases=tuple(phases))


def with_records(plan: Plan, index: int, records: Int64) -> Plan:
    """The costs, and the ends of groups, of as many records."""
    phase = plan.phases[index]
    cycles, groups = np.resize(phase.cycles, len(records)), phase.groups
    if groups is not None and len(records) != len(phase.records):
        groups = np.minimum(groups, len(records))
        groups[-1] = len(records)
    return with_phase(plan, index, records=np.ascontiguousarray(records), cycles=cycles, groups=groups)


def of_phases(change: Callable[[Plan, int, Phase], Iterator[Plan]]) -> Mutation:
    """A mutation of each phase."""

    def mutation(plan: Plan) -> Iterator[Plan]:
        for index, phase in enumerate(plan.phases):
            yield from change(plan, index, phase)

    return mutation


def calls_of(phase: Phase) -> list[Calls]:
    return Footprints().calls_of(phase)


def read(calls: Calls) -> set[int]:
    """The arguments that a kernel reads."""
    return {*calls.accesses.reads, *calls.moved}


def used(calls: Calls) -> list[int]:
    """Those that it reads or writes: others are prefetched, or belong to other kernels of the phase."""
    return sorted({*read(calls), *calls.accesses.writes})


def used_in(phase: Phase) -> list[int]:
    return sorted({argument for calls in calls_of(phase) for argument in used(calls)})


def steps_of(plan: Plan) -> Callable[[str], int]:
    """Bytes of an element of a buffer."""
    sizes = element_sizes(plan, (calls for phase in plan.phases for calls in calls_of(phase)))
    return lambda name: WORD_BYTES if name in plan.constants else sizes.get(name, 1)


def finds_the_same(plan: Plan, calls: Calls, argument: int, offsets: Sequence[int]) -> bool:
    """Whether a kernel reads equal words of a constant at either place."""
    view, spans = calls.view(argument), calls.accesses.reads.get(argument)
    if view.buffer not in plan.constants or spans is None:
        return False
    data, reach = plan.constants[view.buffer].tobytes(), spans.reach(argument)
    first, *others = (int(view.offset_bytes + offset) for offset in offsets)
    found = data[first + reach.begin_bytes : first + reach.end_bytes]
    return all(found == data[one + reach.begin_bytes : one + reach.end_bytes] for one in others)


def record_missing(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """A tail, or a whole tile, is dropped."""
    for record in some(len(phase.records)):
        yield with_records(plan, index, np.delete(phase.records, record, axis=0))


def record_twice(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    for record in some(len(phase.records)):
        yield with_records(plan, index, np.concatenate((phase.records, phase.records[record : record + 1])))


def offset_moved(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """An argument of a record, by one element."""
    step_of = steps_of(plan)
    for calls in calls_of(phase):
        for argument in used(calls):
            step = step_of(phase.arguments[argument].buffer)
            for record in some(len(calls.numbers)):
                for by in (step, -step):
                    records = phase.records.copy()
                    place = calls.numbers[record], 1 + argument
                    records[place] += by
                    if not finds_the_same(plan, calls, argument, (phase.records[place], records[place])):
                        yield with_records(plan, index, records)


def offsets_swapped(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """An argument of two records of one kernel, where they differ, and read something: all zeros are alike."""
    for calls in calls_of(phase):
        for argument in used(calls) if read(calls) else ():
            column, first = phase.records[calls.numbers, 1 + argument], calls.numbers[0]
            others = calls.numbers[column != column[0]]
            for other in others[some(len(others))]:
                if finds_the_same(plan, calls, argument, phase.records[[first, other], 1 + argument]):
                    continue
                records = phase.records.copy()
                records[[first, other], 1 + argument] = records[[other, first], 1 + argument]
                yield with_records(plan, index, records)


def other_kernel(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """A record calls another kernel of its phase."""
    for record in some(len(phase.records)):
        for kernel in range(len(phase.kernels)):
            if kernel != phase.records[record, 0]:
                records = phase.records.copy()
                records[record, 0] = kernel
                yield with_records(plan, index, records)


def with_repeat(plan: Plan, index: int, at: int, repeat: Repeat) -> Plan:
    repeats = plan.phases[index].repeats
    return with_phase(plan, index, repeats=(*repeats[:at], repeat, *repeats[at + 1 :]))


def other_times(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """A loop of records ends a round too early or too late."""
    for at, repeat in enumerate(phase.repeats):
        for by in (-1, 1):
            yield with_repeat(plan, index, at, repeat._replace(times=repeat.times + by))


def other_stride(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """An argument stays in a loop of records, or goes twice as far."""
    for at, repeat in enumerate(phase.repeats):
        for argument in used_in(phase):
            for factor in (0, 2):
                if stride := repeat.strides[argument]:
                    strides = (*repeat.strides[:argument], factor * stride, *repeat.strides[argument + 1 :])
                    yield with_repeat(plan, index, at, repeat._replace(strides=strides))


def strides_swapped(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """Of two arguments in a loop of records."""
    arguments = used_in(phase)
    for at, repeat in enumerate(phase.repeats):
        for a, b in pairwise(arguments):
            strides = list(repeat.strides)
            strides[a], strides[b] = strides[b], strides[a]
            if tuple(strides) != repeat.strides:
                yield with_repeat(plan, index, at, repeat._replace(strides=tuple(strides)))


def phase_missing(plan: Plan) -> Iterator[Plan]:
    for index in range(len(plan.phases) if len(plan.phases) > 1 else 0):
        yield replace(plan, phases=(*plan.phases[:index], *plan.phases[index + 1 :]))


def phases_swapped(plan: Plan) -> Iterator[Plan]:
    """Where the second reads what the first writes."""
    for index, (a, b) in enumerate(pairwise(plan.phases)):
        written = {extent.buffer for calls in calls_of(a) for _, extent in calls.writes}
        if written & {b.arguments[argument].buffer for calls in calls_of(b) for argument in read(calls)}:
            yield replace(plan, phases=(*plan.phases[:index], b, a, *plan.phases[index + 2 :]))


def barrier_missing(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    if index and barriers_before(plan.phases)[index]:
        yield with_phase(plan, index, independent=True)
        yield with_phase(plan, index, continues=True)


def groups_cut(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """Records that one thread has to run in order are everybody's, or those of the group beside it."""
    if phase.groups is None:
        return
    yield with_phase(plan, index, groups=None)
    for place in some(len(phase.groups) - 2):
        for by in (-1, 1):
            groups = phase.groups.copy()
            groups[1 + place] += by
            yield with_phase(plan, index, groups=groups)


def with_view(plan: Plan, index: int, argument: int, view: View) -> Plan:
    views = plan.phases[index].arguments
    return with_phase(plan, index, arguments=(*views[:argument], view, *views[argument + 1 :]))


def view_moved(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """An argument of all records, by one element."""
    step_of = steps_of(plan)
    for argument in used_in(phase):
        view = phase.arguments[argument]
        for by in (step_of(view.buffer), -step_of(view.buffer)):
            yield with_view(plan, index, argument, view._replace(offset_bytes=view.offset_bytes + by))


def view_of_other_buffer(plan: Plan, index: int, phase: Phase) -> Iterator[Plan]:
    """The views of two arguments are swapped, or one is forgotten."""
    arguments = used_in(phase)
    for argument in arguments:
        yield with_view(plan, index, argument, NOTHING)
    for a, b in pairwise(arguments):
        views = list(phase.arguments)
        views[a], views[b] = views[b], views[a]
        if tuple(views) != phase.arguments:
            yield with_phase(plan, index, arguments=tuple(views))


def scratch_too_small(plan: Plan) -> Iterator[Plan]:
    """By an element, or all of it."""
    step_of = steps_of(plan)
    for name, size in plan.scratch_bytes.items():
        for less in (step_of(name), size):
            yield replace(plan, scratch_bytes={**plan.scratch_bytes, name: size - less})


def scratch_shared(plan: Plan) -> Iterator[Plan]:
    """What each part has to have for itself."""
    for name in plan.per_part:
        yield replace(plan, per_part=tuple(other for other in plan.per_part if other != name))


def output_forgotten(plan: Plan) -> Iterator[Plan]:
    for name in plan.outputs:
        yield replace(plan, outputs=tuple(other for other in plan.outputs if other != name))


def output_added(plan: Plan) -> Iterator[Plan]:
    """An input is said to be written."""
    for name in plan.tensors.keys() - set(plan.outputs):
        if plan.buffer_bytes(name):
            yield replace(plan, outputs=(*plan.outputs, name))


def other_constant(plan: Plan) -> Iterator[Plan]:
    """A number of a list is one more or less, a factor another one, or the last of either is missing."""
    every = (calls for phase in plan.phases for calls in calls_of(phase))
    lists = {calls.view(argument).buffer for calls in every for argument in of_lists(calls)}
    for name, words in plan.constants.items():
        for place in some(len(words)):
            for change in (words[place] - 1, words[place] + 1) if name in lists else (words[place] ^ EXPONENTS,):
                changed = words.copy()
                changed[place] = change
                yield replace(plan, constants={**plan.constants, name: changed})
        yield replace(plan, constants={**plan.constants, name: words[:-1].copy()})


def of_lists(calls: Calls) -> list[int]:
    """The arguments that point to counts and offsets."""
    accesses = calls.accesses
    return [found.argument for found in (accesses.taps, accesses.words) if found is not None]


def place_claimed(plan: Plan) -> Iterator[Plan]:
    """An input is said to be one that may give way to an output."""
    for output in plan.outputs:
        for pair in alike(plan.tensors, (name for name in plan.tensors if name not in plan.outputs), output):
            if pair not in plan.in_place:
                yield replace(plan, in_place=(*plan.in_place, pair))


MUTATIONS: dict[str, Mutation] = {
    "a record missing": of_phases(record_missing),
    "a record twice": of_phases(record_twice),
    "an offset moved": of_phases(offset_moved),
    "offsets swapped": of_phases(offsets_swapped),
    "another kernel": of_phases(other_kernel),
    "a round more or less": of_phases(other_times),
    "another stride": of_phases(other_stride),
    "strides swapped": of_phases(strides_swapped),
    "a phase missing": phase_missing,
    "phases swapped": phases_swapped,
    "a barrier missing": of_phases(barrier_missing),
    "groups cut": of_phases(groups_cut),
    "a view moved": of_phases(view_moved),
    "a view of another buffer": of_phases(view_of_other_buffer),
    "scratch too small": scratch_too_small,
    "scratch shared": scratch_shared,
    "an output forgotten": output_forgotten,
    "an output added": output_added,
    "another constant": other_constant,
    "a place claimed": place_claimed,
}
