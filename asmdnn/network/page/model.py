"""What the page says, as values: primitives with their phases, and where values lie in the arena and for how long."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.descriptors import layout_of
from asmdnn.network.joining.arena import times_of
from asmdnn.network.step_list import NetworkStep
from asmdnn.planning.phase import Phase, said_of
from asmdnn.planning.phases import barriers_before
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """number: in the network's plan; kernels: (name, calls)."""

    number: int
    how: str
    records: int
    cycles: int
    kernels: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PrimitiveRow:
    """A primitive.  nodes: the operators that it computes; seconds: of a call, None if it was not measured."""

    number: int
    label: str
    nodes: tuple[str, ...]
    implementation: str
    result: str
    read_bytes: int
    written_bytes: int
    cycles: int
    phases: tuple[PhaseRow, ...]
    seconds: float | None
    is_reorder: bool


@dataclass(frozen=True, slots=True)
class ArenaBox:
    """A value in the arena: bytes [offset, offset + size) at times first to last, phases being counted as they
    happen; step: the primitive that touches it first."""

    name: str
    offset: int
    size: int
    first: int
    last: int
    step: int


def rows_of(segment: CompiledSegment, seconds: Sequence[float]) -> list[PrimitiveRow]:
    """The primitives of a native segment; seconds: of each, or none."""
    barriers = barriers_before(segment.plan.phases)
    starts = accumulate((len(step.pd.plan.phases) for step in segment.steps), initial=0)
    return [
        row_of(number, step, segment.plan.phases, barriers, start, seconds[number] if seconds else None)
        for number, (step, start) in enumerate(zip(segment.steps, starts, strict=False))
    ]


def row_of(
    number: int, step: NetworkStep, phases: Sequence[Phase], barriers: Sequence[bool], start: int, seconds: float | None
) -> PrimitiveRow:
    plan = step.pd.plan
    dst = plan.tensors[plan.outputs[0]]
    written = sum(plan.tensors[name].size_bytes for name in plan.outputs)
    read = sum(desc.size_bytes for name, desc in plan.tensors.items() if name not in plan.outputs)
    numbers = range(start, start + len(plan.phases))
    own = tuple(phase_row(i, phases[i], barriers[i]) for i in numbers)
    result = f"{'x'.join(map(str, dst.dims))} {layout_of(dst)}"
    nodes = tuple(map(str, step.nodes))
    cycles, name = plan.cycles, plan.implementation
    return PrimitiveRow(
        number,
        step.label,
        nodes,
        implementation=name,
        result=result,
        read_bytes=read,
        written_bytes=written,
        cycles=cycles,
        phases=own,
        seconds=seconds,
        is_reorder=step.is_reorder,
    )


def phase_row(number: int, phase: Phase, has_barrier: bool) -> PhaseRow:
    kernels = tuple((kernel.name, calls) for kernel, calls, _ in phase.uses())
    how = ("after a barrier" if has_barrier else "no barrier") + said_of(phase)
    return PhaseRow(number, how, phase.count, phase.total_cycles, kernels)


def boxes_of(segment: CompiledSegment) -> list[ArenaBox]:
    """All values of the arena, the lowest first."""
    layout, plan = segment.layout, segment.joined.plan
    starts = list(accumulate((len(step.pd.plan.phases) for step in segment.steps), initial=0))
    toucher: dict[str, int] = {}
    for step, (begin, end) in enumerate(pairwise(starts)):
        for phase in plan.phases[begin:end]:
            for view in phase.arguments:
                toucher.setdefault(view.buffer, step)
    return sorted(
        (
            ArenaBox(name, offset, plan.scratch_bytes[name], *layout.lives[name], toucher[name])
            for name, offset in layout.arena.items()
        ),
        key=lambda box: (box.offset, box.first),
    )


def moments_of(segment: CompiledSegment) -> list[int]:
    """For each primitive the time at which its first phase happens, and after all the end."""
    times = times_of(segment.plan.phases)
    starts = accumulate((len(step.pd.plan.phases) for step in segment.steps), initial=0)
    return [*(times[start] for start in list(starts)[:-1]), times[-1] + 1]
