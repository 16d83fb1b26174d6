"""Rows of bytes or of numbers into a table by their numbers, which are data: dst[k(indices[i])] = or op= updates[i].

    k(n) = n, or n + limit where n is negative;  0 where that is no row of dst

| argument | dtype[shape] | what it is |
|---|---|---|
| updates | bytes[count, row_bytes] | rows updates_step bytes apart, read once each |
| dst     | bytes[limit, row_bytes] | rows dst_step bytes apart; only those that indices name are written |
| indices | s32[count] | index_step bytes apart; of s64 the low halves, 8 bytes apart |

reduction: "none" moves rows of any type, the last one of those that name one row stays.  add, mul, max and min combine
f32 of dst with f32 of updates, in the order of indices, each rounded once; max and min hand NaN on.  No byte outside of
dst is written (by_index.py).  Who calls the kernel refuses indices out of range beforehand.
"""

from typing import Any

from asmdnn.generators.contract import Footprint
from asmdnn.generators.move.by_index import INDEX_BYTES, At, RowsByIndex, rows_of
from asmdnn.generators.move.rows import IN_FLIGHT, load, store, view_of
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.formula import UNORDERED
from asmdnn.records import dataclass

ARGUMENTS = ("updates", "dst", "indices")
UPDATES, DST, INDICES = range(3)
REDUCTIONS = {"add": "VADDPS", "mul": "VMULPS", "max": "VMAXPS", "min": "VMINPS"}
HANDING_NAN_ON = ("max", "min")
PAIRS = IN_FLIGHT // 2  # of updates and of what dst has
SIZES = (32, 16, 8, 4, 2, 1)  # of pieces, none of which reaches back
XMM_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterSpec:
    """See above; limit is at least 1, all distances fit 32 bits; of a reduction row_bytes are whole f32."""

    isa: str
    count: int
    limit: int
    row_bytes: int
    updates_step: int
    dst_step: int
    index_step: int
    reduction: str = "none"
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        steps = f"u{self.updates_step}_d{self.dst_step}_i{self.index_step}"
        how = f"scatter_{self.reduction}" if self.combines else "scatter"
        return f"{how}_{self.count}into{self.limit}x{self.row_bytes}_{steps}__{self.isa}"

    @property
    def combines(self) -> bool:
        """Whether what dst holds counts."""
        return self.reduction in REDUCTIONS

    def footprint(self) -> Footprint:
        """All rows of dst, as each may be named."""
        updates = rows_of(UPDATES, self.count, self.updates_step, self.row_bytes)
        indices = rows_of(INDICES, self.count, self.index_step, INDEX_BYTES)
        dst = rows_of(DST, self.limit, self.dst_step, self.row_bytes)
        return Footprint((*updates, *(dst if self.combines else ()), *indices), dst, partial=True)

    def generate(self, asm: Assembler) -> None:
        ScatterCode(self, asm).all_rows(self.count)
        asm.ret()


class ScatterCode(RowsByIndex):
    """From rows in order into the table."""

    def __init__(self, spec: ScatterSpec, asm: Assembler) -> None:
        steps = (spec.dst_step, spec.updates_step, spec.index_step)
        super().__init__(asm, spec.isa, ARGUMENTS, (DST, UPDATES), steps, (spec.limit, spec.row_bytes))
        self.spec = spec
        if spec.reduction in HANDING_NAN_ON:
            self.unordered = self.vectors.take("where x is NaN")

    def move(self, start: int, count: int, table: At, listed: At) -> None:
        """In pieces side by side, as what is written twice would count twice."""
        pieces = pieces_of(start, count)
        for first in range(0, len(pieces), PAIRS):
            batch = list(zip(self.data, self.data[PAIRS:], pieces[first : first + PAIRS], strict=False))
            for x, _, (at, size) in batch:
                load(self.asm, x, listed(at, size), size)
            for x, held, (at, size) in batch if self.spec.combines else ():
                load(self.asm, held, table(at, size), size)
                self.combine(x, held, max(size, XMM_BYTES))
            for x, _, (at, size) in batch:
                store(self.asm, table(at, size), x, size)

    def combine(self, x: Any, held: Any, size: int) -> None:
        """x = x op held.  VMAXPS and VMINPS give held where either is NaN, so NaN of x comes back afterwards."""
        asm, (x, held) = self.asm, (view_of(x, size), view_of(held, size))
        hands_on = self.spec.reduction in HANDING_NAN_ON
        if hands_on:
            unordered = view_of(self.unordered, size)
            asm.VCMPPS(unordered, x, x, UNORDERED)
        getattr(asm, REDUCTIONS[self.spec.reduction])(x, x, held)
        if hands_on:
            asm.VORPS(x, x, unordered)


def pieces_of(start: int, count: int) -> list[tuple[int, int]]:
    """(offset, size) of moves that cover [start, start + count), each byte once."""
    found = []
    for size in SIZES:
        while count >= size:
            found.append((start, size))
            start, count = start + size, count - size
    return found
