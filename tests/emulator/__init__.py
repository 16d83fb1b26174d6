"""An interpreter of generated machine code, for the ISA levels that the machine which runs the tests lacks.

    machine = Machine([Region("src", address, array), Region("dst", address2, array2, writable=True)], record=True)
    machine.call(code, code_address, frame_address)     # raises Violation, or returns as the kernel does
    machine.footprints["dst"].written, machine.features <= AVX512_CORE.features

Its arithmetic is bitwise that of the CPU, but for the payload of a NaN that has several NaN operands.
"""

from .machine import Machine
from .memory import Footprint, Region, Violation

__all__ = ["Footprint", "Machine", "Region", "Violation"]
