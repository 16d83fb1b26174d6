"""Rules "callee-saved" and "stack": registers and rsp are back at every RET; the stack is used as the ABI allows."""

from typing import Final

from asmdnn.proof.facts import RSP, Access
from asmdnn.proof.kernel import Kernel, PlacedInstruction
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.state import State
from asmdnn.proof.values import STACK, AbstractValue, at_entry, on_stack

RULE, STACK_RULE = "callee-saved", "stack"
RED_ZONE_BYTES: Final = 128
CALL_ALIGNMENT_BYTES: Final = 16
RETURN_ADDRESS_BYTES: Final = 8  # on the stack at the call, where rsp was a multiple of 16 before
SAVED: Final = {3: "rbx", 5: "rbp", 12: "r12", 13: "r13", 14: "r14", 15: "r15"}


def check(machine: Interpreter, step: PlacedInstruction, state: State) -> None:
    """Raise BrokenRule if this instruction, run in this state, breaks one of the rules."""
    kernel, top = machine.kernel, state.registers[RSP]
    if top.base != STACK or top.offset is None:
        raise kernel.broken(STACK_RULE, "rsp is not a known distance from what it was at the call", step)
    if step.fact.flow == "return":
        check_return(kernel, step, state, top)
        return
    if step.fact.flow == "indirect call" and (top.offset - RETURN_ADDRESS_BYTES) % CALL_ALIGNMENT_BYTES:
        raise kernel.broken(STACK_RULE, f"rsp is {-top.offset} bytes below its start at a call, not 16-aligned", step)
    for access, where in machine.touched(state, step):
        if on_stack(where) and (access.reads or access.writes) and step.fact.flow == "next":
            if where.offset is None and not access.writes and kernel.contract.footprint is not None:
                continue  # the walk, which the rule "footprint" needs, knows where
            check_access(kernel, step, where, access, top.offset)


def check_return(kernel: Kernel, step: PlacedInstruction, state: State, top: AbstractValue) -> None:
    if top.offset != 0:
        raise kernel.broken(STACK_RULE, f"rsp is {top.offset:+} bytes from where it was at the call", step)
    for register, name in SAVED.items():
        if state.registers[register] != at_entry(register):
            raise kernel.broken(RULE, f"{name} is not what it was at the call", step)


def check_access(kernel: Kernel, step: PlacedInstruction, where: AbstractValue, access: Access, top: int) -> None:
    """Between the red zone's end and the return address; or a read of an argument after that."""
    if where.offset is None:
        raise kernel.broken(STACK_RULE, "it touches an unknown place of the stack", step)
    if (lowest := where.offset - on_stack(where) + 1) < top - RED_ZONE_BYTES:
        raise kernel.broken(STACK_RULE, f"{top - lowest} bytes below rsp, beyond the red zone", step)
    words = len(kernel.contract.entry.stack) if kernel.contract.entry else 0
    is_argument = RETURN_ADDRESS_BYTES <= where.offset <= RETURN_ADDRESS_BYTES * (words + 1) - access.size_bytes
    if where.offset + access.size_bytes > 0 and (access.writes or not is_argument):
        raise kernel.broken(STACK_RULE, "it touches the return address or the caller's frame", step)
