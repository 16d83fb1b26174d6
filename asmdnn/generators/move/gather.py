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

from collections.abc import Callable
from typing import Any

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.move.rows import IN_FLIGHT, UNROLLED_BYTES, cover, load, store
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ARGUMENTS = ("src", "dst", "indices")
SRC, DST, INDICES = range(3)
INDEX_BYTES = 4
SHORT_BYTES = 64  # rows up to this size are taken
TOGETHER = 4  # at a time, so that a turn of the loop is little beside them

At = Callable[[int, int], Any]  # the operand of so many bytes (second), that far (first) into a row


@dataclass(frozen=True, slots=True)
class GatherSpec:
    """See above; limit is at least 1, all distances fit 32 bits."""

    isa: str
    count: int
    limit: int
    row_bytes: int
    src_step: int
    dst_step: int
    index_step: int

    @property
    def name(self) -> str:
        steps = f"s{self.src_step}_d{self.dst_step}_i{self.index_step}"
        return f"gather_{self.count}of{self.limit}x{self.row_bytes}_{steps}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    def footprint(self) -> Footprint:
        indices = rows_of(INDICES, self.count, self.index_step, INDEX_BYTES)
        src = rows_of(SRC, self.limit, self.src_step, self.row_bytes)
        return Footprint((*src, *indices), rows_of(DST, self.count, self.dst_step, self.row_bytes))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        code = GatherCode(self, asm)
        together = TOGETHER if self.row_bytes <= SHORT_BYTES else 1
        turns, rest = divmod(self.count, together)
        if turns:
            left = asm.gp.take("turns left")
            asm.MOV(left, turns)
            with asm.loop(left, "rows"):
                code.rows(together)
                asm.ADD(code.indices, together * self.index_step)
                asm.ADD(code.dst, together * self.dst_step)
        code.rows(rest)
        asm.ret()


def rows_of(argument: int, count: int, step: int, size: int) -> tuple[Range, ...]:
    """`size` bytes of each of `count` rows; of dense ones all at once."""
    if step == size:
        return (Range(argument, 0, count * size),)
    return tuple(Range(argument, i * step, i * step + size) for i in range(count))


class GatherCode:
    """The emission of a kernel: the pointers, and what a row needs."""

    def __init__(self, spec: GatherSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.src, self.dst, self.indices = pointers = [asm.gp.take(name) for name in ARGUMENTS]
        for argument, pointer in enumerate(pointers):
            asm.MOV(pointer, mem(asm.frame, 8 * argument, size=8))
        self.zero, self.from_end = asm.gp.take("row 0"), asm.gp.take("index from the end")
        self.offsets = [asm.gp.take(f"offset of row {i}") for i in range(TOGETHER)]
        asm.XOR(self.zero, self.zero)
        self.data = vector_of(spec.isa, asm).registers.take("data", IN_FLIGHT)

    def rows(self, count: int) -> None:
        """Rows from the pointers on: first where they are, then what they hold."""
        for i in range(count):
            self.locate(self.offsets[i], i * self.spec.index_step)
        for i in range(count):
            self.copy(self.offsets[i], i * self.spec.dst_step)

    def locate(self, offset: Register, at: int) -> None:
        """offset = bytes to the row that the index names."""
        asm, spec = self.asm, self.spec
        asm.MOVSXD(offset, mem(self.indices, at, size=INDEX_BYTES))
        asm.LEA(self.from_end, mem(offset, spec.limit))
        asm.TEST(offset, offset)
        asm.CMOVS(offset, self.from_end)
        asm.CMP(offset, spec.limit)
        asm.CMOVAE(offset, self.zero)
        asm.IMUL(offset, offset, spec.src_step)

    def copy(self, offset: Register, to: int) -> None:
        """A row: long ones a block at a time in a loop, and then the rest."""
        asm, size = self.asm, self.spec.row_bytes
        blocks = size // UNROLLED_BYTES if size > UNROLLED_BYTES else 0
        done = blocks * UNROLLED_BYTES
        if blocks:
            row, at, left = (asm.gp.take(name) for name in ("row", "bytes into the row", "blocks left"))
            asm.LEA(row, mem(self.src, index=offset))
            asm.XOR(at, at)
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                self.move(0, UNROLLED_BYTES, lambda x, n: mem(row, x, index=at, size=n),
                          lambda x, n: mem(self.dst, to + x, index=at, size=n))  # fmt: skip
                asm.ADD(at, UNROLLED_BYTES)
            asm.gp.free(row, at, left)
        self.move(done, size - done, lambda x, n: mem(self.src, x, index=offset, size=n),
                  lambda x, n: mem(self.dst, to + x, size=n))  # fmt: skip

    def move(self, start: int, count: int, source: At, target: At) -> None:
        """`count` bytes from `start` on; a rest that no vector fits may go back into what is done already."""
        pieces = list(cover(start, count))
        for first in range(0, len(pieces), IN_FLIGHT):
            batch = list(zip(self.data, pieces[first : first + IN_FLIGHT], strict=False))
            for x, (at, size) in batch:
                load(self.asm, x, source(at, size), size)
            for x, (at, size) in batch:
                store(self.asm, target(at, size), x, size)
