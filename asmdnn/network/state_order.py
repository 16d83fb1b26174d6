"""When states are written: after the last step that reads what they were, before the first that reads what they are.

A state is up to three tensors of a plan that are one piece of memory: `old`, which is read, `written`, and `now`, which
is read afterwards.  Steps get edges from readers of `old` to writers, and from these to readers of `now`.  A value is
written by the step that makes it, unless something after that step still reads `old`; then it is copied at the end.
"""

from collections.abc import Iterable, Mapping, Sequence

from asmdnn.errors import InvalidArguments
from asmdnn.network.joined import StateTensors
from asmdnn.network.place import StateWindow
from asmdnn.network.steps import NetworkStep, Steps


class StepGraph:
    """Which steps come before which: by their buffers, and by the states that are written already."""

    def __init__(self, steps: Steps, written: Mapping[str, StateWindow]) -> None:
        self.steps = steps
        self.reads = [self.buffers(step, False) for step in steps.steps]
        self.writes = [self.buffers(step, True) for step in steps.steps]
        self.followers: list[set[int]] = [set() for _ in steps.steps]
        for buffer in set().union(*self.writes):
            self.add(self.writers(buffer), self.readers(buffer))
        for buffer, window in written.items():
            self.add(self.readers(window.old), self.writers(buffer))
            self.add(self.writers(buffer), self.readers(window.now))

    def buffers(self, step: NetworkStep, is_output: bool) -> set[str]:
        outputs, memory = step.pd.plan.outputs, self.steps.memory
        return {memory.located(x).buffer for name, x in step.buffers.items() if (name in outputs) is is_output}

    def readers(self, buffer: str) -> list[int]:
        return [i for i, read in enumerate(self.reads) if buffer in read]

    def writers(self, buffer: str) -> list[int]:
        return [i for i, written in enumerate(self.writes) if buffer in written]

    def add(self, first: Iterable[int], then: Iterable[int]) -> None:
        """Edges from all of one kind to all of the other."""
        for i in first:
            self.followers[i] |= {*then} - {i}

    def all_after(self, first: Iterable[int]) -> set[int]:
        """The steps that cannot run before these have."""
        found, left = set[int](), [*first]
        while left:
            new = self.followers[left.pop()] - found
            found |= new
            left += new
        return found


def may_write(steps: Steps, written: Mapping[str, StateWindow], buffer: str, window: StateWindow) -> bool:
    """Whether the steps that make a buffer may make it in the state itself."""
    graph = StepGraph(steps, written)
    makers = graph.writers(buffer)
    later = graph.all_after(makers)
    if not makers or later.intersection(graph.readers(window.old)) or later.intersection(makers):
        return False
    return all(reads_in_place(steps.steps[i], window.old) for i in makers if window.old in graph.reads[i])


def reads_in_place(step: NetworkStep, old: str) -> bool:
    """Whether a step may write its result over a state that it reads."""
    plan = step.pd.plan
    own = [name for name, buffer in step.buffers.items() if buffer == old]
    return all(name in plan.in_place and plan.tensors[name] == plan.tensors[plan.outputs[0]] for name in own)


def check_order(steps: Steps, written: Mapping[str, StateWindow]) -> None:
    """Raise InvalidArguments for a state that would have to be written before its last reader."""
    graph = StepGraph(steps, written)
    for buffer, window in written.items():
        readers = graph.readers(window.old)
        stuck = sorted(graph.all_after(graph.writers(buffer)).intersection(readers) - {*graph.writers(buffer)})
        if stuck:
            label = steps.steps[stuck[0]].label
            raise InvalidArguments(
                f"{label} reads what state {window.old} was, and needs what it becomes: read what update() returned"
            )


def state_tensors(written: Mapping[str, StateWindow]) -> tuple[StateTensors, ...]:
    return tuple(StateTensors(window.old, buffer, window.now) for buffer, window in written.items())


def memory_of(states: Sequence[StateTensors]) -> dict[str, str]:
    """The names of tensors that are one piece of memory, and one name for it."""
    return {name: state.old for state in states for name in (state.old, state.written, state.now) if name}
