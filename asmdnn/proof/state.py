"""What is known before an instruction: of registers and the stack, and of what the ABI guards."""

from typing import Final

from asmdnn.proof.facts import NO_REGISTER
from asmdnn.proof.flags import Compare
from asmdnn.proof.tiles import NOT_CONFIGURED
from asmdnn.proof.values import AbstractValue, Base, Entry, at_entry, join

WORD_BYTES: Final = 8
_RDI: Final = 7


class State:
    """Values of registers and stack slots, and what the ABI guards.  Changed in place; `copy()` for another path.

    compared: the register whose value the flags tell of as long as both are what they were, or NO_REGISTER.
    """

    __slots__ = ("compare", "compared", "direction", "in_flight", "mxcsr", "registers", "slots", "tiles", "upper")

    def __init__(self) -> None:
        self.registers = [at_entry(register) for register in range(16)]
        self.slots: dict[int, AbstractValue] = {}  # by offset from STACK, each of 8 bytes
        self.compare: Compare | None = None
        self.compared = NO_REGISTER
        self.upper = False  # a ymm or zmm register was used since VZEROUPPER
        self.direction = False  # the direction flag may be set
        self.mxcsr = False  # MXCSR may differ from what it was at the call
        self.tiles = frozenset((NOT_CONFIGURED,))  # what tiles may be configured by: 64 bytes, or none
        self.in_flight = False  # a kernel was called, whose streaming stores no SFENCE has followed

    def enter(self, entry: Entry | None) -> None:
        """What a function of C finds in the place of a frame; call it on a new state."""
        if entry is None:
            return
        self.registers[_RDI] = AbstractValue(Base("entry", _RDI), 0)
        for register, value in entry.registers:
            self.registers[register] = value
        self.slots = {WORD_BYTES * (1 + word): value for word, value in enumerate(entry.stack)}

    def copy(self) -> "State":
        other = type(self)()
        other.registers, other.slots, other.compare = self.registers[:], dict(self.slots), self.compare
        other.compared = self.compared
        other.upper, other.direction, other.mxcsr, other.tiles = self.upper, self.direction, self.mxcsr, self.tiles
        other.in_flight = self.in_flight
        return other

    def join(self, other: "State") -> bool:
        """Keep what holds in both; whether anything was lost."""
        before = self._all()
        self.registers = [join(a, b) for a, b in zip(self.registers, other.registers, strict=True)]
        self.slots = {at: join(self.slots[at], other.slots[at]) for at in self.slots.keys() & other.slots.keys()}
        self.compare = self.compare if self.compare == other.compare else None
        self.compared = self.compared if self.compared == other.compared else NO_REGISTER
        self.upper |= other.upper
        self.direction |= other.direction
        self.mxcsr |= other.mxcsr
        self.tiles |= other.tiles  # both may be
        self.in_flight |= other.in_flight
        return before != self._all()

    def _all(self) -> tuple[object, ...]:
        abi = self.upper, self.direction, self.mxcsr, self.tiles, self.in_flight
        return self.registers, self.slots, self.compare, self.compared, abi
