"""All rules over one kernel, in an order in which each may rely on the ones before."""

from collections.abc import Iterable

from asmdnn.generators.contract import Spec
from asmdnn.proof import (
    assignment,
    control_flow,
    cpu_state,
    features,
    footprint,
    listing,
    provenance,
    saved_registers,
    stack_reads,
)
from asmdnn.proof.contracts import contract_of
from asmdnn.proof.dataflow import states
from asmdnn.proof.kernel import Kernel
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.stack_bytes import StackUse, stack_use


def prove(kernel: Kernel) -> int:
    """Raise BrokenRule for the first rule that the kernel breaks; how many accesses have only their argument proved."""
    listing.check(kernel)
    features.check(kernel)
    control_flow.check(kernel)
    machine, restoring, stack = Interpreter(kernel), set[int](), dict[int, StackUse]()
    is_walked = kernel.contract.footprint is not None
    for step, state in states(machine):
        if not step.fact.inert:
            saved_registers.check(machine, step, state)
            provenance.check(machine, step, state)
            cpu_state.check(machine, step, state)
            if assignment.restores(machine, step, state):
                restoring.add(step.offset)
            if not is_walked and (use := stack_use(machine, step, state)):
                stack[step.offset] = use
    assignment.check(kernel, restoring)
    if not is_walked:
        stack_reads.check(kernel, stack)
    return footprint.check(kernel)


def prove_words(kernel: Kernel, others: Iterable[Spec]) -> int:
    """Raise BrokenRule unless the code of a kernel that is proved keeps to the footprints of specs that generate the
    same one, for other numbers that it reads; of how many accesses just the argument is proved.

    No other rule depends on these numbers.
    """
    return sum(footprint.check(kernel.held_to(other.name, contract_of(other))) for other in others)
