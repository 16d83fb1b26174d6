"""Lanes whose number is known when the code runs, and sums over vectors: what functions that are not kernels need.

A kernel's spec knows its tails, so `Vector.tail` has a constant mask.  Here the number is in a register.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asmdnn.isa.operands import Register

if TYPE_CHECKING:
    from asmdnn.isa.vector import TailLanes, Vector


class Counted:
    """The part of a Vector that counts when the code runs."""

    def first_lanes(self, count: Register) -> "TailLanes":
        """The first `count` lanes, 0 <= count < lanes, as the 64-bit register says now; `release()` as of a tail."""
        raise NotImplementedError

    @contextmanager
    def first(self, count: Register) -> Iterator["TailLanes"]:
        """The first `count` lanes, 0 <= count < lanes: loads give 0 in the others, stores leave the others alone.

        count: a 64-bit register, read here and not changed.  The mask is computed here and freed at the end.
        """
        lanes = self.first_lanes(count)
        yield lanes
        lanes.release()

    def sum(self: "Vector", registers: Sequence[Register]) -> Register:  # type: ignore[misc]
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
