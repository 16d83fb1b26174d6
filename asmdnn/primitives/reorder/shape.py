"""The part of a box of loops that runs inside a kernel of a reorder."""

from collections.abc import Iterable
from math import prod
from typing import Final

from asmdnn.generators.move.interleave import ROWS
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, vector_bytes
from asmdnn.planning.loops import Loop
from asmdnn.records import dataclass, replace

SINGLE: Final = Loop(1, (0, 0, 0))
LEAST_BYTES: Final = vector_bytes(NARROWEST)  # of rows that are interleaved, which fill vectors
MOST_BYTES: Final = 256  # of such a row, which is unrolled


@dataclass(frozen=True, slots=True)
class Shape:
    """The kernel's part of a box: the loops along its rows and columns, and the dense block inside an element."""

    transposes: bool
    rows: Loop
    columns: Loop
    inner: Loop = SINGLE
    zeros: int = 0  # rows of zeros after
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
        rows, columns, width = self.rows, self.columns, unit_bytes * self.inner.extent
        if self.zeros or self.groups is not SINGLE or rows.extent not in ROWS:
            return None
        if columns.dst != rows.extent * width or columns.dst > QUARTER_BYTES or columns.extent * width < LEAST_BYTES:
            return None
        near = [x for x in others if not self.has(x) and max(x.src, x.dst) <= MAX_OFFSET]
        return replace(self, steps=min(near, key=lambda x: x.dst, default=SINGLE), interleaves=True)

    def whole_columns(self, unit_bytes: int) -> int:
        """As many of those that are interleaved as fill vectors, and one kernel unrolls."""
        width = unit_bytes * self.inner.extent
        fitting = self.columns.extent * width // LEAST_BYTES * LEAST_BYTES
        return min(MOST_BYTES, fitting) // width
