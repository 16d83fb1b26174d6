"""What runs of a network: parts one after another, each of them one native call or nodes that numpy computes.

Imported without planners and primitives, so that a network from a pack is there at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from asmdnn.network.graph import Array
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import Plan
from asmdnn.runtime.execution import Program

ARENA, WEIGHTS = "arena", "weights"  # the scratch and the tensor that hold everything
PAGE_BYTES = 4096


def result_name(value: str) -> str:
    """The tensor that a value is delivered in."""
    return f"result {value}"


class Runner:
    """A plan with its kernels loaded, and its weights, u8[weights_bytes]."""

    def __init__(self, plan: Plan, weights: Array, program: Program) -> None:
        self.plan, self.weights, self.program = plan, weights, program

    def bind(self, addresses: Mapping[str, int], keep: object) -> Callable[[], None]:
        """A call on tensors at these addresses, one for each input and result."""
        call = self.program.prepare()
        call.bind(self.in_order(addresses), (self, keep))
        return call

    def run(self, addresses: Mapping[str, int]) -> None:
        """Run on tensors at these addresses."""
        call = self.program.take()
        call.place(self.in_order(addresses), self.program.places)
        call()
        self.program.give(call)

    def in_order(self, addresses: Mapping[str, int]) -> list[int]:
        own = {WEIGHTS: self.weights.ctypes.data}
        return [own[name] if name in own else addresses[name] for name in self.plan.tensors]


class Part(Protocol):
    """A piece of a network: it takes values by name, and adds those that it makes."""

    def run(self, values: dict[str, Array]) -> None: ...


class NativePart:
    """One native call.  reads: values that it takes; makes: dims of those that it gives; all f32.

    make: loads kernels and packs weights, at the first use.  isa: the level that the CPU must have then.
    """

    def __init__(
        self, isa: str, reads: tuple[str, ...], makes: Mapping[str, tuple[int, ...]], make: Callable[[], Runner]
    ) -> None:
        self.isa, self.reads, self.makes, self._make = isa, reads, makes, make
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        """Raises Unimplemented where the CPU lacks the level."""
        if self._runner is None:
            require_executable(self.isa)
            self._runner = self._make()
        return self._runner

    def run(self, values: dict[str, Array]) -> None:
        results = {name: np.empty(dims, np.float32) for name, dims in self.makes.items()}
        taken = {name: np.require(values[name], np.float32, ("C", "A")) for name in self.reads}
        addresses = {name: array.ctypes.data for name, array in taken.items()}
        addresses |= {result_name(name): array.ctypes.data for name, array in results.items()}
        self.runner.run(addresses)
        values |= results

    def bind(self, inputs: Mapping[str, Array], results: Mapping[str, Array]) -> Callable[[], None]:
        """A call on arrays for the values that it reads and makes."""
        addresses = {name: array.ctypes.data for name, array in inputs.items()}
        addresses |= {result_name(name): array.ctypes.data for name, array in results.items()}
        return self.runner.bind(addresses, (inputs, results))


@dataclass(frozen=True, eq=False)
class Runnable:
    """A network as it runs.  inputs, outputs: (dims, numpy type) by name; results: the value behind each output, or
    its data if that is known; title: what it is, in words."""

    title: str
    isa: str
    inputs: Mapping[str, tuple[tuple[int, ...], np.dtype[np.generic]]]
    outputs: Mapping[str, tuple[tuple[int, ...], np.dtype[np.generic]]]
    results: Mapping[str, str | Array]
    parts: tuple[Part, ...]

    @property
    def native(self) -> NativePart | None:
        """The part of a network that has no other."""
        part = self.parts[0] if len(self.parts) == 1 else None
        return part if isinstance(part, NativePart) else None

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs for inputs of the right dims and types."""
        values = dict(feeds)
        for part in self.parts:
            part.run(values)
        own = {name for name in values if name not in feeds}
        return {
            name: values[x] if isinstance(x, str) and x in own else np.array(values[x] if isinstance(x, str) else x)
            for name, x in self.results.items()
        }
