"""The parts of a network one by one: what each gets, and how long its primitives and nodes take."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.calls.numpy_part import NumpyPart
from asmdnn.network.calls.running import NativePart
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.graph import Array
from asmdnn.network.joining.stepwise import Stepwise, least_times
from asmdnn.network.planned import NetworkPlan
from asmdnn.network.report import IN_NUMPY, TimedStep
from asmdnn.network.segments import GraphSegment

MOST_REPEATS: Final = 100_000
Values = Mapping[str, Array]


def steps_of(plan: NetworkPlan) -> list[TimedStep]:
    """All of a network, in the order in which they run."""
    found = list[TimedStep]()
    for segment in plan.segments:
        if isinstance(segment, CompiledSegment):
            for step in segment.steps:
                size = sum(desc.size_bytes for desc in step.pd.plan.tensors.values())
                found.append(TimedStep(step.label, step.pd.implementation, step.pd.plan.cycles, size))
        else:
            found += [TimedStep(group.label, IN_NUMPY) for group in segment.groups]
    return found


def segments_with_values(plan: NetworkPlan, feeds: Values) -> Iterator[tuple[CompiledSegment | GraphSegment, Values]]:
    """Each segment, with all values before it.  feeds: with what is read of states.  Raises InvalidArguments."""
    values, segments = dict(feeds), iter(plan.segments)
    for part in plan.runnable.parts:
        if isinstance(part, NativePart | NumpyPart):
            yield next(segments), values
        if part is not plan.runnable.parts[-1]:
            part.run(values)


def check_repeats(repeats: Any) -> None:
    """Raise InvalidArguments for a number of runs that is none."""
    if type(repeats) is not int or not 1 <= repeats <= MOST_REPEATS:
        raise InvalidArguments(f"repeats must be an integer from 1 to {MOST_REPEATS}, not {shown(repeats)}")


def times(plan: NetworkPlan, feeds: Values, repeats: int) -> list[list[float]]:
    """The least seconds of each step, by parts."""
    found = list[list[float]]()
    for segment, values in segments_with_values(plan, feeds):
        if isinstance(segment, CompiledSegment):
            found.append(Stepwise(segment, plan.engine, values).times(repeats))
        else:
            own, parts = dict(values), [NumpyPart(plan.graph.values, group.nodes) for group in segment.groups]
            found.append(least_times([partial(part.run, own) for part in parts], repeats))
    return found
