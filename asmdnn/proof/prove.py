"""All rules over one kernel, in an order in which each may rely on the ones before."""

from asmdnn.proof import assignment, control_flow, cpu_state, features, footprint, listing, provenance, saved_registers
from asmdnn.proof.dataflow import states
from asmdnn.proof.kernel import Kernel
from asmdnn.proof.machine import Interpreter


def prove(kernel: Kernel) -> int:
    """Raise BrokenRule for the first rule that the kernel breaks; how many accesses have only their argument proved."""
    listing.check(kernel)
    features.check(kernel)
    control_flow.check(kernel)
    machine, restoring = Interpreter(kernel), set[int]()
    for step, state in states(machine):
        if not step.fact.inert:
            saved_registers.check(machine, step, state)
            provenance.check(machine, step, state)
            cpu_state.check(machine, step, state)
            if assignment.restores(machine, step, state):
                restoring.add(step.offset)
    assignment.check(kernel, restoring)
    return footprint.check(kernel)
