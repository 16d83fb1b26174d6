"""Planners of a convolution with a depthwise post-op: by strips where that is expected to be faster, else in phases."""

from collections.abc import Iterator, Mapping

from asmdnn.errors import Unimplemented
from asmdnn.isa.dot import f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import direct, grouped
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.pairs import phases
from asmdnn.primitives.convolution.pairs.cost import best_height, heights, may_gain, phases_cycles
from asmdnn.primitives.convolution.pairs.pair import Pair, is_pair, pair_of
from asmdnn.primitives.convolution.pairs.parts import ROWS, Parts
from asmdnn.primitives.convolution.pairs.phases import tensors_of
from asmdnn.primitives.convolution.pairs.strips import NAME, planned_strips
from asmdnn.primitives.convolution.pointwise import check_pointwise
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.implementation import Answer, first_plan
from asmdnn.primitives.core.registry import kind_of
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.records import altered, dataclass, replace
from asmdnn.types import f32


def plan_strips(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Answer | Iterator[Answer]:
    """By strips; refused where phases are expected to be as fast."""
    if not is_pair(attr):
        return iter(())
    try:
        made = prepared(desc, attr, engine)
        return made.in_strips(made.height())
    except Refused as reason:
        return Refusal(f"{NAME}:{f32_dot_level(engine.isa)}", str(reason))


@AsksBelow
def plan_phases(below: Planners, desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """One convolution after the other, each by the planners below."""
    if not is_pair(attr):
        return
    try:
        yield phases.in_phases(pair_of(desc, attr), engine, below)
    except Refused as reason:
        yield Refusal(f"phases:{engine.isa}", str(reason))


def takes_strips(desc: ConvolutionForward, attr: Attr, engine: Engine) -> bool:
    """Whether a pair is expected to be faster by strips than in phases; neither is planned for that."""
    try:
        pair = pair_of(desc, attr)
        if not may_gain(pair, at_level(engine, f32_dot_level(engine.isa))):
            return False
        return prepared_pair(pair, desc, engine).height() > 0
    except Refused:
        return False


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPair:
    """A pair that strips can do; plans: of both convolutions as they are, with the formats that strips have too."""

    pair: Pair
    plans: tuple[Plan, Plan]
    panel: int
    engine: Engine

    def height(self) -> int:
        """The rows of the best strips.  Raises Refused where phases are expected to be as fast."""
        rows, cost = best_height(self.pair, self.plans, self.panel, self.engine)
        other = phases_cycles(self.pair, self.plans, self.engine)
        if other < cost:
            raise Refused(f"strips of {rows} rows are expected to take {cost:.0f} cycles, phases {other:.0f}")
        return rows

    def in_strips(self, rows: int) -> Plan:
        """The plan, of so many rows each.  Raises Refused."""
        first, second = self.plans
        tensors = {name: tensor for name, tensor in first.tensors.items() if name != "dst"}
        parts = Parts(self.pair, {**tensors, **tensors_of(second, self.pair.names)})
        return planned_strips(parts, self.engine, self.panel, rows)


def prepared(desc: ConvolutionForward, attr: Attr, engine: Engine) -> PreparedPair:
    """Raises Refused."""
    return prepared_pair(pair_of(desc, attr), desc, engine)


def prepared_pair(pair: Pair, desc: ConvolutionForward, engine: Engine) -> PreparedPair:
    """The same of a description's pair."""
    caller, engine = engine, at_level(engine, f32_dot_level(engine.isa))
    lanes = lanes_of(engine.isa)
    check_pointwise(pair.first)
    if len(desc.kernel) != 2:
        raise Refused(f"src has {len(desc.kernel)} spatial axes, strips have 2")
    if 0 in pair.second.dst.dims or 0 in desc.src.dims:
        raise Refused("src or dst has no elements")
    middle = MemoryDesc(desc.dst.dims, f32, f"aBx{lanes}b")
    first = shared_plan(pair.first, pair.first_attr, caller, direct.NAME, {"dst": middle})
    first = first or direct.planned(replace(pair.first, dst=middle), pair.first_attr, engine)
    same = pair.second.algorithm == desc.algorithm
    alone = pair.second if same else altered(pair.second, algorithm=desc.algorithm)
    second = shared_plan(alone, pair.second_attr, caller, grouped.name_of(alone), {"src": middle})
    second = second or grouped.planned(replace(pair.second, src=middle), pair.second_attr, engine)
    panel = first.tensors["weights"].blocks[0]
    for tensor in (*first.tensors.values(), *second.tensors.values()):
        if tensor.ndims == desc.dst.ndims and panel % tensor.blocks[1] and tensor.dims[1] == desc.dst.dims[1]:
            raise Refused(f"{tensor} has blocks of {tensor.blocks[1]} channels, panels have {panel}")
    return PreparedPair(pair, (first, second), panel, engine)


def shared_plan(
    desc: ConvolutionForward, attr: Attr, engine: Engine, name: str, formats: Mapping[str, MemoryDesc]
) -> Plan | None:
    """The plan that whoever asks for one of the two gets, if it is of that implementation and these formats: where no
    strips are taken, it is what comes next."""
    try:
        plan = first_plan(kind_of(desc).planners, desc, attr, engine).plan
    except Unimplemented:
        return None
    is_it = plan.implementation == f"{name}:{f32_dot_level(engine.isa)}"
    return plan if is_it and all(plan.tensors[role] == tensor for role, tensor in formats.items()) else None


def every_height(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[tuple[str, Plan]]:
    """Candidates: every height of strips."""
    try:
        made = prepared(desc, attr, engine)
    except Refused:
        return
    for rows in dict.fromkeys(heights(made.pair.second.dst.dims[ROWS])):
        try:
            yield f"strips of {rows} rows", made.in_strips(rows)
        except Refused:
            continue
