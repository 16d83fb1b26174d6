"""A recipe of a model's lowering: what it is for graphs with other numbers, as long as all decisions come out alike."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import AsmdnnError, Unimplemented
from asmdnn.memory.traced import Computed, Decided, NumberTrace
from asmdnn.network.asking import Asking
from asmdnn.network.graph import Array
from asmdnn.network.static import StaticGraph
from asmdnn.network.template.asking import Answered, Asked, AskingTraced, Seen
from asmdnn.network.template.graphs import GraphNumbers, is_alike, numbers_of, traced
from asmdnn.network.template.parts import Made, Part, ValueParts, value_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass

Lower = Callable[[StaticGraph, Asking], Any]


@dataclass(frozen=True, eq=False)
class Template:
    """graph: one that it fits; steps: what is computed, made, asked, and has to come out as it did, in this order;
    result: what lowering returns.  start, count: the numbers as they were, and how many values are made."""

    engine: Engine
    graph: StaticGraph
    numbers: GraphNumbers
    steps: Sequence[Any]
    result: Part
    start: Sequence[Any]
    count: int

    def apply(self, graph: StaticGraph, asking: Asking) -> Any:
        """What lowering makes of a graph; None if it would decide otherwise."""
        if not is_alike(self.graph, graph):
            return None
        numbers = np.array(numbers_of(graph), np.int64)
        if not self.numbers.fits(numbers):
            return None
        try:
            return Application(self, graph, numbers, asking).result()
        except ArithmeticError:
            return None


def template_of(graph: StaticGraph, other: StaticGraph, engine: Engine, lower: Lower) -> Template | None:
    """The template of two graphs that are alike; None where lowering asks more of a number than a trace can answer, or
    raises an error, which it does without a trace, too."""
    trace = NumberTrace()
    parts = ValueParts(trace)
    seen, numbers = traced(graph, other, trace, parts)
    asking = AskingTraced(engine, parts)
    parts.stand_for(asking, parts.part(Asking(engine)))
    try:
        result = parts.part(lower(seen, asking))
    except Exception as error:
        trace.spoil(str(error))
    finally:
        steps, start = tuple(trace.steps), tuple(trace.numbers)
        trace.close()
    if trace.spoiled:
        return None
    return Template(engine, graph, numbers, steps, result=result, start=start, count=len(parts.made))


class Application:
    """A template with the numbers of a graph."""

    def __init__(self, template: Template, graph: StaticGraph, numbers: Array, asking: Asking) -> None:
        self.template, self.numbers, self.asking = template, [*template.start], asking
        self.made: list[Any] = [None] * template.count
        for index, at in template.numbers.leaves:
            self.numbers[index] = int(numbers[at])
        for name, slot, data in template.numbers.slots:
            self.made[slot], self.made[data] = graph.values[name], graph.values[name].data

    def result(self) -> Any:
        numbers, made = self.numbers, self.made
        for step in self.template.steps:
            kind = type(step)
            if kind is Computed:
                numbers[step.number] = step.function(numbers[step.left], numbers[step.right])
            elif kind is Decided:
                if step.function(numbers[step.left], numbers[step.right]) != step.outcome:
                    return None
            elif kind is Made:
                made[step.slot] = step.of(numbers, made)
            elif not self.holds(step):
                return None
        return self.value(self.template.result)

    def holds(self, step: Asked | Seen | Answered) -> bool:
        """Whether primitives answer as they did."""
        if isinstance(step, Seen):
            return bool(step.look(self.made[step.answer]) == self.value(step.wanted))
        asking, desc, attr = self.asking, self.value(step.desc), self.value(step.attr)
        if isinstance(step, Answered):
            return asking.whether(step.question, desc, attr) == step.answer
        try:
            pd = asking.planned(desc, attr)
        except AsmdnnError as error:
            return step.refused and isinstance(error, Unimplemented)
        self.made[step.slot], self.numbers[step.cycles] = pd, pd.plan.cycles
        return not step.refused

    def value(self, part: Part) -> Any:
        return value_of(part, self.numbers, self.made)
