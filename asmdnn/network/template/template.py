"""A recipe of a model's lowering: what it is for graphs with other numbers, as long as all decisions come out alike."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.errors import AsmdnnError, Unimplemented
from asmdnn.memory.traced import Computed, Decided, NumberTrace
from asmdnn.network.asking import Asking
from asmdnn.network.graph import Array
from asmdnn.network.static import StaticGraph
from asmdnn.network.template.asking import Answered, Asked, AskingTraced, Seen
from asmdnn.network.template.flat import Filled, FlatTrace, flattened
from asmdnn.network.template.graphs import GraphNumbers, is_alike, numbers_of, traced
from asmdnn.network.template.parts import ValueParts
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass

Lower = Callable[[StaticGraph, Asking], Any]


@dataclass(frozen=True, eq=False)
class Template:
    """graph: one that it fits; trace: what is computed, made, asked, and has to come out as it did, for lowering's
    result."""

    engine: Engine
    graph: StaticGraph
    numbers: GraphNumbers
    trace: FlatTrace

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
    return Template(engine, graph, numbers, flattened(steps, result, start, len(parts.made)))


class Application:
    """A template with the numbers of a graph."""

    def __init__(self, template: Template, graph: StaticGraph, numbers: Array, asking: Asking) -> None:
        trace, known = template.trace, numbers.tolist()
        self.trace, self.values, self.asking = trace, [*trace.start], asking
        for index, at in template.numbers.leaves:
            self.values[index] = known[at]
        for name, slot, data in template.numbers.slots:
            value = graph.values[name]
            self.values[trace.slots + slot], self.values[trace.slots + data] = value, value.data

    def result(self) -> Any:
        values = self.values
        for step in self.trace.steps:
            kind = type(step)
            if kind is Computed:
                function, left, right, at = step
                values[at] = function(values[left], values[right])
            elif kind is Decided:
                function, left, right, outcome = step
                if function(values[left], values[right]) != outcome:
                    return None
            elif kind is Filled:
                make, take, at = step
                values[at] = make(take(values))
            elif kind is Seen:
                look, answer, wanted = step
                if look(values[answer]) != values[wanted]:
                    return None
            elif not self.holds(step):
                return None
        return values[self.trace.result]

    def holds(self, step: Asked | Answered) -> bool:
        """Whether primitives answer as they did."""
        values = self.values
        asking, desc, attr = self.asking, values[step.desc], values[step.attr]
        if isinstance(step, Answered):
            return asking.whether(step.question, desc, attr) == step.answer
        try:
            pd = asking.planned(desc, attr)
        except AsmdnnError as error:
            return step.refused and isinstance(error, Unimplemented)
        values[step.slot], values[step.cycles] = pd, pd.plan.cycles
        return not step.refused
