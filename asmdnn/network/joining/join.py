"""Steps as one plan: their phases one after another, on buffers that they share by name.

In this plan every value, weight and scratch buffer is a buffer of its own, so that `Plan.check()` proves of the whole
network what it proves of a primitive: bounds, order of writing and reading, barriers.  arena.py then lets buffers that
are not alive together share memory.
"""

from collections.abc import Mapping, Sequence

from asmdnn.memory import MemoryDesc
from asmdnn.network.calls.running import input_name
from asmdnn.network.descriptors import input_desc, row_major, words_desc
from asmdnn.network.joining.barriers import StepWork, in_order
from asmdnn.network.joining.buffers import CONSTANT, SCRATCH
from asmdnn.network.joining.joined import JoinedPlan
from asmdnn.network.joining.place import Place
from asmdnn.network.joining.state_order import StepGraph, check_order, may_write, memory_of, state_tensors
from asmdnn.network.passing import passed_type
from asmdnn.network.step_list import NetworkStep
from asmdnn.network.steps import Steps
from asmdnn.planning.assembly import nothing
from asmdnn.planning.phase import Int64, Phase, View
from asmdnn.planning.plan import Plan
from asmdnn.records import altered

ROOM_SHARE = 8  # of L2: what steps that were brought side by side write; with all of it GoogLeNet took 8% longer
ALONE_CYCLES = 1_800  # a step below this costs one thread less than a barrier costs two (0.28 us, and half the work)


def join(steps: Steps, outputs: Mapping[str, str]) -> JoinedPlan:
    """One plan of all steps; outputs: the caller's names of results, and the values after them."""
    renamed = deliver(steps, outputs) | {name: input_name(name) for name in steps.graph.inputs}
    states = state_tensors({name: steps.windows[value] for name, value in outputs.items() if value in steps.windows})
    memory = memory_of(states)
    works = [work_of(steps, step, renamed, memory) for step in steps.steps]
    ordered = in_order(works, steps.engine.l2_bytes // ROOM_SHARE, states)
    steps.steps = [work.step for work, _ in ordered]
    phases, constants, scratch = list[Phase](), Constants(), dict[str, int]()
    per_part: list[str] = []
    for number, (work, own_phases) in enumerate(ordered):
        plan, places = work.step.pd.plan, dict(work.views)
        for name in plan.scratch_bytes:
            own = f"{SCRATCH}{name} of step {number}"
            places[name], scratch[own] = View(own), plan.scratch_bytes[name]
            per_part += [own] * (name in plan.per_part)
        places |= {name: View(constants.name(array)) for name, array in plan.constants.items()}
        phases += [phase.on(places) for phase in own_phases]
    tensors = tensors_of(steps, outputs)
    buffers = steps.memory
    scratch |= {name: size for name, size in buffers.sizes.items() if name not in renamed and name not in buffers.parts}
    joined = tuple(phases) or (nothing(1),)
    plan = Plan("network", joined, tensors, constants.arrays, scratch, tuple(outputs), per_part=tuple(per_part))
    return JoinedPlan(plan, tuple(work.views for work, _ in ordered), tuple(buffers.weights), states)


def work_of(steps: Steps, step: NetworkStep, renamed: Mapping[str, str], memory: Mapping[str, str]) -> StepWork:
    """The step where its values have got their places."""
    views = {argument: known(steps.memory.located(name), renamed) for argument, name in step.buffers.items()}
    return StepWork(step, alone_if_small(step.pd.plan), views, memory)


def deliver(steps: Steps, outputs: Mapping[str, str]) -> dict[str, str]:
    """Have each output in row-major order in a buffer of its own: what is made so is renamed, the rest copied.

    Those that are written to states come last, when all steps that read these are known."""
    renamed: dict[str, str] = {}
    for name, value in outputs.items():
        if value in steps.windows:
            continue
        place, wanted = steps.integers.made.get(value) or steps.kept(value), delivered(steps, value)
        if place.buffer not in renamed and steps.memory.owns(place) and place.desc == wanted:
            renamed[place.buffer] = name
        else:
            steps.reorder(place, Place(name, wanted), value)
    write_states(steps, {name: value for name, value in outputs.items() if value in steps.windows}, renamed)
    return renamed


def write_states(steps: Steps, outputs: Mapping[str, str], renamed: dict[str, str]) -> None:
    """Have values lie in their states, or copy them there.  Raises InvalidArguments where no order is right."""
    if not outputs:
        return
    graph = StepGraph(steps)
    for name, value in outputs.items():
        window, place = steps.windows[value], steps.place(value)
        graph.add_steps()
        owned = place.buffer not in renamed and steps.memory.owns(place) and place.desc == window.desc
        if owned and may_write(graph, place.buffer, window):
            renamed[place.buffer] = name
            graph.write(place.buffer, window)
            continue
        if place.buffer in steps.graph.inputs:  # a state, perhaps, that is written before this copy
            plain = row_major(place.desc.dims)
            inner = Place(steps.memory.add(f"{value} kept", plain), plain)
            steps.reorder(place, inner, value)
            place = inner
        steps.reorder(place, Place(name, window.desc), value)
        graph.add_steps()
        graph.write(name, window)
    check_order(graph)


def known(view: View, renamed: Mapping[str, str]) -> View:
    """The view under its buffer's last name."""
    return view._replace(buffer=renamed[view.buffer]) if view.buffer in renamed else view


def tensors_of(steps: Steps, outputs: Mapping[str, str]) -> dict[str, MemoryDesc]:
    """What is passed: inputs, outputs, weights."""
    whole = steps.integers.whole
    inputs = {input_name(x): (words_desc if x in whole else input_desc)(steps.value(x)) for x in steps.graph.inputs}
    weights = {name: weight.desc for name, weight in steps.memory.settled_weights.items()}
    made = {name: steps.windows[value].desc if value in steps.windows else delivered(steps, value)
            for name, value in outputs.items()}  # fmt: skip
    return {**inputs, **weights, **made}


def delivered(steps: Steps, value: str) -> MemoryDesc:
    """How a result lies in memory."""
    return row_major(steps.shape(value), passed_type(steps.value(value).dtype))


def alone_if_small(plan: Plan) -> Sequence[Phase]:
    """The phases of a small step on one thread: it then waits only before a step that threads share."""
    if plan.cycles > ALONE_CYCLES:
        return plan.phases
    return [phase if phase.alone else altered(phase, alone=True) for phase in plan.phases]


class Constants:
    """Arrays, each content once."""

    def __init__(self) -> None:
        self.arrays: dict[str, Int64] = {}
        self._known: dict[bytes, str] = {}

    def name(self, array: Int64) -> str:
        """The name under which it is kept."""
        name = self._known.setdefault(array.tobytes(), f"{CONSTANT}{len(self.arrays)}")
        self.arrays.setdefault(name, array)
        return name
