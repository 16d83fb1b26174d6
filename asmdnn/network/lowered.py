"""From a model and dims of its inputs to segments of primitives, by a template where one fits.

A template is made of the whole, inputs' dims being its numbers, or, where folding asks more of dims than a trace can
answer, of all that comes after folding, whose numbers are the dims of all values.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.network.as_asked import as_asked
from asmdnn.network.asking import Asking
from asmdnn.network.declaring import check_names, shape_of
from asmdnn.network.folding.folding import specialise
from asmdnn.network.graph import NOTHING, Array, Model
from asmdnn.network.narrow.float_types import with_f32_inside
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.operators.definition import Value
from asmdnn.network.segments import GraphSegment, fused, segments_of
from asmdnn.network.shared import SharedByShapes
from asmdnn.network.states import NetworkState, StateWrite, is_index, state_write
from asmdnn.network.static import StaticGraph
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass

LoweredModel = tuple[StaticGraph, list[GraphSegment], dict[str, str]]


@dataclass(frozen=True, eq=False)
class ModelLowering:
    """The fields are arguments of `plan`."""

    model: Model
    constants: Mapping[str, Array]
    engine: Engine
    fallback: str | None
    precision: Precision
    shared: SharedByShapes

    def of(self, shapes: Mapping[str, Any]) -> LoweredModel:
        """The graph that is lowered, its segments, and why nodes have no kernel.  Raises InvalidArguments,
        Unimplemented."""
        inputs = self.inputs(shapes)
        templates = self.shared.of_inputs
        found: LoweredModel = templates.lowered(inputs, self.engine, self.of_inputs)
        return found

    def inputs(self, shapes: Mapping[str, Any]) -> StaticGraph:
        """A graph of the inputs alone."""
        declared = self.model.body.inputs
        check_names(declared, shapes, self.constants)
        names = tuple(name for name in declared if name not in self.constants)
        values = {name: Value(shape_of(name, declared[name], shapes.get(name)), declared[name].dtype) for name in names}
        return StaticGraph(names, {}, (), values)

    def of_inputs(self, inputs: StaticGraph, asking: Asking) -> LoweredModel:
        """Of inputs whose dims may be traced."""
        shapes = {name: inputs.shape(name) for name in inputs.inputs}
        graph = specialise(self.model, shapes, self.constants, self.shared.remembered)
        graph = with_f32_inside(graph, self.precision.io, self.hidden)
        if asking.is_traced or not self.shared.of_inputs.are_spoiled:
            return self.of_graph(graph, asking)
        found: LoweredModel = self.shared.of_graphs.lowered(graph, self.engine, self.of_graph)
        return found

    def of_graph(self, graph: StaticGraph, asking: Asking) -> LoweredModel:
        """Of a graph whose dims may be traced."""
        graph = fused(graph, self.shared.remembered)
        for state in self.model.states:
            write_of(graph, state)
        said = partial(as_asked, body=self.model.body)
        found, refused = segments_of(graph, self.engine, self.fallback, self.precision, asking, said)
        if refused:
            asking.only_here("reasons are texts, which may have numbers")
        return graph, found, refused

    @property
    def hidden(self) -> set[str]:
        return {name for state in self.model.states for name in state.hidden}


def write_of(graph: StaticGraph, state: NetworkState) -> StateWrite:
    """Raises InvalidArguments for what does not fit the state."""
    if not state.written:
        return StateWrite(state, NOTHING, graph.shape(state.name), 0)
    if isinstance(state.at, str) and not is_index(graph.shape(state.at), graph.values[state.at].dtype):
        raise InvalidArguments(f"{state.at} says where state {state.name} is written: it must be one integer")
    value = graph.outputs[state.written]
    data = None if state.is_float else graph.values[value].data
    return state_write(state, value if data is None else data, graph.shape(value), graph.shape(state.name))
