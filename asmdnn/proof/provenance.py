"""Rule "provenance": every address comes from the frame, a pointer in it, the constants, or the stack.

What the stack may be used for is the rule "stack"; how far from a pointer an access may go is the rule "footprint".
"""

from typing import Final

from asmdnn.proof.facts import Access
from asmdnn.proof.kernel import PlacedInstruction
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.state import WORD_BYTES, State
from asmdnn.proof.values import CODE, AbstractValue

RULE: Final = "provenance"
IMPLICIT: Final = ("push", "pop", "ret", "call")  # the stack, by rsp, which the rule "stack" follows


def check(machine: Interpreter, step: PlacedInstruction, state: State) -> None:
    """Raise BrokenRule for an access through anything else, or a store into the frame or the code."""
    fact = step.fact
    if fact.is_string:
        raise machine.kernel.broken(RULE, "string instructions touch as much as rcx says, which is not followed", step)
    if fact.mnemonic in IMPLICIT and fact.flow != "indirect call":
        return
    for access, where in machine.touched(state, step):
        if access.reads or access.writes:
            reason = offence(machine, access, where)
            if reason:
                raise machine.kernel.broken(RULE, reason, step)


def offence(machine: Interpreter, access: Access, where: AbstractValue) -> str:
    """What is wrong with the address, or ""."""
    if access.oddity:
        return f"the address {access.oddity}"
    if access.size_bytes == 0:
        return "it touches a number of bytes that the decoder does not know"
    if where.base is None:
        return "the address is a number, which no pointer of the frame is part of"
    kind = where.base.kind
    if kind in ("argument", "indexed", "stack", "aligned"):
        return ""
    if kind == "code":
        return code_offence(machine, access, where)
    if kind == "constants" and where.offset is not None:
        last = where.offset + (where.base.group - 1) * where.base.word
        ends = (AbstractValue(CODE, where.offset), AbstractValue(CODE, last))
        return next(filter(None, (code_offence(machine, access, end) for end in ends)), "")
    if kind == "frame":
        return frame_offence(machine.kernel.contract.arguments, access, where)
    if kind == "entry":
        return "the address comes from a register that holds no argument"
    return "the address mixes pointers, or is of unknown origin"


def code_offence(machine: Interpreter, access: Access, where: AbstractValue) -> str:
    kernel = machine.kernel
    if access.writes:
        return "it stores into its own code"
    end = len(kernel.code.data)
    if where.offset is None or where.offset < kernel.pool_start or where.offset + access.size_bytes > end:
        return f"it reads beside its constants, which are at {kernel.pool_start:#x} to {end:#x}"
    return ""


def frame_offence(arguments: int | None, access: Access, where: AbstractValue) -> str:
    if access.writes:
        return "it stores into the frame"
    if arguments is None:
        return ""
    if where.offset is None or not 0 <= where.offset <= arguments * WORD_BYTES - access.size_bytes:
        return f"it reads beside the frame, which has {arguments} words"
    return ""
