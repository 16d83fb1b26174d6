"""A network from a file: plan, kernels and weights where they lie in it, checked before anything runs.

The text has the plan as `codec.plan_text` says it, with kernels and arrays as numbers; sections have the code of the
kernels, the arrays, and the weights.  A kernel's spec stays text until somebody asks for more than its code.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asmdnn.forking import importing
from asmdnn.generators.contract import Footprint
from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.jit.digests import digest_of
from asmdnn.jit.image_file import Image, refusal
from asmdnn.jit.kernels import Fetched
from asmdnn.network.arena import ArenaLayout, check_layout, lives_of, placed_plan
from asmdnn.network.arrays import Array
from asmdnn.network.joined import JoinedPlan
from asmdnn.network.limits import Limit
from asmdnn.network.passing import passed_type, type_named
from asmdnn.network.pieces import EACH_ITS_OWN, NetworkPieces
from asmdnn.network.running import WEIGHTS, NativePart, Runnable, Runner, SegmentInterface, result_name
from asmdnn.network.storage import Precision, precision_read
from asmdnn.network.words import borders_of
from asmdnn.planning.codec import decoded, plan_of
from asmdnn.planning.decoded import check_decoded, require
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import ALIGNMENT_BYTES, Plan
from asmdnn.records import dataclass
from asmdnn.runtime.execution import ExecutablePlan
from asmdnn.types import s32
from asmdnn.version import __version__

if TYPE_CHECKING:
    from asmdnn.isa.assembler import Assembler

LARGEST_SCRATCH_BYTES = 1 << 36
WALKING = (  # the sources that what is in a file depends on beside its own code: who reads it, and what walks the plan
    "generators/context.py", "generators/executor.py", "network/arena.py", "network/running.py", "network/saved.py",
    "network/words.py",
    "planning/codec.py", "planning/phase.py", "planning/phases.py", "planning/splitting.py", "runtime/context.py",
    "runtime/buffers.py", "runtime/execution.py",
)  # fmt: skip


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
class PackedNetwork:
    """A network that was planned before; `explanation` is what it said of itself then.  joined, layout, plan: as in
    Compiled; weights: u8[weights_bytes]; precision: what it was planned with, after calibration."""

    runnable: Runnable
    joined: JoinedPlan
    layout: ArenaLayout
    plan: Plan
    explanation: str
    image: Image
    weights: Array
    precision: Precision

    @property
    def kept_bytes(self) -> int:
        """Of its schedules."""
        return len(self.image.sections["arrays"])

    def check(self) -> None:
        """Prove what Compiled.check() proves.  Raises PlanError."""
        self.joined.plan.check()
        check_layout(self.joined, self.layout, self.plan)

    def explain(self) -> str:
        return self.explanation


@cache
def versions() -> dict[str, str]:
    """What must be equal in the process that saves and the one that loads."""
    package = Path(__file__).resolve().parents[1]
    return {"asmdnn": __version__, "sources": digest_of(package / name for name in WALKING)}


def saved(image: Image, name: str, threads: int, pieces: NetworkPieces = EACH_ITS_OWN) -> PackedNetwork:
    """The network in an intact image of that name, for so many threads.

    Raises InvalidArguments for another version and for what makes no sense, Unimplemented for a level that this CPU
    lacks.
    """
    check_versions(image, name)
    try:
        found = read(image, threads, pieces)
    except Exception as error:  # nonsense makes any constructor fail in any way
        raise refusal(name, f"makes no sense ({type(error).__name__}: {error})", "make it again") from None
    require_executable(found.runnable.isa)
    return found


def check_versions(image: Image, name: str) -> None:
    """Raise InvalidArguments unless this version wrote it."""
    for key, mine in versions().items():
        theirs = image.text.get(key)
        if theirs != mine:
            was = f"was made with {key} {str(theirs)[:12]}, this is {mine[:12]}"
            raise refusal(name, was, "make it again with this version")


def read(image: Image, threads: int, pieces: NetworkPieces = EACH_ITS_OWN) -> PackedNetwork:
    """Raises anything where the text is nonsense."""
    text, weights = image.text, np.frombuffer(pieces.weights(image), np.uint8)
    arrays = [array_at(image.sections["arrays"], *place) for place in text["arrays"]]
    kernels = [SavedKernel(kernel["name"], kernel["isa"], kernel["spec"]) for kernel in text["kernels"]]
    require(all(type(x) is str for kernel in kernels for x in (kernel.name, kernel.isa, kernel.text)), "no kernels")
    features = isa_of(text["isa"]).features
    levels = {kernel.isa for kernel in kernels} - {ANY_CPU}
    require(all(isa_of(level).features <= features for level in levels), "kernels of another level")
    (*specs, _) = kernels
    own = plan_of(text["plan"], lambda number: integers(arrays[number]), specs)
    check_decoded(own)
    joined = JoinedPlan(own, (), tuple(text["layout"]["weights"]))
    layout = layout_read(own, text["layout"], len(weights))
    plan = placed_plan(joined, layout)
    codes = [code_at(image.sections["code"], *kernel["code"]) for kernel in text["kernels"]]
    known = {spec: i for i, spec in enumerate(specs)}
    used = [known[spec] for spec in plan.specs]  # type: ignore[index]
    fetched = [Fetched(kernels[i].name, codes[i], "pack") for i in (*used, -1)]

    def runner(names: Sequence[str]) -> Runner:
        """names: the tensors beside the weights, in the order of calls."""
        return Runner(plan, weights, ExecutablePlan(plan, threads, loaded=pieces.kernels(fetched)), names)

    runnable = runnable_of(text, plan, arrays, runner)
    require(type(text["explanation"]) is str and type(text["weights"]) is str, "no explanation")
    precision = precision_read(text["precision"])
    return PackedNetwork(
        runnable, joined, layout, plan, text["explanation"], image=image, weights=weights, precision=precision
    )


def runnable_of(text: dict[str, Any], plan: Plan, arrays: list[Array], make: Any) -> Runnable:
    """Inputs, outputs and the one part, which agree with the plan's tensors."""
    inputs, outputs = declared(text["inputs"]), declared(text["outputs"])
    makes = declared(text["makes"])
    limits, checked = limits_of(text["limits"]), limits_of(text["checked"])
    require(checked.keys() <= makes.keys(), "indices that nobody makes")
    ends = SegmentInterface(tuple(text["reads"]), makes, limits, checked)
    passed = {**{name: inputs[name] for name in ends.reads}, **{result_name(x): makes[x] for x in makes}}
    require(plan.tensors.keys() - {WEIGHTS} == passed.keys(), "tensors that nobody passes")
    for name, (dims, dtype) in passed.items():
        desc, is_index = plan.tensors[name], name in limits
        wanted = s32 if is_index else passed_type(dtype)
        fits = desc.dims == (dims or (1,)) and desc.dtype is wanted and not desc.inner_blocks
        size = max(dtype.itemsize, wanted.size_bytes)  # truths are passed as f32
        fits = fits and (dtype.kind == "i" or not is_index)
        require(fits and desc.size_bytes <= size * prod(dims), f"{name} is not what is passed")
    results = {name: x if isinstance(x, str) else arrays[x] for name, x in text["results"].items()}
    for name, result in results.items():
        there = {**inputs, **makes}
        dims = there[result][0] if isinstance(result, str) and result in there else np.shape(result)
        known = not isinstance(result, str) or result in there
        require(known and dims == outputs[name][0], f"output {name} is not made")
    require(results.keys() == outputs.keys() and type(text["title"]) is str, "no results")
    part = NativePart(text["isa"], ends, make)
    borders = borders_of(text["borders"])
    require(borders.keys() <= outputs.keys(), "borders of no outputs")
    return Runnable(text["title"], text["isa"], inputs, outputs, results=results, parts=(part,), borders=borders)


def limits_of(text: dict[str, Any]) -> dict[str, Limit]:
    """Of integers, by name."""
    for limit in text.values():
        require(isinstance(limit, list) and [*map(type, limit)] == [int] * 3, "limits that are none")
    return {name: Limit(*limit) for name, limit in text.items()}


def layout_read(plan: Plan, text: dict[str, Any], weights_bytes: int) -> ArenaLayout:
    """Where values and weights lie, inside of what there is."""
    arena, arena_bytes, weights = dict(text["arena"]), text["arena_bytes"], dict(text["weights"])
    lives = lives_of(plan)
    require(arena.keys() == lives.keys() and weights.keys() <= plan.tensors.keys(), "a layout of other values")
    require(type(arena_bytes) is int and arena_bytes <= LARGEST_SCRATCH_BYTES, "no size of the arena")
    for places, room in ((arena, arena_bytes), (weights, weights_bytes)):
        for name, at in places.items():
            fits = type(at) is int and at >= 0 and at % ALIGNMENT_BYTES == 0 and at + plan.buffer_bytes(name) <= room
            require(fits, f"{name} lies outside")
    return ArenaLayout(arena, arena_bytes, lives, weights, weights_bytes)


def declared(named: Mapping[str, Any]) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    return {name: (dims_of(dims), type_named(dtype)) for name, (dtype, dims) in named.items()}


def dims_of(dims: Any) -> tuple[int, ...]:
    require(isinstance(dims, list) and all(type(n) is int and n >= 0 for n in dims), "dims that are none")
    return tuple(dims)


def array_at(section: memoryview, dtype: str, dims: list[int], offset: int) -> Array:
    """A read-only array in a section."""
    element, shape = type_named(dtype), dims_of(dims)
    require(type(offset) is int and offset >= 0, "an array that is none")
    return np.frombuffer(section[offset:], element, prod(shape)).reshape(shape)


def integers(array: Array) -> Array:
    require(array.dtype in (np.int64, np.int32), "an array that is not of int64 or int32")
    return array


def code_at(section: memoryview, offset: int, size: int) -> bytes:
    require(type(offset) is int and type(size) is int and 0 <= offset < offset + size <= len(section), "no code")
    return bytes(section[offset : offset + size])
