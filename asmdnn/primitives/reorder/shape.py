"""The part of a box of loops that runs inside a kernel of a reorder."""

from collections.abc import Iterable
from math import gcd, prod
from typing import Final, NamedTuple

from asmdnn.generators.move.interleave import ROWS
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.lines import LINE_BYTES, MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, vector_bytes
from asmdnn.planning.loops import Loop
from asmdnn.records import dataclass, replace

SINGLE: Final = Loop(1, (0, 0, 0))
MOST_BYTES: Final = 256  # of a row that is interleaved, which is unrolled


class Zeros(NamedTuple):
    """Rows and columns of zeros after those of src, which padding of dst asks for; ends: elements after each row."""

    rows: int = 0
    columns: int = 0
    ends: int = 0


NO_ZEROS: Final = Zeros()


@dataclass(frozen=True, slots=True)
class Shape:
    """The kernel's part of a box: the loops along its rows and columns, and the dense block inside an element."""

    transposes: bool
    rows: Loop
    columns: Loop
    inner: Loop = SINGLE
    zeros: Zeros = NO_ZEROS
    groups: Loop = SINGLE  # of columns, which go on in src from the end of a row, but not in dst
    steps: Loop = SINGLE  # of a few rows that are interleaved,
    interleaves: bool = False  # by unpacks alone

    @property
    def elements(self) -> int:
        return prod(loop.extent for loop in self.loops)

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self.rows, self.columns, self.inner, self.groups, self.steps)

    def has(self, loop: Loop) -> bool:
        return any(loop is own for own in self.loops)

    def interleaved(self, others: Iterable[Loop], unit_bytes: int) -> "Shape | None":
        """The same with the loop of `others` in it that goes on in dst, if this is a few rows that are interleaved."""
        width, rows = unit_bytes * self.inner.extent, self.rows.extent + self.zeros.rows
        if self.columns is SINGLE and self.zeros.columns:
            return replace(self, columns=Loop(1, (width, rows * width))).interleaved(others, unit_bytes)
        touch = self.columns.dst == rows * width <= QUARTER_BYTES
        if self.groups is not SINGLE or rows not in ROWS or not touch:
            return None
        near = [x for x in others if not self.has(x) and max(x.src, x.dst) <= MAX_OFFSET]
        return replace(self, steps=min(near, key=lambda x: x.dst, default=SINGLE), interleaves=True)

    def most_columns(self, unit_bytes: int) -> int:
        """Of those that are interleaved, which one kernel unrolls."""
        return MOST_BYTES // (unit_bytes * self.inner.extent)


def whole_vectors(count: int) -> int:
    """Not more, and without a rest of vectors if there are several."""
    return count - count % vector_bytes(NARROWEST) or count


def most_groups(row_bytes: int) -> int:
    """Of rows so short: as many as make a line, and whole quarters of registers, such as 4 of 36 bytes."""
    whole = QUARTER_BYTES // gcd(QUARTER_BYTES, row_bytes)
    return whole * -(-LINE_BYTES // (whole * row_bytes))
