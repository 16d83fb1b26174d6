"""Barriers stand only where a step reads what another thread may have written: steps of independent branches run
between the same two barriers.

In the joined plan every value has a buffer of its own, and each element is written once.  So a step needs no barrier
in front if the phases that it begins with touch nothing that steps since the last barrier have written, nor write what
these read: its first phase is then `independent`, which `Plan.check()` proves.  Steps that one thread runs alone, one
after another, may read anything of one another.

The order is a list schedule.  Of the steps whose operands are there, the first one that needs no barrier comes next,
else the first one of all.  It is looked for among the next `WINDOW` steps, and only while what has been written since
the last barrier fits `room_bytes`, so that readers still find it in the cache, and the arena does not grow.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from asmdnn.network.joining.joined import StateTensors
from asmdnn.network.step_list import NetworkStep
from asmdnn.planning.phase import Phase, View
from asmdnn.planning.phases import barriers_before, has_barrier
from asmdnn.records import altered, dataclass, field, once, replace

WINDOW = 24  # steps: a block of a network has fewer


@dataclass(frozen=True, eq=False)
class StepWork:
    """A step, its phases on its own arguments, and what stands for these; memory: one name for tensors that are one."""

    step: NetworkStep
    phases: Sequence[Phase]
    views: Mapping[str, View]
    memory: Mapping[str, str] = field(default_factory=dict)

    @once
    def written_bytes(self) -> int:
        plan = self.step.pd.plan
        return sum(plan.tensors[name].size_bytes for name in plan.outputs)

    @once
    def written(self) -> Sequence[View]:
        return [self.shared(self.views[name]) for name in self.step.pd.plan.outputs]

    @once
    def read(self) -> Sequence[Sequence[View]]:
        """What each of its phases reads of the step's arguments."""
        outputs = self.step.pd.plan.outputs
        inputs = [(name, self.shared(view)) for name, view in self.views.items() if name not in outputs]
        found = []
        for phase in self.phases:
            names = {view.buffer for view in phase.arguments}
            found.append([view for name, view in inputs if name in names])
        return found

    def shared(self, view: View) -> View:
        """A view of a tensor, or all of the memory that several tensors are."""
        return View(self.memory[view.buffer]) if view.buffer in self.memory else view

    @once
    def read_first(self) -> Sequence[View]:
        """What the phases before the first barrier of its own read."""
        ends = (i for i in range(1, len(self.phases)) if has_barrier(self.phases[i], self.phases[0].alone))
        return [view for read in self.read[: next(ends, len(self.phases))] for view in read]


class ViewsOfBuffers:
    """Views by their buffers."""

    def __init__(self) -> None:
        self._of = dict[str, list[View]]()

    def add(self, views: Iterable[View]) -> None:
        for view in views:
            self._of.setdefault(view.buffer, []).append(view)

    def meet(self, views: Iterable[View]) -> bool:
        """Whether any of these has a byte in common with one of them."""
        return any(meet(view, own) for view in views for own in self._of.get(view.buffer, ()))


class Interval:
    """What steps touch between two barriers."""

    def __init__(self) -> None:
        self.reads, self.writes, self.written_bytes = ViewsOfBuffers(), ViewsOfBuffers(), 0
        self.only_alone = True  # one thread has run all so far

    def goes_on(self, work: StepWork) -> bool:
        """Whether the thread that has run all so far begins the step, too."""
        return self.only_alone and work.phases[0].alone

    def takes(self, work: StepWork) -> bool:
        """Whether a step needs no barrier before it."""
        return self.goes_on(work) or not (self.writes.meet(work.read_first) or self.reads.meet(work.written))

    def then(self, work: StepWork, takes: bool) -> "Interval":
        """The interval in which the step ends; takes: whether it begins in this one."""
        found = self if takes else Interval()
        for i, (phase, read) in enumerate(zip(work.phases, work.read, strict=True)):
            found = Interval() if i and has_barrier(phase, found.only_alone) else found
            found.reads.add(read)
            found.only_alone &= phase.alone
        found.writes.add(work.written)
        found.written_bytes += work.written_bytes
        return found


def meet(one: View, two: View) -> bool:
    """Whether views of one buffer have a byte in common, as far as they say."""
    return before(one, two) and before(two, one)


def before(one: View, two: View) -> bool:
    """Whether a view begins before the other one ends."""
    return two.size_bytes is None or one.offset_bytes < two.offset_bytes + two.size_bytes


def in_order(
    works: Sequence[StepWork], room_bytes: int, states: Sequence[StateTensors] = ()
) -> list[tuple[StepWork, Sequence[Phase]]]:
    """The steps as they are to run, with their phases, the first one `independent` where it needs no barrier."""
    waiting, left, interval = needs(works, states), list(range(len(works))), Interval()
    readers: list[list[int]] = [[] for _ in works]
    for i, others in enumerate(waiting):
        for other in others:
            readers[other].append(i)
    found = list[tuple[StepWork, Sequence[Phase]]]()
    while left:
        ready = [i for i in left[:WINDOW] if not waiting[i]] or [next(i for i in left if not waiting[i])]
        chosen, takes = next_of(ready, works, room_bytes - interval.written_bytes, interval)
        work = works[chosen]
        first, *later = work.phases
        is_independent = bool(found) and takes and not interval.goes_on(work)
        found.append((work, [altered(first, independent=True), *later] if is_independent else work.phases))
        interval = interval.then(work, takes)
        left.remove(chosen)
        for i in readers[chosen]:
            waiting[i].discard(chosen)
    return found


def next_of(ready: Sequence[int], works: Sequence[StepWork], room: int, interval: Interval) -> tuple[int, bool]:
    """The first step that needs no barrier and writes at most `room` bytes, else the first one; and whether it needs
    none."""
    first, *others = ready
    takes = interval.takes(works[first])
    if not (takes and works[first].written_bytes <= room):
        for i in others:
            if works[i].written_bytes <= room and interval.takes(works[i]):
                return i, True
    return first, takes


def needs(works: Sequence[StepWork], states: Sequence[StateTensors] = ()) -> list[set[int]]:
    """For each step those that write what it reads, and those that read a state before it is written."""
    writers: dict[str, list[tuple[int, View]]] = {}
    readers: dict[str, set[int]] = {}
    found = list[set[int]]()
    for i, work in enumerate(works):
        outputs = {*work.step.pd.plan.outputs}
        read = [view for name, view in work.views.items() if name not in outputs]
        for view in read:
            readers.setdefault(view.buffer, set()).add(i)
        found.append({j for view in read for j, own in writers.get(view.buffer, ()) if meet(view, own)})
        for name in work.step.pd.plan.outputs:
            writers.setdefault(work.views[name].buffer, []).append((i, work.views[name]))
    for state in states:
        writing = {i for i, _ in writers.get(state.written, ())}
        for i in writing:
            found[i] |= readers.get(state.old, set()) - {i}
        for i in readers.get(state.now, ()):
            found[i] |= writing
    return found


def barriers(steps: Sequence[NetworkStep], phases: Sequence[Phase]) -> tuple[int, int]:
    """How many barriers stand between the phases of these steps, and how many would if no step were independent."""
    firsts = set(accumulate((len(step.pd.plan.phases) for step in steps), initial=0))
    together = [replace(phase, independent=phase.independent and i not in firsts) for i, phase in enumerate(phases)]
    return sum(barriers_before(phases)) - 1, sum(barriers_before(together)) - 1
