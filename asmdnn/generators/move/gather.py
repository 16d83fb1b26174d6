"""Rows of bytes by their numbers, which are data: dst[i] = src[k(indices[i])], for look-ups in tables.

    k(n) = n, or n + limit where n is negative;  0 where that is no row of src

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | bytes[limit, row_bytes] | rows src_step bytes apart; only those that indices name are read |
| dst     | bytes[count, row_bytes] | rows dst_step bytes apart, only written; never overlaps src |
| indices | s32[count] | index_step bytes apart; of s64 the low halves, 8 bytes apart |

Whatever the indices hold, no byte outside of src is read: a comparison and a conditional move bound every row's number,
which is what the proof follows.  Who calls the kernel refuses indices out of range beforehand.
"""

from asmdnn.generators.contract import Footprint, rows_of
from asmdnn.generators.move.by_index import INDEX_BYTES, At, RowsByIndex
from asmdnn.generators.move.rows import IN_FLIGHT, cover, load, store
from asmdnn.isa.assembler import Assembler
from asmdnn.records import dataclass

ARGUMENTS = ("src", "dst", "indices")
SRC, DST, INDICES = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherSpec:
    """See above; limit is at least 1, all distances fit 32 bits."""

    isa: str
    count: int
    limit: int
    row_bytes: int
    src_step: int
    dst_step: int
    index_step: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        steps = f"s{self.src_step}_d{self.dst_step}_i{self.index_step}"
        return f"gather_{self.count}of{self.limit}x{self.row_bytes}_{steps}__{self.isa}"

    def footprint(self) -> Footprint:
        indices = rows_of(INDICES, self.count, self.index_step, INDEX_BYTES)
        src = rows_of(SRC, self.limit, self.src_step, self.row_bytes)
        return Footprint((*src, *indices), rows_of(DST, self.count, self.dst_step, self.row_bytes))

    def generate(self, asm: Assembler) -> None:
        GatherCode(self, asm).all_rows(self.count)
        asm.ret()


class GatherCode(RowsByIndex):
    """From the table into rows in order."""

    def __init__(self, spec: GatherSpec, asm: Assembler) -> None:
        steps = (spec.src_step, spec.dst_step, spec.index_step)
        super().__init__(asm, spec.isa, ARGUMENTS, (SRC, DST), steps, (spec.limit, spec.row_bytes))

    def move(self, start: int, count: int, table: At, listed: At) -> None:
        """A rest that no vector fits may go back into what is done already."""
        pieces = list(cover(start, count))
        for first in range(0, len(pieces), IN_FLIGHT):
            batch = list(zip(self.data, pieces[first : first + IN_FLIGHT], strict=False))
            for x, (at, size) in batch:
                load(self.asm, x, table(at, size), size)
            for x, (at, size) in batch:
                store(self.asm, listed(at, size), x, size)
