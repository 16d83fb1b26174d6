"""Both convolutions one after the other, what is between them in scratch: any two, by their own implementations."""

from collections.abc import Mapping, Sequence

from asmdnn.isa.dot import f32_dot_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.convolution.pairs.pair import MIDDLE, Pair
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Planner, plan_of
from asmdnn.records import replace


def in_phases(pair: Pair, engine: Engine, planners: Sequence[Planner[ConvolutionForward]]) -> Plan:
    """The plan of both.  Raises Refused."""
    first = plan_of(planners, pair.first, engine, pair.first_attr)
    second = plan_of(planners, replace(pair.second, src=first.tensors["dst"]), engine, pair.second_attr)
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(first, {"dst": View(MIDDLE)})
    add_second(assembly, second, pair.names)
    assembly.scratch[MIDDLE] = first.tensors["dst"].size_bytes
    tensors = {**first.tensors, **tensors_of(second, pair.names)}
    isa = f32_dot_level(engine.isa)
    words = "+".join(plan.implementation.partition(":")[0] for plan in (first, second))
    return assembly.plan(f"{words}:{isa}", tensors, ("dst",))


def add_second(assembly: Assembly, plan: Plan, names: Mapping[str, str]) -> None:
    """The plan after the first one's, with its own scratch and constants under names of their own."""
    own = {name: f"{name} of the second" for name in (*plan.scratch_bytes, *plan.constants)}
    places = {**own, **names, "src": MIDDLE}
    assembly.add([phase.on({name: View(place) for name, place in places.items()}) for phase in plan.phases])
    assembly.scratch |= {own[name]: size for name, size in plan.scratch_bytes.items()}
    assembly.constants |= {own[name]: values for name, values in plan.constants.items()}
    assembly.per_part += tuple(own[name] for name in plan.per_part)


def tensors_of(second: Plan, names: Mapping[str, str]) -> dict[str, MemoryDesc]:
    """Those of the second convolution under the pair's names, dst too."""
    return {names.get(name, name): desc for name, desc in second.tensors.items() if name != "src"}
