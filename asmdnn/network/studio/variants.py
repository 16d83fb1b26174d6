"""A network planned for a CPU class, a precision and a number of threads, as the values that the page shows.

Expected cycles are the planners'.  Of several threads a step takes those of the slowest one, whose records are those
that it gets at run time (`planning.splitting`).  The network takes, between two barriers, what the slowest thread
takes there: threads do not wait for one another in between.  What a barrier itself takes is not counted.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.joining.barriers import ViewsOfBuffers, barriers
from asmdnn.network.page.model import PrimitiveRow, boxes_of, moments_of, rows_of
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.step_list import NetworkStep
from asmdnn.planning.phase import Phase
from asmdnn.planning.phases import barriers_before
from asmdnn.planning.splitting import split
from asmdnn.records import dataclass

Cycles = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepRow:
    """A primitive.  cycles: on one thread; slowest: of the thread that has most of it; sources: the steps whose results
    it reads; kernels: (name, calls, cycles); seconds: measured, or None."""

    label: str
    nodes: tuple[str, ...]
    implementation: str
    result: str
    read_bytes: int
    written_bytes: int
    cycles: int
    slowest: int
    phases: tuple[str, ...]
    kernels: tuple[tuple[str, int, int], ...]
    sources: tuple[int, ...]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Variant:
    """One plan.  cycles: until the last thread is done; cycles_alone: on one thread; boxes: (name, offset, size, first
    and last time, step) of the arena; moments: the time at which each step begins, and the end."""

    machine: str
    isa: str
    precision: str
    threads: int
    cycles: int
    cycles_alone: int
    barriers: int
    kernels: int
    arena_bytes: int
    weights_bytes: int
    steps: tuple[StepRow, ...]
    boxes: tuple[tuple[str, int, int, int, int, int], ...]
    moments: tuple[int, ...]


def variant_of(planned: NetworkPlan, precision: str, seconds: Sequence[float] = ()) -> Variant:
    """Of a network whose only segment is native.  seconds: of each step, measured, or none."""
    (segment,) = planned.segments
    assert isinstance(segment, CompiledSegment)
    engine, phases = planned.engine, segment.plan.phases
    parts = part_cycles(phases, segment.plan.parts(engine.threads))
    starts = list(accumulate((len(step.pd.plan.phases) for step in segment.steps), initial=0))
    slowest = [int(parts[begin:end].max(axis=1).sum()) for begin, end in pairwise(starts)]
    steps = zip(segment.steps, rows_of(segment, seconds), slowest, sources_of(segment), strict=True)
    return Variant(
        engine.machine,
        engine.isa,
        precision,
        engine.threads,
        cycles=together(phases, parts),
        cycles_alone=segment.plan.cycles,
        barriers=barriers(segment.steps, phases)[0],
        kernels=len(segment.plan.specs),
        arena_bytes=segment.layout.arena_bytes,
        weights_bytes=segment.layout.weights_bytes,
        steps=tuple(step_row(*each) for each in steps),
        boxes=tuple((b.name, b.offset, b.size, b.first, b.last, b.step) for b in boxes_of(segment)),
        moments=tuple(moments_of(segment)),
    )


def step_row(step: NetworkStep, row: PrimitiveRow, slowest: int, sources: tuple[int, ...]) -> StepRow:
    uses = [(kernel.name, calls, cycles) for phase in step.pd.plan.phases for kernel, calls, cycles in phase.uses()]
    return StepRow(
        row.label,
        row.nodes,
        row.implementation,
        row.result,
        row.read_bytes,
        row.written_bytes,
        cycles=row.cycles,
        slowest=slowest,
        phases=tuple(f"{phase.how}; {phase.records:,} records" for phase in row.phases),
        kernels=tuple(uses),
        sources=sources,
        seconds=row.seconds,
    )


def part_cycles(phases: Sequence[Phase], parts: int) -> Cycles:
    """int64[phases, parts]: what each thread is expected to take."""
    return np.array(
        [shares(phase, bounds) for phase, bounds in zip(phases, split(phases, parts), strict=True)], np.int64
    ).reshape(len(phases), parts)


def shares(phase: Phase, bounds: Cycles) -> Cycles:
    """Of one phase: bounds count records through all rounds."""
    done = np.concatenate(([0], np.cumsum(phase.cycles, dtype=np.int64)))
    rounds, rest = np.divmod(np.maximum.accumulate(bounds), max(1, len(phase.cycles)))
    taken: Cycles = np.diff(rounds * done[-1] + done[rest])
    return taken


def together(phases: Sequence[Phase], parts: Cycles) -> int:
    """Until the last thread is done: between two barriers the slowest one counts."""
    starts = [i for i, has_barrier in enumerate(barriers_before(phases)) if has_barrier or not i]
    return sum(int(parts[begin:end].sum(axis=0).max()) for begin, end in pairwise([*starts, len(phases)]))


def sources_of(segment: CompiledSegment) -> list[tuple[int, ...]]:
    """For each step the numbers of those that made what it reads: joins and splits are parts of one buffer."""
    written: list[ViewsOfBuffers] = []
    found = []
    for step, views in zip(segment.steps, segment.joined.arguments, strict=True):
        outputs = step.pd.plan.outputs
        reads = [view for name, view in views.items() if name not in outputs]
        found.append(tuple(number for number, made in enumerate(written) if made.meet(reads)))
        written.append(ViewsOfBuffers())
        written[-1].add(view for name, view in views.items() if name in outputs)
    return found
