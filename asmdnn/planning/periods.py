"""How often accesses come again: loops of calls, and the periods that a buffer's proof may count in."""

from collections.abc import Mapping, Sequence

from asmdnn.planning.coverage import longest, period_of
from asmdnn.planning.schedule import Schedule
from asmdnn.planning.touches import Calls

LARGEST_FLAT = 1 << 20  # elements that are looked at one by one


def loops_of(one: Calls, argument: int, size: int) -> tuple[tuple[int, int], ...]:
    """The loops of an argument's rounds, in elements."""
    return tuple((times, stride // size) for times, stride in one.repeats(argument))


def periods_of(plan: Schedule, calls: Sequence[Sequence[Calls]], sizes: Mapping[str, int]) -> dict[str, int]:
    """By which period buffers are folded, in elements: those that rounds write, and large ones that are written."""
    loops: dict[str, set[tuple[int, int]]] = {}
    for one in (one for of_phase in calls for one in of_phase):
        for argument in one.accesses.writes:
            name = one.view(argument).buffer
            if not name:  # nothing is there, which its phase will be told
                continue
            fold = longest(one.repeats(argument))
            if fold or plan.buffer_bytes(name) > LARGEST_FLAT * sizes[name]:
                loops.setdefault(name, set()).update([(fold[0], fold[1] // sizes[name])] if fold else [])
    return {name: period_of(found, -(-plan.buffer_bytes(name) // sizes[name])) for name, found in loops.items()}
