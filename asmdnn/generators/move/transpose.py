"""Transposes of small units through registers: dst[c, r] = src[r, c].

| argument | dtype[shape] | what it is |
|---|---|---|
| src | bytes[rows, columns, unit] | rows src_row_bytes apart, columns dense; no other byte is read |
| dst | bytes[columns, rows, unit] | columns dst_row_bytes apart, rows dense; no other byte is written |

Units of 1 to 32 bytes are single elements, or blocks that are dense on both sides; how tiles of them are transposed is
in transpose_tiles.py.
"""

from typing import Any

from asmdnn.generators.contract import Footprint, Range, rows_of
from asmdnn.generators.move.transpose_tiles import MOVED_BYTES, TransposeCode, quarters_of
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import vector_bytes
from asmdnn.records import dataclass

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")
UNITS = (1, 2, 4, 8, 16, 32)
FEWEST_ACROSS = 4  # units of the side that is unrolled, if planners say nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class TransposeSpec:
    """See above.  At most a line of columns, or else of rows: that side is unrolled, the other one looped over.

    zero_rows: units of zero after the rows of every column of dst, which then are the side that is unrolled.
    streaming: whole vectors go past the caches if dst is aligned to their size, as dst_row_bytes must be then.
    least_across: units of the unrolled side that there can be, where a line has fewer.
    group, group_bytes: if there are groups, so many columns are one, so many bytes from one to the next in dst; all
    columns are unrolled then.
    by_lines: a line of each row is read before other rows are; else lines of dst are written whole, one by one.
    """

    isa: str
    unit_bytes: int
    rows: int
    columns: int
    src_row_bytes: int
    dst_row_bytes: int
    streaming: bool = False
    zero_rows: int = 0
    least_across: int = FEWEST_ACROSS
    by_lines: bool = False
    group: int = 0
    group_bytes: int = 0
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        zeros = f"z{self.zero_rows}" if self.zero_rows else ""
        block = f"{self.rows}{zeros}x{self.columns}_s{self.src_row_bytes}_d{self.dst_row_bytes}"
        more = f"_l{self.least_across}" * (self.least_across != FEWEST_ACROSS)
        more += "_lines" * self.by_lines + "_streaming" * self.streaming
        more += f"_g{self.group}by{self.group_bytes}" if self.group else ""
        return f"transpose_b{8 * self.unit_bytes}_{block}{more}__{self.isa}"

    def footprint(self) -> Footprint:
        width = self.stored_rows * self.unit_bytes
        written = rows_of(DST, self.columns, self.dst_row_bytes, width)
        if self.group:
            written = tuple(Range(DST, at, at + width) for at in map(self.column_bytes, range(self.columns)))
        return Footprint(rows_of(SRC, self.rows, self.src_row_bytes, self.columns * self.unit_bytes), written)

    def column_bytes(self, column: int) -> int:
        """Where a column begins in dst."""
        groups, within = divmod(column, self.group) if self.group else (0, column)
        return groups * self.group_bytes + within * self.dst_row_bytes

    @property
    def stored_rows(self) -> int:
        """Of src, and of zeros."""
        return self.rows + self.zero_rows

    @property
    def across(self) -> int:
        """How many units of the unrolled side there can be."""
        return across_of(self.unit_bytes, self.least_across)

    @property
    def vector_bytes(self) -> int:
        return vector_bytes(self.isa)

    @property
    def stores_parts(self) -> bool:
        """Whether a register holds parts of several rows of dst."""
        return self.unit_bytes < MOVED_BYTES and quarters_of(self, self.vector_bytes)[1] > 1

    @property
    def operations(self) -> int:
        """Vector instructions of all tiles: loads of quarters, interleaves, stores."""
        if self.unit_bytes == MOVED_BYTES:
            return 2 * self.columns * self.stored_rows
        stacked, beside = quarters_of(self, self.vector_bytes)
        size = QUARTER_BYTES // self.unit_bytes
        tiles = -(-self.stored_rows // (stacked * size)) * -(-self.columns // (beside * size))
        loads = self.rows * -(-self.columns // size)
        stores = self.columns * -(-self.stored_rows // (stacked * size))
        return loads + tiles * size * (size.bit_length() - 1) + stores

    def generate(self, asm: Assembler) -> None:
        src, dst, left = (asm.gp.take(name) for name in ("src", "dst", "blocks left"))
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        tiles = TransposeCode(asm, self, src, dst)
        if self.streaming:
            with if_aligned(asm, dst, tiles.vector.bytes, left):
                tiles.dense.streaming = True
                self.all_blocks(asm, tiles, src, dst, left)
                tiles.dense.streaming = False
                asm.ret()
            tiles.dense.forget()
        self.all_blocks(asm, tiles, src, dst, left)
        asm.ret()

    def all_blocks(self, asm: Assembler, tiles: TransposeCode, src: Any, dst: Any, left: Any) -> None:
        """A loop over whole blocks along the longer side, and the rest."""
        by_rows = self.columns <= self.across or self.group > 0
        extent = self.rows if by_rows else self.columns
        # The last block is emitted on its own, as it must not read beyond the last row or column.
        blocks = (extent - 1) // self.across
        rest = extent - blocks * self.across
        if blocks:
            steps = (self.src_row_bytes, self.unit_bytes) if by_rows else (self.unit_bytes, self.dst_row_bytes)
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                tiles.block(self.across if by_rows else self.rows, self.columns if by_rows else self.across, last=False)
                for pointer, step in zip((src, dst), steps, strict=True):
                    asm.ADD(pointer, self.across * step)
        tiles.block(rest if by_rows else self.rows, self.columns if by_rows else rest, last=True)


def across_of(unit_bytes: int, least: int) -> int:
    """Units in a cache line, or a few if they are large."""
    return max(LINE_BYTES // unit_bytes, least)
