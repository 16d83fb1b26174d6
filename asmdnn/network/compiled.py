"""A native segment: its steps, the plan that they make together, where values lie, and the call that runs it."""

from collections.abc import Mapping, Sequence

from asmdnn.network.calls.running import Runner, result_name
from asmdnn.network.calls.weights import WeightPieces
from asmdnn.network.graph import Array
from asmdnn.network.joining.arena import ArenaLayout, check_layout, layout_of, placed_plan
from asmdnn.network.joining.buffers import Weight
from asmdnn.network.joining.join import join
from asmdnn.network.joining.joined import JoinedPlan
from asmdnn.network.joining.state_proof import check_states
from asmdnn.network.joining.weights import WeightPool
from asmdnn.network.layouts import FormatPath, FormatSearch
from asmdnn.network.limits import Limit
from asmdnn.network.segments import GraphSegment, subgraph
from asmdnn.network.static import StaticGraph
from asmdnn.network.step_list import NetworkStep
from asmdnn.network.steps import Steps
from asmdnn.planning.plan import Plan, kept_bytes_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.indices import check_indices
from asmdnn.records import dataclass
from asmdnn.runtime.execution import program_of


@dataclass(frozen=True, eq=False)
class CompiledSegment:
    """way: how formats were chosen; steps: primitives in order; joined: their plan, a buffer for each value; plan: the
    one that runs, in an arena.  limits: of inputs that are integers; checked: of those that it makes, and delivers to
    be looked at.  pool: where its packed weights are."""

    segment: GraphSegment
    graph: StaticGraph
    way: FormatPath
    steps: tuple[NetworkStep, ...]
    weights: Mapping[str, Weight]
    joined: JoinedPlan
    layout: ArenaLayout
    plan: Plan
    limits: Mapping[str, Limit]
    checked: Mapping[str, Limit]
    pool: WeightPool

    @property
    def kept_bytes(self) -> int:
        """Of its schedules, and of weights that no other plan reads."""
        return kept_bytes_of([self.plan, self.joined.plan]) + int(self.pool.share_of(self))

    def check_indices(self, values: Mapping[str, Array]) -> None:
        """Raise InvalidArguments unless all indices among the inputs are in range."""
        for name, limit in self.limits.items():
            check_indices(name, values[name], *limit)

    def check(self) -> None:
        """Prove bounds, order, completeness, and that no value is overwritten before its last reader: PlanError."""
        self.joined.plan.check()
        check_layout(self.joined, self.layout, self.plan)
        check_states(self.joined)


def compiled(graph: StaticGraph, segment: GraphSegment, engine: Engine, pool: WeightPool) -> CompiledSegment:
    """Plan a segment; nothing is generated or packed."""
    own = subgraph(graph, segment)
    return of_steps(segment, own, segment.way or lowered(own, segment, engine), pool)


def of_steps(segment: GraphSegment, own: StaticGraph, way: FormatPath, pool: WeightPool) -> CompiledSegment:
    """The steps of a way in one memory; the way stays as it is."""
    steps = way.steps.branch()
    steps.settle_weights()
    joined = join(steps, {**own.outputs, **{result_name(name): name for name in steps.integers.checked}})
    layout = layout_of(joined)
    plan = placed_plan(joined, layout)
    return CompiledSegment(
        segment,
        own,
        way,
        steps=tuple(steps.steps),
        weights=steps.memory.settled_weights,
        joined=joined,
        layout=layout,
        plan=plan,
        limits=steps.integers.limits,
        checked=steps.integers.checked,
        pool=pool,
    )


def lowered(own: StaticGraph, segment: GraphSegment, engine: Engine) -> FormatPath:
    """The steps of a segment that has others around it."""
    search = FormatSearch(Steps(own, engine, segment.storage), segment.groups)
    for group in segment.groups:
        search.lower(group)
    return search.end()


def packed(segment: CompiledSegment) -> WeightPieces:
    """All weights in the formats that kernels read."""
    return segment.pool.packed(segment, segment.weights, segment.layout.weights, segment.way.steps.engine.threads)


def runner_of(segment: CompiledSegment, engine: Engine, names: Sequence[str]) -> Runner:
    """Load the kernels and pack the weights; names: the other tensors, in the order of its calls."""
    return Runner(segment.plan, packed(segment), program_of(segment.plan, engine.threads)[0], names)
