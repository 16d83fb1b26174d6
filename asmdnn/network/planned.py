"""A network with everything that planning found out: the graph, its segments, their steps."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from asmdnn.collecting import without_collections
from asmdnn.errors import Unimplemented
from asmdnn.memory.allocation import within_memory
from asmdnn.network.calls.numpy_part import NumpyPart
from asmdnn.network.calls.running import NativePart, NetworkPart, Runnable, SegmentInterface
from asmdnn.network.compiled import CompiledSegment, compiled, runner_of
from asmdnn.network.cuts import CountOf, OutputCut, cuts_of_graph, joined
from asmdnn.network.declaring import check_any_batch, check_asked, mapping
from asmdnn.network.graph import Model, Node
from asmdnn.network.known import OperatorUse, uses_of
from asmdnn.network.looked_at_first import IntegersAgain
from asmdnn.network.lowered import ModelLowering, write_of
from asmdnn.network.narrow.storage import IN_F32, Precision
from asmdnn.network.passing import is_index_type, made_type
from asmdnn.network.report import batch_line, explanation, precision_line
from asmdnn.network.segments import GraphSegment
from asmdnn.network.shared import SharedByShapes
from asmdnn.network.static import StaticGraph
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass


@dataclass(frozen=True, eq=False)
class NetworkPlan:
    """model: as it was given; graph: what is left of it for these dims; segments: in the order in which they run;
    refused: why nodes are computed in numpy, by the label of their group; precision: what the caller allowed; later:
    nodes that wait for data, and why."""

    engine: Engine
    model: Model
    graph: StaticGraph
    segments: tuple[GraphSegment | CompiledSegment, ...]
    refused: Mapping[str, str]
    runnable: Runnable
    precision: Precision = IN_F32
    later: tuple[tuple[tuple[Node, ...], str], ...] = ()

    @property
    def kept_bytes(self) -> int:
        """Of its schedules."""
        return sum(segment.kept_bytes for segment in self.segments if isinstance(segment, CompiledSegment))

    @property
    def rooms(self) -> dict[str, tuple[int, ...]]:
        """The dims of states."""
        return {state.name: self.graph.shape(state.name) for state in self.model.states}

    @property
    def any_batch(self) -> bool:
        """Whether every node is native, and every primitive's plan is that of deterministic="batch"."""
        try:
            check_any_batch(self.model.body)
        except Unimplemented:
            return False
        native = [segment for segment in self.segments if isinstance(segment, CompiledSegment)]
        return len(native) == len(self.segments) and all(step.pd.any_batch for one in native for step in one.steps)

    def uses(self) -> list[OperatorUse]:
        """How often each operator is native, and in numpy."""
        pieces = [segment.segment if isinstance(segment, CompiledSegment) else segment for segment in self.segments]
        groups = [group for piece in pieces for group in piece.groups]
        return uses_of([*((group.nodes, self.refused.get(group.label, "")) for group in groups), *self.later])

    def check(self) -> None:
        """Prove all native segments.  Raises PlanError."""
        for segment in self.segments:
            if isinstance(segment, CompiledSegment):
                segment.check()

    def explain(self) -> str:
        """What it consists of, and what batches do to bits."""
        return f"{self.described()}\n{batch_line(self.segments)}"

    def described(self) -> str:
        """The first of it, for which nothing needs to be planned."""
        waiting = [f"  later  {nodes[0]}: {reason}" for nodes, reason in self.later]
        kept = [f"  f32 stay {', '.join(self.precision.keep_f32)}"] if self.precision.keep_f32 else []
        words = [line for line in [precision_line(self.precision, self.segments)] if line]
        return "\n".join([explanation(self.graph, self.segments, self.refused), *waiting, *words, *kept])


@within_memory
@without_collections()
def plan(
    model: Model,
    shapes: Any,
    constants: Any,
    engine: Engine,
    fallback: str | None,
    precision: Precision = IN_F32,
    shared: SharedByShapes | None = None,
) -> NetworkPlan:
    """Plan a network; nothing is generated or packed.  shared: with other shapes of the model; the other arguments are
    those of `load_onnx`.  Raises OutOfMemory."""
    check_asked(model, engine, fallback, precision)
    shared = shared or SharedByShapes()
    given = mapping("shapes", shapes), mapping("constants", constants)
    lowering = ModelLowering(model, given[1], engine, fallback, precision, shared)
    graph, found, refused = lowering.of(given[0])
    pool = shared.pool
    segments = tuple(compiled(graph, segment, engine, pool) if segment.is_native else segment for segment in found)
    how = runnable(model, graph, segments, engine)
    return NetworkPlan(engine, model, graph, segments, refused=refused, runnable=how, precision=precision)


def runnable(
    model: Model, graph: StaticGraph, segments: tuple[GraphSegment | CompiledSegment, ...], engine: Engine
) -> Runnable:
    """How it runs."""
    native = [segment for segment in segments if isinstance(segment, CompiledSegment)]
    if model.states and len(native) != len(segments):
        raise Unimplemented("a network with state is to be native throughout: leave out the state, or the numpy nodes")
    hidden = {name for state in model.states for name in state.hidden}
    hidden |= {name for name in graph.outputs if type(name) is CountOf}
    outputs = {name: value for name, value in graph.outputs.items() if name not in hidden}
    steps = sum(len(segment.steps) for segment in native)
    return Runnable(
        f"{model.body.name!r}: {len(model.body.nodes)} nodes, {steps} primitives",
        engine.isa,
        {name: (graph.shape(name), graph.values[name].dtype) for name in graph.inputs if name not in hidden},
        {name: (graph.shape(value), graph.values[value].dtype) for name, value in outputs.items()},
        results={name: known if (known := graph.values[x].data) is not None else x for name, x in outputs.items()},
        parts=tuple(parts_of(graph, segments, engine)),
        states=tuple(write_of(graph, state) for state in model.states),
        borders=model.borders,
        cuts=joined(found for found in cuts_of_graph(graph.outputs) if not is_whole(graph, *found)),
    )


def is_whole(graph: StaticGraph, name: str, cut: OutputCut) -> bool:
    """Whether all places of an output are known to count, such as the one of a single number's Unique."""
    known = graph.values[cut.count].data
    return known is not None and int(known.reshape(-1)[0]) == graph.shape(graph.outputs[name])[cut.axis]


def parts_of(
    graph: StaticGraph, segments: Sequence[GraphSegment | CompiledSegment], engine: Engine
) -> Iterator[NetworkPart]:
    """In order; integers that kernels have made become integers again before others read them."""
    floats = set[str]()
    for segment in segments:
        part = part_of(graph, segment, engine)
        if isinstance(part, NativePart):
            again = [name for name in part.ends.reads if name in floats]
            if again:
                yield IntegersAgain({name: graph.values[name].dtype for name in again})
            floats |= {name for name in part.ends.makes if is_index_type(graph.values[name].dtype)}
            floats.difference_update(again)
        yield part


def part_of(graph: StaticGraph, segment: GraphSegment | CompiledSegment, engine: Engine) -> NetworkPart:
    if not isinstance(segment, CompiledSegment):
        return NumpyPart(graph.values, [node for group in segment.groups for node in group.nodes])
    makes = {x: (graph.shape(x), made_type(graph.values[x].dtype)) for x in (*segment.segment.makes, *segment.checked)}
    ends = SegmentInterface(segment.graph.inputs, makes, segment.limits, segment.checked)
    return NativePart(engine.isa, ends, partial(runner_of, segment, engine))
