"""Names for a listing: what each register is taken for, what value it holds, and what lies after a memory operand.

A register's *place* is what it was taken for, with its index: `acc[3][1]`.  Its *value* is the name of what was copied
into it last, for as long as nothing else is written there: after `vbroadcastss ymm14, [src pixel 3]` the place is
`broadcast source[0]`, and the value `src pixel 3`.  Written registers are called by place, read ones by value.
Values are forgotten at every label, since the code there may be reached from elsewhere.
"""

from collections.abc import Sequence
from typing import Final

from asmdnn.isa.code import Holders
from asmdnn.isa.effects import effect_of, effect_of_jump, is_copy
from asmdnn.isa.label import Label
from asmdnn.isa.memory_operand import Operand, Pointer
from asmdnn.isa.operands import VECTOR_KINDS, Register, register

_KINDS: Final = {**dict.fromkeys(VECTOR_KINDS, "vector"), **dict.fromkeys(("r8", "high8", "r16", "r32", "r64"), "r64")}
_WORD_BYTES: Final = 8
_NO_WRITE: Final = ("CMP", "TEST", "PUSH", "CALL", "PREFETCHT0", "PREFETCHT1", "PREFETCHT2", "PREFETCHNTA")

Key = tuple[str, int]


def key_of(reg: Register) -> Key:
    """The same for all views of one physical register."""
    return _KINDS.get(reg.kind, reg.kind), reg.id


class Naming:
    """The names at one point of a kernel."""

    def __init__(self) -> None:
        self._values: dict[Key, tuple[str, str]] = {}  # the place when it was named, the value
        self._memory: dict[Pointer, str] = {}
        self._holders: Holders = ()
        self._places: dict[Key, str] = {}

    def hold(self, holders: Holders) -> None:
        """From here on these registers are taken, and these are their places."""
        if holders is not self._holders:
            self._holders = holders
            self._places = {key_of(reg): place for reg, place in holders}

    def call(self, operand: Register | Pointer, name: str) -> None:
        """`operand` holds `name` until it is written, or, of memory, until a register of its address is."""
        if isinstance(operand, Register):
            self._values[key_of(operand)] = self.place(operand), name
        else:
            self._memory[operand] = name

    def forget_values(self) -> None:
        self._values.clear()

    def effect(self, mnemonic: str, operands: Sequence[Operand]) -> str:
        """What the instruction does; afterwards the names are those after it."""
        if not operands:
            return effect_of(mnemonic, "", (), "")
        first, *rest = operands
        if isinstance(first, Label):
            return effect_of_jump(mnemonic, first.name)
        sources = [self.value(op) for op in rest]
        text = effect_of(mnemonic, self.place(first), sources, self.value(first)) + _masking(first)
        copied = self._named(rest[0]) if rest and is_copy(mnemonic) and not getattr(first, "mask", 0) else None
        if text.endswith(" = 0"):
            copied = "0"
        if isinstance(first, Register) and mnemonic not in _NO_WRITE:
            self._written(first, copied)
        return text

    def place(self, operand: Operand) -> str:
        """What a written operand is called."""
        if isinstance(operand, Register):
            return self._places.get(key_of(operand), str(register(operand.kind, operand.id)))
        return self._memory_name(operand) if isinstance(operand, Pointer) else str(operand)

    def value(self, operand: Operand) -> str:
        """What a read operand is called."""
        return self._named(operand) or self.place(operand)

    def _named(self, operand: Operand) -> str | None:
        if isinstance(operand, Register):
            place, value = self._values.get(key_of(operand), ("", ""))
            return value if value and place == self.place(operand) else None
        return self._memory.get(_single(operand)) if isinstance(operand, Pointer) else None

    def _written(self, reg: Register, value: str | None) -> None:
        self._values.pop(key_of(reg), None)
        if value:
            self._values[key_of(reg)] = self.place(reg), value
        if reg.kind == "r64":
            for pointer in [p for p in self._memory if reg in (p.form.base, p.form.index)]:
                del self._memory[pointer]

    def _memory_name(self, pointer: Pointer) -> str:
        named = self._memory.get(_single(pointer))
        if named:
            return named
        form, at = pointer.form, pointer.displacement
        if form.label:
            return f"code at {form.label}"
        if form.in_pool:
            return "constant"
        base = self.place(form.base) if form.base else ""
        if base == "frame" and not form.index and at % _WORD_BYTES == 0:
            return f"frame[{at // _WORD_BYTES}]"
        index = f" + {form.scale} * {self.place(form.index)}" if form.index else ""
        shift = f" {'+' if at > 0 else '-'} {abs(at)}" if at else ""
        return f"{form.segment}{':' * bool(form.segment)}[{base}{index}{shift}]"


def _single(pointer: Pointer) -> Pointer:
    """The operand without the repetition that an instruction may do itself: a name says which element it is."""
    return pointer.broadcast_to(0) if pointer.form.broadcast else pointer


def _masking(first: Operand) -> str:
    if isinstance(first, Register) and first.mask:
        return f" where k{first.mask}" + ", else 0" * first.zeroing
    return f" where k{first.form.mask}" if isinstance(first, Pointer) and first.form.mask else ""
