"""An interpreter of generated machine code, for the ISA levels that the machine at hand lacks.

    src, dst = MemoryRegion("src", address, array), MemoryRegion("dst", address2, array2, writable=True)
    emulator = Emulator([src, dst], record=True)
    emulator.call(code, code_address, frame_address)     # raises EmulationFault, or returns as the kernel does
    emulator.footprints["dst"].written, emulator.features <= AVX512_CORE.features

Its arithmetic is bitwise that of the CPU, but for the payload of a NaN that has several NaN
operands.  iced-x86, which is optional, decodes.
"""

from asmdnn.emulator.machine import Emulator, PassedArguments, ReturnRegisters
from asmdnn.emulator.memory import EmulationFault, MemoryRegion, TouchedBytes
from asmdnn.emulator.observing import Observer
from asmdnn.emulator.semantics import known_instructions

__all__ = [
    "EmulationFault", "Emulator", "MemoryRegion", "Observer", "PassedArguments", "ReturnRegisters", "TouchedBytes",
    "known_instructions",
]  # fmt: skip
