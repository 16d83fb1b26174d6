"""One instruction on given registers and memory, for tests of AVX-512, which this CPU may lack."""

from dataclasses import dataclass, field

import numpy as np
from iced_x86 import Instruction

from asmdnn.emulator.cpu import Cpu
from asmdnn.emulator.machine import CompiledCode, floating_point
from asmdnn.emulator.memory import Array, MemoryRegion, TouchedBytes
from tests.emulator.assembling import assemble
from tests.emulator.forms import MEMORY_BYTES
from tests.emulator.native import mixed_floats

ADDRESS = 0x10_0000
RCX = 1


@dataclass
class State:
    """The registers and the memory, which starts at rcx; `footprint` says which of its bytes were touched."""

    vectors: Array
    k: list[int]
    gpr: list[int]
    memory: Array
    footprint: TouchedBytes = field(default_factory=lambda: TouchedBytes(*np.zeros((2, MEMORY_BYTES), bool)))

    def copy(self) -> "State":
        return State(self.vectors.copy(), list(self.k), list(self.gpr), self.memory.copy())

    def lanes(self, number: int, dtype: type, count: int | None = None) -> Array:
        """The low lanes of a vector register: a view."""
        return self.vectors[number].view(dtype)[:count]


def random_state(rng: np.random.Generator) -> State:
    """Floats of every kind, any mask bits, small integers."""
    vectors = mixed_floats(rng, 32 * 64).reshape(32, 64).copy()
    return State(vectors, rng.integers(0, 1 << 63, 8).tolist(), rng.integers(0, 1 << 63, 16).tolist(),
                 mixed_floats(rng, MEMORY_BYTES).copy())  # fmt: skip


_CPU = Cpu()


def after(instruction: Instruction, state: State) -> State:
    """The state that the instruction leaves."""
    result = state.copy()
    _CPU.reset()
    _CPU.vectors[:], _CPU.k[:], _CPU.gpr[:], _CPU.width[:] = state.vectors, state.k, state.gpr, [64] * 32
    _CPU.gpr[RCX] = ADDRESS
    region = MemoryRegion("memory", ADDRESS, result.memory, True, True)
    _CPU.memory.map([region], {"memory": result.footprint})
    with floating_point(_CPU):
        CompiledCode(_CPU, assemble(instruction)).block(0).steps[0]()
    result.vectors[:], result.k[:], result.gpr[:] = _CPU.vectors, _CPU.k, _CPU.gpr
    result.gpr[RCX] = state.gpr[RCX]
    return result
