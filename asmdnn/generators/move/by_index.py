"""Rows of a table by their numbers, which are data, beside rows in order: what gathers and scatters have in common.

A row's number k(n) is n, or n + limit where n is negative, and 0 where that is no row of the table.  So no byte outside
of the table is touched, whatever the indices hold: a comparison and a conditional move bound every number, which is
what the proof follows.
"""

from collections.abc import Callable
from typing import Any

from asmdnn.generators.move.rows import IN_FLIGHT, UNROLLED_BYTES
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import vector_of

INDEX_BYTES = 4
INDICES = 2  # the argument
SHORT_BYTES = 64  # rows up to this size are taken
TOGETHER = 4  # at a time, so that a turn of the loop is little beside them

At = Callable[[int, int], Any]  # the operand of so many bytes (second), that far (first) into a row


class RowsByIndex:
    """The emission of a kernel: the pointers, and what a row needs.

    arguments: names; roles: which of them are the table and the rows in order; steps: the distances of rows of the
    table, of rows in order, and of indices; size: rows of the table, and bytes of a row.
    """

    def __init__(
        self,
        asm: Assembler,
        isa: str,
        arguments: tuple[str, ...],
        roles: tuple[int, int],
        steps: tuple[int, int, int],
        size: tuple[int, int],
    ) -> None:
        self.asm, (self.limit, self.row_bytes) = asm, size
        self.table_step, self.listed_step, self.index_step = steps
        pointers = [asm.gp.take(name) for name in arguments]
        self.table, self.listed, self.indices = (pointers[i] for i in (*roles, INDICES))
        for argument, pointer in enumerate(pointers):
            asm.MOV(pointer, mem(asm.frame, 8 * argument, size=8))
        self.zero, self.from_end = asm.gp.take("row 0"), asm.gp.take("index from the end")
        self.offsets = [asm.gp.take(f"offset of row {i}") for i in range(TOGETHER)]
        asm.XOR(self.zero, self.zero)
        self.vectors = vector_of(isa, asm).registers
        self.data = self.vectors.take("data", IN_FLIGHT)

    def move(self, start: int, count: int, table: At, listed: At) -> None:
        """`count` bytes of a row from `start` on, whose operands on both sides these functions make."""
        raise NotImplementedError

    def all_rows(self, count: int) -> None:
        """So many indices, in their order."""
        is_near = TOGETHER * max(self.listed_step, self.index_step) <= MAX_OFFSET
        together = TOGETHER if self.row_bytes <= SHORT_BYTES and is_near else 1
        turns, rest = divmod(count, together)
        if turns:
            with self.asm.repeated(turns, "turns left", "rows"):
                self.rows(together)
                self.asm.ADD(self.indices, together * self.index_step)
                self.asm.ADD(self.listed, together * self.listed_step)
        self.rows(rest)

    def rows(self, count: int) -> None:
        """Rows from the pointers on: first where they are, then what they hold."""
        for i in range(count):
            self.locate(self.offsets[i], i * self.index_step)
        for i in range(count):
            self.row(self.offsets[i], i * self.listed_step)

    def locate(self, offset: Register, at: int) -> None:
        """offset = bytes to the row that the index names."""
        asm = self.asm
        asm.MOVSXD(offset, mem(self.indices, at, size=INDEX_BYTES))
        asm.LEA(self.from_end, mem(offset, self.limit))
        asm.TEST(offset, offset)
        asm.CMOVS(offset, self.from_end)
        asm.CMP(offset, self.limit)
        asm.CMOVAE(offset, self.zero)
        asm.IMUL(offset, offset, self.table_step)

    def row(self, offset: Register, beside: int) -> None:
        """A row: long ones a block at a time in a loop, and then the rest."""
        asm, size = self.asm, self.row_bytes
        blocks = size // UNROLLED_BYTES if size > UNROLLED_BYTES else 0
        done = blocks * UNROLLED_BYTES
        if blocks:
            row, at, left = (asm.gp.take(name) for name in ("row", "bytes into the row", "blocks left"))
            asm.LEA(row, mem(self.table, index=offset))
            asm.XOR(at, at)
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                self.move(0, UNROLLED_BYTES, lambda x, n: mem(row, x, index=at, size=n),
                          lambda x, n: mem(self.listed, beside + x, index=at, size=n))  # fmt: skip
                asm.ADD(at, UNROLLED_BYTES)
            asm.gp.free(row, at, left)
        self.move(done, size - done, lambda x, n: mem(self.table, x, index=offset, size=n),
                  lambda x, n: mem(self.listed, beside + x, size=n))  # fmt: skip
