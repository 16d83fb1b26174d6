"""When states are written: after the last step that reads what they were, before the first that reads what they are.

A state is up to three tensors of a plan that are one piece of memory: `old`, which is read, `written`, and `now`, which
is read afterwards.  Steps get edges from readers of `old` to writers, and from these to readers of `now`.  A value is
written by the step that makes it, unless something after that step still reads `old`; then it is copied at the end.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from asmdnn.errors import InvalidArguments
from asmdnn.network.calls.running import input_name
from asmdnn.network.joining.joined import StateTensors
from asmdnn.network.joining.place import StateWindow
from asmdnn.network.step_list import NetworkStep
from asmdnn.network.steps import Steps


class StepGraph:
    """Which steps come before which: by their buffers, and by the states that are written already.

    written: by the buffer that is written; `add_steps` takes those that have come since.  What lies after a step is
    looked up when it is asked for: most states are written by the last steps, after which there is little."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.count = steps, 0
        self.reads, self.writes = list[set[str]](), list[set[str]]()
        self.readers, self.writers = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        self.written: dict[str, StateWindow] = {}
        self.writing: dict[str, list[str]] = defaultdict(list)  # by the state's old name
        self.add_steps()

    def add_steps(self) -> None:
        for i, step in enumerate(self.steps.steps[self.count :], self.count):
            for is_output, sets, users in ((False, self.reads, self.readers), (True, self.writes, self.writers)):
                sets.append(self.buffers(step, is_output))
                for buffer in sets[-1]:
                    users[buffer].append(i)
        self.count = len(self.steps.steps)

    def buffers(self, step: NetworkStep, is_output: bool) -> set[str]:
        outputs, memory = step.pd.plan.outputs, self.steps.memory
        return {memory.located(x).buffer for name, x in step.buffers.items() if (name in outputs) is is_output}

    def reads_in_place(self, i: int, old: str, made: str) -> bool:
        """Whether a step may write the buffer that it makes over a state that it reads: all of it, in its place."""
        step = self.steps.steps[i]
        places, plan = {name: self.steps.memory.located(x) for name, x in step.buffers.items()}, step.pd.plan
        read = [name for name, place in places.items() if place.buffer == old and name not in plan.outputs]
        written = [name for name in plan.outputs if name in places and places[name].buffer == made]
        is_whole = all(step.buffers[name] == old for name in read) and all(step.buffers[x] == made for x in written)
        return is_whole and all((name, output) in plan.in_place for name in read for output in written)

    def write(self, buffer: str, window: StateWindow) -> None:
        """From now on a buffer is a state."""
        self.written[buffer] = window
        self.writing[window.old].append(buffer)

    def followers(self, i: int) -> set[int]:
        """The steps that have to wait for a step itself."""
        read_now = (self.written[buffer].now for buffer in self.writes[i] if buffer in self.written)
        found = {j for buffer in (*self.writes[i], *read_now) for j in self.readers.get(buffer, ())}
        states = (buffer for old in self.reads[i] for buffer in self.writing.get(old, ()))
        return found.union(*(self.writers.get(buffer, ()) for buffer in states)) - {i}

    def all_after(self, first: Iterable[int]) -> set[int]:
        """The steps that cannot run before these have."""
        found, left = set[int](), [*first]
        while left:
            new = self.followers(left.pop()) - found
            found |= new
            left += new
        return found


def may_write(graph: StepGraph, buffer: str, window: StateWindow) -> bool:
    """Whether the steps that make a buffer may make it in the state itself."""
    makers = graph.writers.get(buffer, [])
    later = graph.all_after(makers)
    if not makers or later.intersection(graph.readers.get(window.old, ())) or later.intersection(makers):
        return False
    return all(graph.reads_in_place(i, window.old, buffer) for i in makers if window.old in graph.reads[i])


def check_order(graph: StepGraph) -> None:
    """Raise InvalidArguments for a state that would have to be written before its last reader."""
    for buffer, window in graph.written.items():
        writers = graph.writers.get(buffer, [])
        stuck = sorted(graph.all_after(writers).intersection(graph.readers.get(window.old, ())) - {*writers})
        if stuck:
            label = graph.steps.steps[stuck[0]].label
            raise InvalidArguments(
                f"{label} reads what state {window.old} was, and needs what it becomes: read what update() returned"
            )


def state_tensors(written: Mapping[str, StateWindow]) -> tuple[StateTensors, ...]:
    return tuple(
        StateTensors(input_name(window.old), buffer, window.now and input_name(window.now))
        for buffer, window in written.items()
    )


def memory_of(states: Sequence[StateTensors]) -> dict[str, str]:
    """The names of tensors that are one piece of memory, and one name for it."""
    return {name: state.old for state in states for name in (state.old, state.written, state.now) if name}
