"""Pointers to what a chain reads: in registers where all fit, else loaded from memory when an instruction needs them.

A chain of 32 post-ops can read more tensors than there are general-purpose registers.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from asmdnn.isa.assembler import Assembler, Pointer, Register, mem

WINDOW = 4  # registers in turn for pointers that do not all fit
LEAST = 2  # of them: an instruction, and the load before it, need so many


class OperandPointers:
    """The pointers that lie at `homes`, by argument: words of the frame, or of the stack.

    spare: how many general-purpose registers to leave to others.  What registers hold is known from the code emitted so
    far, so that `forget` is called where other code can jump to.
    """

    def __init__(self, asm: Assembler, homes: Mapping[int, Pointer], spare: int = 0) -> None:
        self.asm, self.homes = asm, homes
        window = min(WINDOW, max(LEAST, asm.gp.available))
        count = len(homes) if all_fit(asm, len(homes), spare) else window
        self.registers: list[Register] = asm.gp.take("post-op's operand", count)
        self.loaded: dict[int, Register] = {}  # the one not asked for longest comes first
        self.unused = [*self.registers]
        if count == len(homes):
            for argument in homes:
                self.register(argument)

    def register(self, argument: int) -> Register:
        """A register with the pointer, which stays there while the next LEAST - 1 others are asked for."""
        register = self.loaded.pop(argument, None)
        if register is None:
            register = self.unused.pop(0) if self.unused else self.loaded.pop(next(iter(self.loaded)))
            self.asm.MOV(register, self.homes[argument])
        self.loaded[argument] = register
        return register

    def forget(self) -> None:
        """Nothing is known of what the registers hold."""
        if len(self.registers) < len(self.homes):
            self.loaded.clear()
            self.unused = [*self.registers]

    def release(self) -> None:
        """Give the registers back."""
        self.asm.gp.free(*self.registers)


def all_fit(asm: Assembler, count: int, spare: int = 0) -> bool:
    """Whether so many pointers can stay in registers of their own."""
    return count + spare <= asm.gp.available


class RowPointers(OperandPointers):
    """Those that move on by `steps` bytes, by argument, from row to row of `rows`.

    Where they do not all fit, they lie in copies of the frame's words, which a kernel may not write.
    """

    def __init__(self, asm: Assembler, steps: Mapping[int, int], rows: int, spare: int = 0) -> None:
        homes = {argument: mem(asm.frame, 8 * argument, size=8) for argument in sorted(steps)}
        self.steps, self.in_registers = steps, all_fit(asm, len(homes), spare)
        if rows > 1 and not self.in_registers:
            homes = {argument: copy_of_word(asm, argument) for argument in homes}
        super().__init__(asm, homes, spare)

    @contextmanager
    def each_row(self, left: Register, rows: int, name: str) -> Iterator[None]:
        """The body, in so many rows, which `left` counts down."""
        self.asm.MOV(left, rows)
        with self.asm.loop(left, name):
            self.forget()
            yield
            self.next_row()

    def next_row(self) -> None:
        for argument, step in self.steps.items():
            if step:
                self.asm.ADD(self.register(argument), step)
                if not self.in_registers:
                    self.asm.MOV(self.homes[argument], self.register(argument))


def copy_of_word(asm: Assembler, argument: int) -> Pointer:
    """A copy on the stack of a word of the frame, which a kernel may not write, to be moved."""
    copy, pointer = asm.stack(8), asm.gp.take("post-op's operand")
    asm.MOV(pointer, mem(asm.frame, 8 * argument, size=8))
    asm.MOV(copy, pointer)
    asm.gp.free(pointer)
    return copy
