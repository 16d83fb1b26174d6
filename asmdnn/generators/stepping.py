"""Loops whose pointers go on by so many bytes after each round, and what is passed over."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from asmdnn.isa.assembler import Assembler, Label, Pointer, Register

Step = int | Register | Pointer  # a number, or where it is read


@contextmanager
def repeated(asm: Assembler, count: Step, name: str, steps: Iterable[tuple[Register, Step]] = ()) -> Iterator[None]:
    """The body `count` times, at least once; after each, pointers go on by so many bytes."""
    if count == 1:
        yield
        advance(asm, steps)
        return
    left = asm.gp.take(f"{name} left")
    asm.MOV(left, count)
    with asm.loop(left, name):
        yield
        advance(asm, steps)
    asm.gp.free(left)


def held(asm: Assembler, name: str, word: Pointer) -> Register:
    """A register that holds a word from here on.

    Stores that wait for their lines have an address in common with every word in its last 12 bits, and a load behind
    such a store waits, too.  A row whose address the word is part of would come late.
    """
    register: Register = asm.gp.take(name)
    asm.MOV(register, word)
    return register


@contextmanager
def unless_zero(asm: Assembler, number: Register, after: str) -> Iterator[Label]:
    """The body, which is passed over where the number is 0.  after: what the label behind it is called, which it
    yields."""
    done = asm.new_label(after)
    asm.TEST(number, number)
    asm.JZ(done)
    yield done
    asm.bind(done)


def advance(asm: Assembler, steps: Iterable[tuple[Register, Step]]) -> None:
    """Add bytes to pointers."""
    for pointer, step in steps:
        if step:
            asm.ADD(pointer, step)
