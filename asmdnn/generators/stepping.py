"""Loops whose pointers go on by so many bytes after each round."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from asmdnn.isa.assembler import Assembler, Register


@contextmanager
def repeated(asm: Assembler, count: int, name: str, steps: Iterable[tuple[Register, int]]) -> Iterator[None]:
    """The body `count` times; after each, pointers go on by so many bytes."""
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


def advance(asm: Assembler, steps: Iterable[tuple[Register, int]]) -> None:
    """Add bytes to pointers."""
    for pointer, step in steps:
        if step:
            asm.ADD(pointer, step)
