"""What runs of a network: parts one after another, each of them one native call or nodes that numpy computes.

Imported without planners and primitives, so that a network from a pack is there at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from asmdnn.forking import importing
from asmdnn.memory.allocation import no_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.weights import WeightPieces
from asmdnn.network.cuts import Cuts
from asmdnn.network.limits import COUNTED, Limit, check_count
from asmdnn.network.passing import is_read
from asmdnn.network.states import StateWrite, apart_from
from asmdnn.network.words import Border, with_borders
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import Plan
from asmdnn.records import dataclass, field
from asmdnn.runtime.addresses import address_reader
from asmdnn.runtime.execution import ExecutablePlan, NativeCall

ARENA, WEIGHTS = "arena", "weights"  # the scratch and the tensor that hold everything
INPUT, RESULT = "input ", "result "  # how the names of other tensors begin
PAGE_BYTES = 4096
F32 = np.dtype(np.float32)


def input_name(value: str) -> str:
    """The tensor that a value is passed in: callers' names are none of a plan's own."""
    return INPUT + value


def result_name(value: str) -> str:
    """The tensor that a value is delivered in."""
    return RESULT + value


def tensor_names(reads: Iterable[str], makes: Iterable[str]) -> tuple[str, ...]:
    """In the order in which calls are told where tensors lie."""
    return (*map(input_name, reads), *map(result_name, makes))


def native_array(array: Array) -> Array:
    """An input as kernels read it, dense and aligned, in its type; truths, short words, unsigned ones and f64 as f32.

    No copy if it is that."""
    flags = array.flags
    as_it_is = array.dtype is F32 or is_read(array.dtype)
    if as_it_is and flags.c_contiguous and flags.aligned:
        return array
    with np.errstate(over="ignore"):  # of f64, which are infinite then, as a Cast makes them
        return np.require(array, None if as_it_is else np.float32, ("C", "A"))


class Runner:
    """A plan with its kernels loaded, and its weights.  names: its tensors in the order in which `run` is told where
    they lie; moving: (word of a call, number in that order, offset); placed: (word, address) of weights."""

    def __init__(self, plan: Plan, weights: WeightPieces, program: ExecutablePlan, names: Sequence[str]) -> None:
        self.plan, self.weights, self.program = plan, weights, program
        tensors, position = list(plan.tensors), {name: i for i, name in enumerate(names)}
        self.moving = tuple(
            (slot, position[tensors[i]], offset) for slot, i, offset in program.places if tensors[i] != WEIGHTS
        )
        self.placed = tuple(
            (slot, weights.address(offset)) for slot, i, offset in program.places if tensors[i] == WEIGHTS
        )
        self._idle: list[NativeCall] = []  # whose weights are placed

    def bind(self, addresses: Mapping[str, int], keep: object) -> Callable[[], None]:
        """A call on tensors at these addresses, one for each input and result."""
        return self.call([addresses.get(name, 0) for name in self.plan.tensors], (self, keep))

    def run(self, addresses: Sequence[int]) -> None:
        """Run on tensors at these addresses; all that a small call costs is here, as in ExecutablePlan.run."""
        try:
            call = self._idle.pop()  # atomic: another thread may take the last one
        except IndexError:
            call = self.new_call()
        words = call.words
        for slot, i, offset in self.moving:
            words[slot] = addresses[i] + offset
        if call.is_plain:
            self.program.entry(call.context)
        else:
            call()
        self._idle.append(call)

    def new_call(self) -> NativeCall:
        """One whose weights are placed, and nothing else."""
        return self.call([0] * len(self.plan.tensors), self)

    def call(self, addresses: Sequence[int], keep: object) -> NativeCall:
        """One on tensors at these addresses, in the order of the plan's; those of weights do not count."""
        call = self.program.prepare()
        call.bind(addresses, keep)
        for slot, address in self.placed:
            call.words[slot] = address
        return call


class NetworkPart(Protocol):
    """A piece of a network: it takes values by name, and adds those that it makes.  prepare: what else the first run
    would do before it runs."""

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None: ...
    def prepare(self) -> None: ...


@dataclass(frozen=True, eq=False)
class SegmentInterface:
    """What a native part takes and gives.  reads: values; makes: dims and types of arrays; limits: of reads that are
    integers; checked: of those that it makes, which are looked at after it."""

    reads: tuple[str, ...]
    makes: Mapping[str, tuple[tuple[int, ...], np.dtype[np.generic]]]
    limits: Mapping[str, Limit]
    checked: Mapping[str, Limit]


class NativePart:
    """One native call.  make: loads kernels and packs weights, at the first use, for tensors of these names in this
    order; isa: the level that it needs then."""

    def __init__(self, isa: str, ends: SegmentInterface, make: Callable[[Sequence[str]], Runner]) -> None:
        self.isa, self.ends, self.make = isa, ends, make
        self._runner: Runner | None = None
        self._check_indices: Callable[..., None] | None = None
        if ends.limits or ends.checked:
            with importing():
                from asmdnn.primitives.gather.indices import check_indices

            self._check_indices = check_indices

    @property
    def runner(self) -> Runner:
        """Raises Unimplemented where the CPU lacks the level."""
        if self._runner is None:
            require_executable(self.isa)
            self._runner = self.make(tensor_names(self.ends.reads, self.ends.makes))
        return self._runner

    @property
    def is_ready(self) -> bool:
        """Whether it has been prepared, or has run."""
        return self._runner is not None

    def prepare(self) -> None:
        """Raises Unimplemented where the CPU lacks the level."""
        _ = self.runner

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None:
        if self.ends.limits:
            self.check_indices(values, self.ends.limits)
        makes = self.ends.makes.items()
        if into is None:
            results = {name: np.empty(*made) for name, made in makes}
        else:
            results = {name: into[name] if name in into else np.empty(*made) for name, made in makes}
        arrays = [native_array(values[name]) for name in self.ends.reads]
        arrays += results.values()
        self.runner.run(address_reader()(arrays))
        if self.ends.checked:
            self.check_indices(results, self.ends.checked)
        values |= results

    def bind(self, inputs: Mapping[str, Array], results: Mapping[str, Array]) -> Callable[[], None]:
        """A call on arrays for the values that it reads and makes."""
        addresses = {input_name(name): array.ctypes.data for name, array in inputs.items()}
        addresses |= {result_name(name): array.ctypes.data for name, array in results.items()}
        call = self.runner.bind(addresses, (inputs, results))
        if not self.ends.limits:
            return call

        def checked() -> None:
            self.check_indices(inputs, self.ends.limits)
            call()

        return checked

    def check_indices(self, values: Mapping[str, Array], limits: Mapping[str, Limit]) -> None:
        """Raise InvalidArguments unless all indices among the values are in range."""
        for name, limit in limits.items():
            assert self._check_indices is not None, "made with limits"
            if limit.axis == COUNTED:
                check_count(name, values[name], limit)
            else:
                self._check_indices(name, values[name], *limit)


@dataclass(frozen=True, eq=False)
class Runnable:
    """A network as it runs.  inputs, outputs: (dims, numpy type) by name, (None, None) where data decide dims; results:
    the value after each output, or its data if that is known; states: what else it writes, in place; title: what it is,
    in words; borders: of outputs that callers get as something else; cuts: of those of which callers get what counts.
    """

    title: str
    isa: str
    inputs: Mapping[str, tuple[tuple[int, ...], np.dtype[np.generic]]]
    outputs: Mapping[str, tuple[tuple[int, ...], np.dtype[np.generic]]]
    results: Mapping[str, str | Array]
    parts: tuple[NetworkPart, ...]
    states: tuple[StateWrite, ...] = ()
    borders: Mapping[str, Border] = field(default_factory=dict)
    cuts: Cuts = field(default_factory=dict)

    def types(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Dims and types of outputs as callers get them."""
        cut = {name: (one.dims(self.outputs[name][0]), self.outputs[name][1]) for name, one in self.cuts.items()
               if name in self.outputs}  # fmt: skip
        return with_borders({**self.outputs, **cut}, self.borders)

    @property
    def native(self) -> NativePart | None:
        """The part of a network that has no other."""
        part = self.parts[0] if len(self.parts) == 1 else None
        return part if isinstance(part, NativePart) else None

    @property
    def natives(self) -> tuple[NativePart, ...]:
        """The parts that are native calls."""
        return tuple(part for part in self.parts if isinstance(part, NativePart))

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs for inputs of the right dims and types.  Raises OutOfMemory."""
        values = dict(feeds)
        try:
            for part in self.parts:
                part.run(values)
            return {name: self.output(name, values, feeds) for name in self.outputs}
        except MemoryError as error:
            raise no_memory(error) from None

    def run_in_place(self, feeds: Mapping[str, Array], states: Mapping[str, Array]) -> dict[str, Array]:
        """As `run`, with states that are read, and written.  feeds: of the inputs without them."""
        read = {write.state.name: states[write.state.name] for write in self.states}
        now = {x.state.now: states[x.state.name] for x in self.states if x.state.now}
        values = {**apart_from(states, feeds), **read, **now}
        windows = [(x, x.window(states[x.state.name], values)) for x in self.states]
        into = {x.value: window for x, window in windows if isinstance(x.value, str) and not x.is_late}
        try:
            before = {name: np.array(values[x]) for name, x in self.results.items() if isinstance(x, str) and x in read}
            for part in self.parts:
                part.run(values, into)
            outputs = {x: before[x] if x in before else self.output(x, values, read) for x in self.outputs}
            late = [(x.value, window) for x, window in windows if x.is_late]
            made = [np.array(values[x] if isinstance(x, str) else x) for x, _ in late]
        except MemoryError as error:
            raise no_memory(error) from None
        with np.errstate(all="ignore"):  # integers and truths that kernels have made as f32
            for array, (_, window) in zip(made, late, strict=True):
                window[...] = array
        return outputs

    def output(self, name: str, values: Mapping[str, Array], feeds: Mapping[str, Array]) -> Array:
        """A new array."""
        x, (_, dtype) = self.results[name], self.outputs[name]
        array = values[x] if isinstance(x, str) else x
        if name in self.cuts:
            array = self.cuts[name].part(array, values)
        if dtype is not None and array.dtype != dtype:  # kernels write truths as 1 and 0, integers as f32
            with np.errstate(all="ignore"):
                array = array.astype(dtype)
        return array if isinstance(x, str) and x not in feeds else np.array(array)
