"""An interpreter of generated machine code, for the ISA levels that the machine which runs the tests lacks.

machine = Machine([Region("src", address, array), Region("dst", address2, array2, writable=True)], record=True)
machine.call(code, code_address, frame_address)     # raises Violation, or returns as the kernel does
"""

from .memory import Footprint, Region, Violation

__all__ = ["Footprint", "Machine", "Region", "Violation"]

from .machine import Machine
