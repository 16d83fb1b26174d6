"""Physical registers handed out by purpose, with a clear answer when there is none left."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

from asmdnn.errors import AsmdnnError, InvalidArguments, shown
from asmdnn.isa.operands import VECTOR_KINDS, Register, register

CALLER_SAVED: Final = (0, 1, 2, 6, 8, 9, 10, 11)  # rax rcx rdx rsi r8-r11; rdi holds the argument
CALLEE_SAVED: Final = (3, 5, 12, 13, 14, 15)  # rbx rbp r12-r15 (System V AMD64 ABI)

Shaped: TypeAlias = "Register | Sequence[Shaped]"  # a register, or as many as `take` gives


class OutOfRegisters(AsmdnnError):
    """A kernel takes more registers than there are: the message names the budget and what took it."""


class RegisterFile:
    """The registers of one kind that a kernel may use, handed out in a fixed order.

    `ever_taken` keeps every register handed out so far, for the prologue.
    """

    def __init__(self, title: str, registers: Iterable[Register]) -> None:
        self.title = title
        self.registers = tuple(registers)
        self.ever_taken: set[Register] = set()
        self.on_change: Callable[[], None] | None = None  # called when something is taken or freed
        self._purposes: dict[Register, str] = {}
        self._indices: dict[Register, str] = {}

    @property
    def available(self) -> int:
        """How many registers are left."""
        return len(self.registers) - len(self._purposes)

    def take(self, purpose: str, *shape: int) -> Any:
        """A register, or for a shape (n,) a list and for (m, n) a list of m lists of n.  Raises OutOfRegisters."""
        count = prod(shape)
        free = [reg for reg in self.registers if reg not in self._purposes]
        if count > len(free):
            raise OutOfRegisters(self._exhausted(purpose, count, len(free)))
        taken = free[:count]
        self._mark(taken, purpose)
        for reg, index in zip(taken, product(*map(range, shape)), strict=True):
            self._indices[reg] = "".join(f"[{i}]" for i in index)
        return _shaped(taken, shape)

    @contextmanager
    def taken(self, purpose: str, *shape: int) -> Iterator[Any]:
        """As `take`, and freed at the end of the block."""
        found = self.take(purpose, *shape)
        yield found
        self.free(found)

    def claim(self, reg: Register, purpose: str) -> Register:
        """Exactly this register, for instructions that know no other (a shift's cl, CPUID).  Raises OutOfRegisters."""
        if reg not in self.registers:
            raise InvalidArguments(f"{reg} for {purpose!r} is not one of the {self.title}")
        if reg in self._purposes:
            holder = self._purposes[reg]
            raise OutOfRegisters(f"{reg} for {purpose!r} is taken by {holder!r}: claim it before taking others")
        self._mark([reg], purpose)
        return reg

    def free(self, *registers: Shaped) -> None:
        """Gives registers back, by any view of vectors.  Raises InvalidArguments for one that is not taken."""
        self._changed()
        own = self.registers[0].kind
        for given in flat(registers):
            reg = register(own, given.id) if {own, given.kind} <= {*VECTOR_KINDS} else given
            if self._purposes.pop(reg, None) is None:
                raise InvalidArguments(f"{reg} cannot be freed: it is not taken from the {self.title}")
            self._indices.pop(reg, None)

    def holders(self) -> list[tuple[Register, str]]:
        """Every taken register, and what for: `acc[3][1]` for one of a shape taken as `acc`."""
        return [(reg, purpose + self._indices.get(reg, "")) for reg, purpose in self._purposes.items()]

    def _changed(self) -> None:
        if self.on_change:
            self.on_change()

    def _mark(self, registers: list[Register], purpose: str) -> None:
        self._changed()
        self._purposes.update(dict.fromkeys(registers, purpose))
        self.ever_taken.update(registers)

    def _exhausted(self, purpose: str, count: int, left: int) -> str:
        counts: dict[str, int] = {}
        for taken_for in self._purposes.values():
            counts[taken_for] = counts.get(taken_for, 0) + 1
        taken = ", ".join(f"{name} {number}" for name, number in counts.items()) or "nothing"
        return f"{purpose!r} needs {count} of the {len(self.registers)} {self.title}, {left} are left; taken: {taken}"


def scalar_files() -> tuple[RegisterFile, RegisterFile, RegisterFile]:
    """All 64-bit registers but rsp and rdi, those that need no saving first; k1 to k7, as k0 cannot mask a write; tmm0
    to tmm7."""
    general = RegisterFile("general-purpose registers", (register("r64", n) for n in (*CALLER_SAVED, *CALLEE_SAVED)))
    masks = RegisterFile("mask registers", (register("k", n) for n in range(1, 8)))
    return general, masks, RegisterFile("tile registers", (register("tmm", n) for n in range(8)))


def vector_file(vector_bytes: int, count: int) -> RegisterFile:
    """xmm (16 bytes), ymm (32) or zmm (64) registers 0 to count - 1."""
    kinds = {16: "xmm", 32: "ymm", 64: "zmm"}
    if vector_bytes not in kinds or not 0 < count <= 32:
        raise InvalidArguments(f"vectors({vector_bytes}, {count}): a vector has 16, 32 or 64 bytes, a CPU 32 at most")
    kind = kinds[vector_bytes]
    return RegisterFile(f"{kind} registers", (register(kind, n) for n in range(count)))


def flat(taken: Shaped) -> Iterator[Register]:
    """One after the other, in the order in which they were handed out."""
    if isinstance(taken, Register):
        yield taken
    elif isinstance(taken, list | tuple):
        for part in taken:
            yield from flat(part)
    else:
        raise InvalidArguments(f"{shown(taken)} is no register, nor a list of them")


def _shaped(registers: list[Register], shape: tuple[int, ...]) -> Any:
    if not shape:
        return registers[0]
    if len(shape) == 1:
        return registers
    step = prod(shape[1:])
    return [_shaped(registers[start : start + step], shape[1:]) for start in range(0, len(registers), step)]
