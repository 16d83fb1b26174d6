"""The templates of a model: made of the second shape that comes, and again where decisions come out otherwise."""

from typing import Any

from asmdnn.network.asking import Asking
from asmdnn.network.static import StaticGraph
from asmdnn.network.template.asking import AskingOnce
from asmdnn.network.template.graphs import is_alike, numbers_of
from asmdnn.network.template.template import Lower, Template, template_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import has_stored_plans

MOST_TEMPLATES = 8  # made for a model; each takes about as long as lowering does


class Templates:
    """Threads that lower at the same time may each make one."""

    def __init__(self) -> None:
        self._made: tuple[Template, ...] = ()
        self._last: StaticGraph | None = None
        self._tries = 0
        self.are_spoiled = False  # whether what is traced has asked too much

    def lowered(self, graph: StaticGraph, engine: Engine, lower: Lower) -> Any:
        """What `lower` makes of a graph.  It depends on the graph and on answers of `Asking` alone.

        Raises what it raises."""
        if has_stored_plans():  # these are for single shapes
            return lower(graph, Asking(engine))
        asking = AskingOnce(engine)
        for template in self._made:
            result = template.apply(graph, asking)
            if result is not None:
                self._made = (template, *(one for one in self._made if one is not template))
                return result
        last, self._last = self._last, graph
        if last is not None and self._tries < MOST_TEMPLATES and is_alike(last, graph) and differ(last, graph):
            self._tries += 1
            made = template_of(graph, last, engine, lower)
            if made is None:
                self.are_spoiled, self._tries = True, MOST_TEMPLATES
            elif (result := made.apply(graph, asking)) is not None:
                self._made = (made, *self._made)
                return result
        return lower(graph, Asking(engine))


def differ(one: StaticGraph, two: StaticGraph) -> bool:
    return numbers_of(one) != numbers_of(two)
