"""Lanes whose number is known when the code runs, and sums over vectors: what functions that are not kernels need.

A kernel's spec knows its tails, so `Vector.tail` has a constant mask.  Here the number is in a register.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.operands import Register
from asmdnn.isa.registers import RegisterFile


class SomeLanes(Protocol):
    """As vector.py's TailLanes."""

    def load(self, dst: Register, src: Pointer) -> None: ...
    def store(self, dst: Pointer, src: Register) -> None: ...
    def clear_rest(self, x: Register) -> None: ...
    def fill_rest(self, x: Register, filler: Register) -> None: ...
    def release(self) -> None: ...


class Adding(Protocol):
    """The part of a Vector that sums need."""

    registers: RegisterFile

    def add(self, dst: Register, a: Register, b: Register | Pointer) -> None: ...
    def across(self, x: Register, spare: Register, combine: Callable[[Register, Register, Register], None]) -> None: ...


class Counted:
    """The part of a Vector that counts when the code runs."""

    def first_lanes(self, count: Register) -> SomeLanes:
        """The first `count` lanes, 0 <= count < lanes, as the 64-bit register says now; `release()` as of a tail."""
        raise NotImplementedError

    def lanes_said(self, count: Pointer) -> SomeLanes:
        """The first lanes, as many as an int64 in memory says, 0 < count <= lanes; `release()` as of a tail."""
        raise NotImplementedError

    @contextmanager
    def first(self, count: Register) -> Iterator[SomeLanes]:
        """The first `count` lanes, 0 <= count < lanes: loads give 0 in the others, stores leave the others alone.

        count: a 64-bit register, read here and not changed.  The mask is computed here and freed at the end.
        """
        lanes = self.first_lanes(count)
        yield lanes
        lanes.release()

    def sum(self: Adding, registers: Sequence[Register]) -> Register:
        """The first of the registers, whose every lane becomes the sum of all lanes of all of them.

        Pairs are added first, then halves, so the order is that of a tree.  All registers are overwritten.
        """
        left = list(registers)
        while len(left) > 1:
            half = (len(left) + 1) // 2
            for dst, src in zip(left, left[half:], strict=False):
                self.add(dst, dst, src)
            left = left[:half]
        with self.registers.taken("halves") as spare:
            self.across(left[0], spare, self.add)
        return left[0]
