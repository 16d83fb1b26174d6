"""The effect that an instruction has on what is known before it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from asmdnn.proof import tiles
from asmdnn.proof.arithmetic import ARITHMETIC, SHIFTS
from asmdnn.proof.facts import NO_REGISTER, RSP, Access, DecodedOperand, Fact
from asmdnn.proof.flags import Compare, decide
from asmdnn.proof.kernel import Kernel, PlacedInstruction
from asmdnn.proof.state import WORD_BYTES, State
from asmdnn.proof.tiles import NOT_CONFIGURED
from asmdnn.proof.values import (
    ANY_POINTER,
    CODE,
    JUNK,
    NUMBER,
    STACK,
    AbstractValue,
    Base,
    add,
    below,
    multiply,
    number,
    on_stack,
)

CALLER_SAVED: Final = (0, 1, 2, 6, 7, 8, 9, 10, 11)
RAX: Final = 0
MXCSR: Final = AbstractValue(
    Base("mxcsr"), 0
)  # what is in a stack slot that MXCSR was saved to before anybody changed it


class Interpreter:
    """Interprets the instructions of one kernel on States."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def apply(self, state: State, step: PlacedInstruction) -> None:
        """Execute one instruction."""
        fact = step.fact
        if fact.uses_upper:
            state.upper = True
        if fact.inert and not fact.is_special:
            return
        special = SPECIAL.get(fact.mnemonic)
        if special is not None:
            special(self, state, step)
        else:
            self.write(state, step, self.result(state, fact, step))
            state.direction |= fact.changes_direction
        if state.compared in fact.gp_written or (fact.changes_flags and fact.mnemonic != "cmp"):
            state.compared = NO_REGISTER

    def elements(self, state: State, access: Access) -> list[int] | None:
        """Those that a mask chooses; None without one, or where it is not known."""
        return None

    def address(self, state: State, step: PlacedInstruction, access: Access) -> AbstractValue:
        """Where an access goes."""
        if access.in_code:
            return AbstractValue(CODE, step.offset + access.displacement)
        found = number(access.displacement)
        if access.base != NO_REGISTER:
            found = add(state.registers[access.base], found)
        if access.index != NO_REGISTER:
            found = add(found, multiply(state.registers[access.index], number(access.scale)))
        return AbstractValue(found.base, None) if access.scattered else found

    def touched(self, state: State, step: PlacedInstruction) -> Iterator[tuple[Access, AbstractValue]]:
        """Every access and where it goes; of a tile each of its rows.  Raises BrokenRule where these are not known."""
        for access in step.fact.accesses:
            where = self.address(state, step, access)
            if access.tile is None:
                yield access, where
                continue
            rows, row_bytes = tiles.shape_of(self.kernel, step, state.tiles, access.tile.tile)
            of_row = tiles.row_of(access, row_bytes)
            distance = number(0)
            if access.tile.stride != NO_REGISTER:
                distance = multiply(state.registers[access.tile.stride], number(access.tile.scale))
            for row in range(rows):
                yield of_row, add(where, multiply(distance, number(row)))

    def load(self, state: State, where: AbstractValue, size_bytes: int) -> AbstractValue:
        """What a load gives: a pointer from the frame, what a stack slot holds, or some number."""
        if where.base is None or size_bytes != WORD_BYTES:
            return NUMBER
        if where.base.kind == "frame":
            if where.offset is None or where.offset % WORD_BYTES:
                return AbstractValue(Base("argument", ANY_POINTER), None)
            return AbstractValue(Base("argument", where.offset // WORD_BYTES), 0)
        if on_stack(where):
            if where.base != STACK or where.offset is None:
                return JUNK
            return state.slots.get(where.offset, JUNK)
        return NUMBER

    def store(self, state: State, where: AbstractValue, size_bytes: int, value: AbstractValue | None) -> None:
        """Remember a word on the stack, forget what is overwritten."""
        lower = on_stack(where)
        if not lower:
            return
        if where.offset is None:
            state.slots.clear()
            return
        begin = where.offset
        if lower > 1:
            begin, size_bytes, value = begin - lower + 1, size_bytes + lower - 1, None
        for at in [at for at in state.slots if at < begin + size_bytes and begin < at + WORD_BYTES]:
            del state.slots[at]
        if value is not None:
            state.slots[begin] = value

    def result(self, state: State, fact: Fact, step: PlacedInstruction) -> AbstractValue:
        """What the first operand becomes; notes what the flags tell then."""
        values = [self.read(state, step, operand) for operand in fact.operands]
        known = ARITHMETIC.get(fact.mnemonic)
        if known is None:
            value = JUNK if any(state.registers[register].base for register in fact.gp_read) else NUMBER
        elif fact.mnemonic == "lea":
            value = self.address(state, step, fact.accesses[0])
        elif fact.mnemonic in ("xor", "sub") and fact.operands[0] == fact.operands[1]:
            value = number(0)  # whatever the register holds
        elif fact.mnemonic in SHIFTS and fact.operands[0].bits != 64:
            value = NUMBER if values[0].base is None else JUNK
        else:
            value = known(values)
        if fact.mnemonic.startswith("cmov"):
            value = moved_if(state, fact, values) or value
        if fact.mnemonic == "and" and value == NUMBER and is_word(fact) and fact.operands[1].kind == "number":
            most = fact.operands[1].number
            value = below(most + 1) if most >= 0 else NUMBER
        if fact.changes_flags:
            state.compare = compared(fact, values, value) if known is not None else None
            state.compared = fact.operands[0].number if fact.mnemonic == "cmp" and is_word(fact) else NO_REGISTER
        return value

    def read(self, state: State, step: PlacedInstruction, operand: DecodedOperand) -> AbstractValue:
        if operand.kind == "gp":
            return narrowed(state.registers[operand.number], operand.bits)
        if operand.kind == "number":
            return number(operand.number)
        if operand.kind == "memory" and step.fact.accesses:
            access = step.fact.accesses[0]
            return self.load(state, self.address(state, step, access), access.size_bytes)
        return NUMBER

    def write(self, state: State, step: PlacedInstruction, value: AbstractValue) -> None:
        """`value` goes to the first operand; of whatever else changes, nothing is known."""
        fact = step.fact
        first = fact.operands[0] if fact.operands else None
        for access, where in self.touched(state, step):  # before the registers, from which the address comes
            if access.writes:
                is_word = fact.mnemonic in ("mov", "add", "sub") and access.size_bytes == WORD_BYTES
                self.store(state, where, access.size_bytes, value if is_word else None)
        for register in fact.gp_written:
            if first is None or first.kind != "gp" or first.number != register:
                state.registers[register] = JUNK
            elif first.bits >= 32:
                state.registers[register] = narrowed(value, first.bits)
            else:
                state.registers[register] = JUNK if state.registers[register].base else NUMBER


def narrowed(value: AbstractValue, bits: int) -> AbstractValue:
    """The low bits as an unsigned number; those of a pointer are worth nothing."""
    if bits == 64:
        return value
    if value.base is not None:
        return JUNK
    return NUMBER if value.offset is None else number(value.offset & (1 << bits) - 1)


def compared(fact: Fact, values: Sequence[AbstractValue], result: AbstractValue) -> Compare | None:
    """What the flags tell after one of the instructions that ARITHMETIC knows."""
    bits = fact.operands[0].bits
    if fact.mnemonic in ("sub", "cmp"):
        a, b = (narrowed(value, bits) for value in values)
        return ("difference" if bits == 64 else "unsigned", a, b)
    if fact.mnemonic == "imul" or fact.mnemonic in SHIFTS:
        return None  # its zero flag is undefined; or the flags stay when the count is 0
    return "result", narrowed(result, bits), NUMBER


def is_word(fact: Fact) -> bool:
    """Whether the first operand is a whole register."""
    return fact.operands[0].kind == "gp" and fact.operands[0].bits == 64


def moved_if(state: State, fact: Fact, values: Sequence[AbstractValue]) -> AbstractValue | None:
    """What CMOVcc makes, if the flags are known or bound it; else None."""
    taken = decide("j" + fact.mnemonic.removeprefix("cmov"), state)
    if taken is not None:
        return narrowed(values[1 if taken else 0], fact.operands[0].bits)
    return bounded(state, fact, values) if fact.mnemonic == "cmovae" else None


def bounded(state: State, fact: Fact, values: Sequence[AbstractValue]) -> AbstractValue | None:
    """What CMOVAE makes of a number that was just compared with a bound, where it is not below: a smaller one."""
    _, _, bound = state.compare or ("", NUMBER, NUMBER)
    known = bound.base is None and bound.offset is not None and bound.offset > 0 and values[1].base is None
    if not known or not is_word(fact) or state.compared != fact.operands[0].number or values[0].base is not None:
        return None
    assert bound.offset is not None
    other = values[1].offset
    return below(bound.offset) if other is not None and 0 <= other < bound.offset else None


def _push(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    value = machine.read(state, step, step.fact.operands[0])
    state.registers[RSP] = add(state.registers[RSP], number(-WORD_BYTES))
    machine.store(state, state.registers[RSP], WORD_BYTES, value)


def _pop(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    value = machine.load(state, state.registers[RSP], WORD_BYTES)
    state.registers[RSP] = add(state.registers[RSP], number(WORD_BYTES))
    target = step.fact.operands[0]
    if target.kind == "gp":
        state.registers[target.number] = value if target.bits == 64 else JUNK


def _call(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    """The callee keeps what the ABI says, and everything above its return address."""
    top = state.registers[RSP].offset
    state.slots = {at: value for at, value in state.slots.items() if top is not None and at >= top}
    for register in CALLER_SAVED:
        state.registers[register] = JUNK
    state.registers[RAX] = NUMBER
    state.compare = None
    state.in_flight |= step.fact.calls_kernel


def _ldmxcsr(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    where = machine.address(state, step, step.fact.accesses[0])
    saved = state.slots.get(where.offset) if where.base == STACK and where.offset is not None else None
    state.mxcsr = saved != MXCSR


def _stmxcsr(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    where = machine.address(state, step, step.fact.accesses[0])
    machine.store(state, where, 4, None if state.mxcsr else MXCSR)


def _ldtilecfg(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    where = machine.address(state, step, step.fact.accesses[0])
    state.tiles = frozenset((tiles.constant_config(machine.kernel, step, where),))


def _tilerelease(machine: Interpreter, state: State, step: PlacedInstruction) -> None:
    state.tiles = frozenset((NOT_CONFIGURED,))


def _set(field: str, value: bool) -> "Callable[[Interpreter, State, PlacedInstruction], None]":
    return lambda machine, state, step: setattr(state, field, value)


SPECIAL: Final[dict[str, Callable[[Interpreter, State, PlacedInstruction], None]]] = {
    "push": _push, "pop": _pop, "call": _call,
    "ldmxcsr": _ldmxcsr, "vldmxcsr": _ldmxcsr, "stmxcsr": _stmxcsr, "vstmxcsr": _stmxcsr,
    "fxrstor": _set("mxcsr", True), "fxrstor64": _set("mxcsr", True), "xrstor": _set("mxcsr", True),
    "xrstor64": _set("mxcsr", True),
    "std": _set("direction", True), "cld": _set("direction", False),
    "vzeroupper": _set("upper", False), "vzeroall": _set("upper", False),
    "ldtilecfg": _ldtilecfg, "tilerelease": _tilerelease,
    "sfence": _set("in_flight", False), "mfence": _set("in_flight", False),
}  # fmt: skip
