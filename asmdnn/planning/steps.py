"""Several kinds of kernels in one phase: the steps that a group of records goes through, each with views of its own.

A step's arguments lie after those of the steps before, so its kernels' frames begin further on; steps with equal views
share theirs.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.shifted import ShiftedSpec
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import NOTHING, Int64, Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class StepRecords:
    """Records of one kind of kernels: int64[n, 1 + arguments] with offsets into `views`, and what each costs."""

    kernels: tuple[KernelSpec, ...]
    records: Int64
    cycles: Int64
    views: tuple[View, ...]


def step_of(plan: Plan, places: Mapping[str, str]) -> StepRecords:
    """All records of a plan in order; `places` says what its buffers are."""
    phases = [phase.written_out() for phase in plan.phases]
    kernels = tuple(dict.fromkeys(spec for phase in phases for spec in phase.kernels))
    records = []
    for phase in phases:
        numbered = phase.records.copy()
        numbered[:, 0] = np.array([kernels.index(spec) for spec in phase.kernels])[numbered[:, 0]]
        records.append(numbered)
    assert all(phase.arguments == phases[0].arguments for phase in phases), "steps_of takes phases of several views"
    views = tuple(
        view._replace(buffer=places[view.buffer]) if view != NOTHING else NOTHING for view in phases[0].arguments
    )
    return StepRecords(kernels, np.concatenate(records), np.concatenate([phase.cycles for phase in phases]), views)


def steps_of(plan: Plan, places: Mapping[str, str]) -> list[StepRecords]:
    """A step for each phase of a plan, whose views may differ; `places` says what its buffers are."""
    return steps_in(plan.phases, places)


def steps_in(phases: Sequence[Phase], places: Mapping[str, str]) -> list[StepRecords]:
    """The same of phases."""
    found = []
    for phase in (phase.written_out() for phase in phases):
        views = tuple(
            view if view == NOTHING else view._replace(buffer=places.get(view.buffer, view.buffer))
            for view in phase.arguments
        )
        found.append(StepRecords(phase.kernels, phase.records, phase.cycles.astype(np.int64), views))
    return found


def group_of(steps: Sequence[StepRecords]) -> Phase:
    """One group of the records of all steps in order."""
    kernels: dict[KernelSpec, int] = {}
    places: dict[tuple[View, ...], int] = {}
    for step in steps:
        places.setdefault(step.views, sum(map(len, places)))
    views = tuple(view for some in places for view in some)
    records = []
    for step in steps:
        first = places[step.views]
        numbers = [kernels.setdefault(shifted(spec, first), len(kernels)) for spec in step.kernels]
        wide = np.zeros((len(step.records), 1 + len(views)), np.int64)
        wide[:, 0] = np.array(numbers)[step.records[:, 0]]
        wide[:, 1 + first : 1 + first + len(step.views)] = step.records[:, 1:]
        records.append(wide)
    together = np.concatenate(records)
    cycles = np.concatenate([step.cycles for step in steps]).astype(np.int32)
    return Phase(tuple(kernels), views, together, cycles, groups=np.array([0, len(together)]))


def add_each(
    assembly: Assembly,
    steps: Sequence[StepRecords],
    moves: Mapping[str, Sequence[int]],
    times: Sequence[int],
    own: Mapping[str, int],
) -> None:
    """Add what is done for the first of many alike, for all of them: a phase whose groups of records go through these
    steps, on one thread each.

    times: of loops, the first being the outermost; what is done once is none.  moves: for each loop how many bytes a
    buffer's views move.  own: the scratch that each thread has of its own, and its sizes.  Scratch of one name has the
    largest size.
    """
    group = group_of(steps)
    by_loop = [moves.get(view.buffer, (0,) * len(times)) for view in group.arguments]
    loops = [(n, tuple(of_view[i] for of_view in by_loop)) for i, n in enumerate(times)]
    assembly.add([replace(group, repeats=tuple(Repeat(n, strides) for n, strides in loops if n > 1))])
    assembly.scratch |= {name: max(size, assembly.scratch.get(name, 0)) for name, size in own.items()}
    assembly.per_part = tuple(dict.fromkeys((*assembly.per_part, *own)))


def widened(step: StepRecords, arguments: int) -> StepRecords:
    """The same with so many arguments, of which the last ones are nothing."""
    more = arguments - len(step.views)
    records = np.pad(step.records, ((0, 0), (0, more)))
    return StepRecords(step.kernels, records, step.cycles, (*step.views, *[NOTHING] * more))


def shifted(spec: KernelSpec, first: int) -> KernelSpec:
    return ShiftedSpec(kernel=spec, first=first) if first else spec
