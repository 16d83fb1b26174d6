"""How often accesses come again: loops of calls, and the periods that a buffer's proof may count in."""

from collections.abc import Mapping, Sequence

from asmdnn.planning.coverage import longest, period_of
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls


def loops_of(one: Calls, argument: int, size: int) -> tuple[tuple[int, int], ...]:
    """The loops of an argument's rounds, in elements."""
    return tuple((times, stride // size) for times, stride in one.repeats(argument))


def periods_of(plan: Schedule, calls: Sequence[Sequence[Calls]], sizes: Mapping[str, int]) -> dict[str, int]:
    """By which period buffers are folded, in elements: those that rounds write."""
    strides: dict[str, list[int]] = {}
    for one in (one for of_phase in calls for one in of_phase if one.phase.repeats):
        for argument in one.accesses.writes:
            fold = longest(one.repeats(argument))
            if fold:
                strides.setdefault(one.view(argument).buffer, []).append(fold[1])
    found = {}
    for name, steps in strides.items():
        size = sizes[name]
        found[name] = period_of([max(1, step // size) for step in steps], -(-plan.buffer_bytes(name) // size))
    return found
