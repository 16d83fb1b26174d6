"""Numbers of which only a bound is known: AND with a constant, MOVZX of a byte, SHR by a constant make an index small.

A table of 64 letters read at `x & 63` lies within its constants for every x.  Wherever such a number goes through
another instruction it is just a number again.
"""

from typing import Final

from asmdnn.proof.facts import NO_REGISTER, Access, DecodedOperand, Fact
from asmdnn.proof.kernel import PlacedInstruction
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.state import State
from asmdnn.proof.values import JUNK, NUMBER, AbstractValue, below

MOST: Final = 1 << 16  # larger bounds are of no use for tables
KEEP: Final = ("mov", "movzx", "lea", "imul", "cmp", "test")


class BoundedNumbers(Interpreter):
    """An Interpreter that derives bounds."""

    def address(self, state: State, step: PlacedInstruction, access: Access) -> AbstractValue:
        found = super().address(state, step, access)
        if found != JUNK:
            return found
        held = forget(state, (access.base, access.index))
        found = super().address(state, step, access)
        restore(state, held)
        return found

    def result(self, state: State, fact: Fact, step: PlacedInstruction) -> AbstractValue:
        if fact.mnemonic in KEEP or fact.mnemonic.startswith("cmov"):
            found = super().result(state, fact, step)
        else:
            held = forget(state, fact.gp_read)
            found = super().result(state, fact, step)
            restore(state, held)
        bound = bound_of(fact) if found == NUMBER else 0
        return below(bound) if 0 < bound <= MOST else found

    def read(self, state: State, step: PlacedInstruction, operand: DecodedOperand) -> AbstractValue:
        value = state.registers[operand.number] if operand.kind == "gp" else NUMBER
        if is_bounded(value):
            return value if operand.bits >= 32 else NUMBER
        return super().read(state, step, operand)

    def write(self, state: State, step: PlacedInstruction, value: AbstractValue) -> None:
        first = step.fact.operands[0] if step.fact.operands else None
        in_register = first is not None and first.kind == "gp"
        if first is not None and in_register and first.bits < 32:  # a part of the register changes
            forget(state, (first.number,))
        super().write(state, step, value)
        if first is not None and in_register and first.bits == 32 and is_bounded(value):
            state.registers[first.number] = value  # the bound is far below 2^32


def is_bounded(value: AbstractValue) -> bool:
    return value.base is not None and value.base.kind == "below"


def bound_of(fact: Fact) -> int:
    """What the result is below, by the instruction alone; 0 if it may be anything."""
    if len(fact.operands) < 2 or fact.operands[0].kind != "gp" or fact.operands[0].bits < 32:
        return 0
    last = fact.operands[1]
    if fact.mnemonic == "movzx":
        return 1 << (last.bits if last.kind == "gp" else 8 * fact.accesses[0].size_bytes)
    if last.kind != "number":
        return 0
    if fact.mnemonic == "and":
        return last.number + 1
    return 1 << max(fact.operands[0].bits - last.number, 0) if fact.mnemonic == "shr" and last.number > 0 else 0


def forget(state: State, registers: tuple[int, ...]) -> dict[int, AbstractValue]:
    """The registers as plain numbers, where only a bound was known; what they were."""
    held = {}
    for register in registers:
        value = state.registers[register] if register != NO_REGISTER else NUMBER
        if is_bounded(value):
            held[register], state.registers[register] = value, NUMBER
    return held


def restore(state: State, held: dict[int, AbstractValue]) -> None:
    for register, value in held.items():
        state.registers[register] = value
