"""The parts of a network from a file, checked before anything runs: native ones, and nodes that numpy computes.

A native part has its plan as `codec.plan_text` says it, with kernels and arrays as numbers; a part in numpy its nodes
(node_text.py).  A kernel's spec stays text until somebody asks for more than its code.
"""

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from asmdnn.forking import importing
from asmdnn.generators.contract import Footprint
from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.jit.image_file import Image
from asmdnn.jit.kernels import Fetched
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import (
    WEIGHTS,
    NativePart,
    NetworkPart,
    Runnable,
    Runner,
    SegmentInterface,
    input_name,
    result_name,
)
from asmdnn.network.calls.weights import WeightPieces
from asmdnn.network.cuts import check_cuts, cuts_read
from asmdnn.network.joining.arena import ArenaLayout, check_layout, lives_of, placed_plan
from asmdnn.network.joining.joined import JoinedPlan, StateTensors
from asmdnn.network.limits import Limit
from asmdnn.network.narrow.storage import precision_read
from asmdnn.network.packs.kept_stages import KeptPartOfData, MakeStages
from asmdnn.network.packs.pieces import NetworkPieces
from asmdnn.network.packs.saved_states import lies_in, states_read
from asmdnn.network.passing import is_index_type, passed_type, type_named
from asmdnn.planning.codec import decoded, plan_of
from asmdnn.planning.decoded import check_decoded, require
from asmdnn.planning.plan import ALIGNMENT_BYTES, Plan
from asmdnn.records import dataclass
from asmdnn.runtime.execution import ExecutablePlan
from asmdnn.types import s32

if TYPE_CHECKING:
    from asmdnn.isa.assembler import Assembler

LARGEST_SCRATCH_BYTES = 1 << 36
UNKNOWN: Any = (None, None)  # dims and type of what data decide
Types = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]


@dataclass(frozen=True, eq=False)
class SavedKernel:
    """A kernel whose code is there: the contract of generated code, with a spec that is made of `text` when it must."""

    name: str
    isa: str
    text: str

    @property
    def spec(self) -> Any:
        """Raises NotPackable for a text that is none of ours."""
        with importing():
            from asmdnn.primitives.core.registry import kinds

            kinds()  # so that all classes of specs are known
        return decoded(json.loads(self.text))

    @property
    def frame(self) -> tuple[str, ...]:
        frame: tuple[str, ...] = self.spec.frame
        return frame

    def footprint(self) -> Footprint:
        footprint: Footprint = self.spec.footprint()
        return footprint

    def generate(self, asm: "Assembler") -> None:
        self.spec.generate(asm)


@dataclass(frozen=True, eq=False)
class PackedCall:
    """A native part that was planned before.  All is as in CompiledSegment, but that its weights are packed."""

    joined: JoinedPlan
    layout: ArenaLayout
    plan: Plan
    weights: WeightPieces

    def check(self) -> None:
        """Prove what CompiledSegment.check() proves.  Raises PlanError."""
        self.joined.plan.check()
        with importing():
            from asmdnn.network.joining.state_proof import check_states
        check_states(self.joined)
        check_layout(self.joined, self.layout, self.plan)


class PartReader:
    """Reads the parts of an image in order.  there: dims and types of arrays that are there before the next one.
    made: those that kernels make."""

    def __init__(
        self, image: Image, inputs: Types, threads: int, pieces: NetworkPieces, stages: MakeStages | None = None
    ) -> None:
        self._image, self._threads, self._pieces, self._stages, self._inputs = image, threads, pieces, stages, inputs
        self._isa = image.text["isa"]
        self._arrays = [array_at(image.sections["arrays"], *place) for place in image.text["arrays"]]
        self._kernels = [kernel_read(kernel, isa_of(self._isa).features) for kernel in image.text["kernels"]]
        self._codes = [code_at(image.sections["code"], *kernel["code"]) for kernel in image.text["kernels"]]
        self.states = states_read(image.text["states"], self.array, inputs)
        self.there = dict(inputs) | self.states.inputs()
        self.made, self._windows = set[str](), self.states.windows()
        self.natives = list[PackedCall]()

    def array(self, number: Any) -> Array:
        require(type(number) is int and number >= 0, "an array that is none")
        found: Array = self._arrays[number]
        return found

    def part(self, text: dict[str, Any]) -> NetworkPart:
        """Raises anything where the text is nonsense."""
        if "plan" in text:
            return self.native(text)
        if "nodes" in text:
            return self.of_nodes(text)
        if "cuts" in text:
            return self.waiting(text)
        with importing():
            from asmdnn.network.looked_at_first import IntegersAgain  # few networks have parts without kernels

        types = {name: type_named(dtype) for name, dtype in text["integers"].items()}
        self.there |= {name: (self.there[name][0], dtype) for name, dtype in types.items()}
        return IntegersAgain(types)

    def waiting(self, text: dict[str, Any]) -> KeptPartOfData:
        """What data decide."""
        require(self._stages is not None, "data decide dims, and nobody has the model")
        cuts = tuple((tuple(outputs), value) for outputs, value in text["cuts"])
        require(all(type(x) is str for outputs, value in cuts for x in (*outputs, value)) and bool(cuts), "no cuts")
        outputs = declared(text["outputs"])
        results = {name: x if isinstance(x, str) else self.array(x) for name, x in text["results"].items()}
        require(results.keys() == outputs.keys(), "results of other values")
        for name, x in results.items():
            dims = self.there[x][0] if isinstance(x, str) else np.shape(x)
            require(dims == outputs[name][0], f"{name}, which nobody makes in these dims")
        known = cuts_read(text["cut"])
        check_cuts(known, outputs, self.there)
        before = Runnable("", self._isa, self._inputs, outputs, results, (), cuts=known)
        self.there |= dict.fromkeys(text["late"], UNKNOWN)
        precision, stages = precision_read(self._image.text["precision"]), self._stages
        return KeptPartOfData(lambda: stages(precision), cuts, before)  # type: ignore[misc]

    def native(self, text: dict[str, Any]) -> NativePart:
        require(all(type(number) is int and number >= 0 for number in text["kernels"]), "kernels that are none")
        kernels = [self._kernels[number] for number in text["kernels"]]
        weights = self._pieces.weights(self._image, text)
        (*specs, _) = kernels
        own = plan_of(text["plan"], lambda number: integers(self.array(number)), specs)
        check_decoded(own)
        states = tuple(StateTensors(*names) for names in text["states"])
        require(all(isinstance(name, str) for each in states for name in each), "states that are none")
        joined = JoinedPlan(own, (), tuple(text["layout"]["weights"]), states)
        layout = layout_read(own, text["layout"], weights)
        plan = placed_plan(joined, layout)
        known = dict(zip(specs, text["kernels"], strict=False))
        used = [known[spec] for spec in plan.specs]
        fetched = [Fetched(self._kernels[i].name, self._codes[i], "pack") for i in (*used, text["kernels"][-1])]
        threads, pieces = self._threads, self._pieces

        def runner(names: Sequence[str]) -> Runner:
            """names: the tensors beside the weights, in the order of calls."""
            return Runner(plan, weights, ExecutablePlan(plan, threads, loaded=pieces.kernels(fetched)), names)

        ends = self.ends(text, plan)
        self.natives.append(PackedCall(joined, layout, plan, weights))
        self.there |= ends.makes
        self.made |= ends.makes.keys()
        return NativePart(self._isa, ends, runner)

    def ends(self, text: dict[str, Any], plan: Plan) -> SegmentInterface:
        """What it takes and gives, which agrees with the plan's tensors."""
        makes = declared(text["makes"])
        limits, checked = limits_of(text["limits"]), limits_of(text["checked"])
        ends = SegmentInterface(tuple(text["reads"]), makes, limits, checked)
        require(checked.keys() <= makes.keys() and limits.keys() <= {*ends.reads}, "indices that nobody makes")
        indices = {input_name(x) for x in ends.reads if is_index_type(self.there[x][1])}
        passed = {input_name(x): self.there[x] for x in ends.reads} | {result_name(x): makes[x] for x in makes}
        require(plan.tensors.keys() - {WEIGHTS} == passed.keys(), "tensors that nobody passes")
        windows = {result_name(name): window for name, window in self._windows.items()}
        for name, (dims, dtype) in passed.items():
            desc, is_index = plan.tensors[name], name in indices
            room, dtype = windows.get(name, (None, dtype))
            wanted = s32 if is_index else passed_type(dtype)
            size = max(dtype.itemsize, wanted.size_bytes)  # truths are passed as f32
            words = (size // wanted.size_bytes * prod(dims),) if is_index else dims  # some read all of an integer
            fits = desc.dims in ((*dims,) or (1,), words) and desc.dtype is wanted and not desc.inner_blocks
            inside = lies_in(desc, dims, room) if room else desc.size_bytes <= size * prod(dims)
            require(fits and inside, f"{name} is not what is passed")
        return ends

    def of_nodes(self, text: dict[str, Any]) -> NetworkPart:
        with importing():
            from asmdnn.network.calls.numpy_part import NumpyPart
            from asmdnn.network.packs.node_text import known_read, node_read

        known = known_read(text["values"], self.array)
        nodes = [node_read(node, self.array) for node in text["nodes"]]
        for node in nodes:
            for name in filter(None, node.inputs):
                is_there = known[name].data is not None or self.there[name][0] == known[name].shape
                require(is_there, f"{name}, which nobody makes in these dims")
            self.there |= {name: known[name][:2] for name in node.outputs if name in known}
        return NumpyPart(known, nodes)


def kernel_read(text: dict[str, Any], features: frozenset[str]) -> SavedKernel:
    """Of a level with these features."""
    kernel = SavedKernel(text["name"], text["isa"], text["spec"])
    require(all(type(x) is str for x in (kernel.name, kernel.isa, kernel.text)), "no kernels")
    require(kernel.isa == ANY_CPU or isa_of(kernel.isa).features <= features, "kernels of another level")
    return kernel


def limits_of(text: dict[str, Any]) -> dict[str, Limit]:
    """Of integers, by name."""
    for limit in text.values():
        require(isinstance(limit, list) and len(limit) == len(Limit._fields), "limits that are none")
        *numbers, ignored = limit
        is_ignored = ignored is None or type(ignored) is int
        require(is_ignored and all(type(number) is int for number in numbers), "limits that are none")
    return {name: Limit(*limit) for name, limit in text.items()}


def layout_read(plan: Plan, text: dict[str, Any], packed: WeightPieces) -> ArenaLayout:
    """Where values and weights lie, inside of what there is; each weight in a piece."""
    arena, arena_bytes, weights = dict(text["arena"]), text["arena_bytes"], dict(text["weights"])
    lives = lives_of(plan)
    require(arena.keys() == lives.keys() and weights.keys() <= plan.tensors.keys(), "a layout of other values")
    require(type(arena_bytes) is int and arena_bytes <= LARGEST_SCRATCH_BYTES, "no size of the arena")
    for places, room in ((arena, arena_bytes), (weights, packed.size)):
        for name, at in places.items():
            fits = type(at) is int and at >= 0 and at % ALIGNMENT_BYTES == 0 and at + plan.buffer_bytes(name) <= room
            require(fits, f"{name} lies outside")
    require(all(packed.holds(at, plan.buffer_bytes(name)) for name, at in weights.items()), "weights that are cut")
    return ArenaLayout(arena, arena_bytes, lives, weights, packed.size)


def declared_or_late(named: Mapping[str, Any]) -> Types:
    """Of outputs, of some of which data decide dims and types."""
    known = declared({name: said for name, said in named.items() if said is not None})
    return {name: known.get(name, UNKNOWN) for name in named}


def declared(named: Mapping[str, Any]) -> Types:
    return {name: (stored_dims(dims), type_named(dtype)) for name, (dtype, dims) in named.items()}


def stored_dims(dims: Any) -> tuple[int, ...]:
    require(isinstance(dims, list) and all(type(n) is int and n >= 0 for n in dims), "dims that are none")
    return tuple(dims)


def array_at(section: memoryview, dtype: str, dims: list[int], offset: int) -> Array:
    """A read-only array in a section."""
    element, shape = type_named(dtype), stored_dims(dims)
    require(type(offset) is int and offset >= 0, "an array that is none")
    return np.frombuffer(section[offset:], element, prod(shape)).reshape(shape)


def integers(array: Array) -> Array:
    require(array.dtype in (np.int64, np.int32), "an array that is not of int64 or int32")
    return array


def code_at(section: memoryview, offset: int, size: int) -> bytes:
    require(type(offset) is int and type(size) is int and 0 <= offset < offset + size <= len(section), "no code")
    return bytes(section[offset : offset + size])
