"""Choices lane by lane: what a comparison finds, in a mask of AVX-512 or in a vector register of AVX2."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from asmdnn.isa.assembler import Assembler, Label, Pointer, Register
from asmdnn.isa.registers import RegisterFile


class Conditions:
    """The part of a vector level's operations that compare and select."""

    asm: Assembler
    registers: RegisterFile

    def condition(self, take: Callable[[], Register]) -> Register:
        """A register for what `compare` finds: one of the masks, or a vector register that `take` hands out."""
        raise NotImplementedError

    @contextmanager
    def held_condition(self) -> Iterator[Register]:
        """A condition, and whatever register holds it, for the block."""
        condition = self.condition(lambda: self.registers.take("condition"))
        yield condition
        if not self.end_condition(condition):
            self.registers.free(condition)

    def compare(self, condition: Register, a: Register, b: Register | Pointer, predicate: int) -> None:
        """The lanes where a and b compare as VCMPPS's predicate says."""
        self.asm.VCMPPS(condition, a, b, predicate)

    def broadcast_byte(self, dst: Register, number: int) -> None:
        """dst = what `compare_elements` finds in bytes of that number."""
        raise NotImplementedError

    def compare_elements(self, condition: Register, wanted: Register, source: Register | Pointer, size: int) -> None:
        """The lanes of elements of `size` bytes, 1 or 4, that are wanted, which lie side by side, in memory or in
        a register's low end."""
        raise NotImplementedError

    def add_where(self, total: Register, condition: Register, x: Register | Pointer) -> None:
        """total += x where the condition holds, and nothing, or 0, elsewhere; a condition in a vector register is
        overwritten."""
        raise NotImplementedError

    def select(self, dst: Register, condition: Register, then: Register | Pointer, otherwise: Register) -> None:
        """dst = then where the condition holds, else otherwise."""
        raise NotImplementedError

    def keep(self, dst: Register, condition: Register, then: Register | Pointer) -> None:
        """dst = then where the condition holds, else 0."""
        raise NotImplementedError

    def end_condition(self, condition: Register) -> bool:
        """Gives a mask back; False if it is a vector register, which is its taker's."""
        raise NotImplementedError

    def nowhere(self, condition: Register) -> None:
        """The condition holds in no lane."""
        raise NotImplementedError

    def unite(self, condition: Register, other: Register) -> None:
        """The condition holds also where the other one does."""
        raise NotImplementedError

    def jump_unless_any(self, condition: Register, target: Label) -> None:
        """Go to the label if the condition holds in no lane."""
        raise NotImplementedError
