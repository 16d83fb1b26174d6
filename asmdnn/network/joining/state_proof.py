"""Proof that states, which several tensors of a plan are, are written after their last reader."""

from itertools import accumulate

from asmdnn.errors import PlanError
from asmdnn.network.calls.running import INPUT
from asmdnn.network.joining.joined import JoinedPlan, StateTensors
from asmdnn.network.joining.touches import Touches
from asmdnn.planning.phase import Phase
from asmdnn.planning.phases import arguments_of, barriers_before, reads_where_written


def check_states(joined: JoinedPlan) -> None:
    """Prove that no step reads a state that another one may have written over, nor what it becomes too early.

    A phase may read and write a state if each record reads just what it writes.  Raises PlanError.
    """
    phases = joined.plan.phases
    barriers = list(accumulate(barriers_before(phases)))
    for state in joined.states:
        touches = {name: Touches([], []) for name in state if name}
        for number, phase in enumerate(phases):
            for name in {view.buffer for view in phase.arguments} & touches.keys():
                if not (name == state.old and is_in_place(phase, state)):
                    touches[name].add(number, barriers[number], phase.alone)
        for first, then, words in (
            (state.old, state.written, "is written before its last reader is done"),
            (state.written, state.now, "is read before it is written"),
        ):
            one, two = touches.get(first), touches.get(then)
            if one and two and one.is_any and two.is_any and not one.done_before(two):
                raise PlanError(f"state {state.old.removeprefix(INPUT)} {words}")


def is_in_place(phase: Phase, state: StateTensors) -> bool:
    """Whether all records read the state exactly where they write it."""
    places = [i for i, view in enumerate(phase.arguments) if view.buffer == state.old]
    old = [i for i in places if any(arguments_of(spec).touch(i) for spec in phase.kernels)]
    new = [i for i, view in enumerate(phase.arguments) if view.buffer == state.written]
    return len(new) == 1 and all(reads_where_written(phase, i, new[0]) for i in old)
