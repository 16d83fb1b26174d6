"""Reorder blocks that change the element type and the order: elements are transposed as they are, then made f32.

Arguments and formula are those of convert_block.py.

Four registers take 16 bytes of a row in each quarter: number i those of row 4 q + i in quarter q.  Two rounds of
interleaving bring the four rows of a column together, in the place of a dword of bytes, or of as many dwords as an
element has bytes.  One instruction then makes a vector of a column, a row in every lane; it is converted, and stored.
Small elements go through the shuffle ports as they are: 8 x 16 bytes to f32 take 64 instructions with AVX2, and 96 if
they are widened first.

Several such sets of four registers are filled before anything is stored: for a line of dst in each column, since lines
that are written in parts lose their place in L1 where columns are a power of two apart; or, where long columns of
4-byte elements are read in short rows, for more of each row while its line is at hand.
"""

from itertools import product
from typing import Any

from asmdnn.generators.move.conversion import Argument, Converter
from asmdnn.generators.move.convert_block import TransposedBlock
from asmdnn.generators.move.pieces import StridedPlace
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.element import SPARE
from asmdnn.isa.elements import element_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.packing import packing_of
from asmdnn.isa.pieces import low_part
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_of
from asmdnn.records import dataclass

ROWS = 4  # that lie together in a quarter
ELEMENT_BYTES = 4  # of the largest elements
FOR_A_SET = 8  # registers of a vector: half of them are for sets
NOTHING = 0x80  # a zero, as VPSHUFB has it
INTERLEAVES = 2 * ROWS
COLUMN_OPERATIONS = 4  # widening, conversions, store


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertTransposeSpec(TransposedBlock):
    """dst[c, r] = src[r, c]: columns dense in src, rows dense in dst; the longer side is looped over."""

    @property
    def name(self) -> str:
        return f"transpose_{self.block_name}"

    @property
    def vector_bytes(self) -> int:
        return vector_bytes(self.isa)

    @property
    def together(self) -> int:
        """Columns that 16 bytes of a row have."""
        return QUARTER_BYTES // self.conversion.sizes[0]

    @property
    def operations(self) -> int:
        """Vector instructions: loads of quarters, interleaves, and what a column takes."""
        across, along = -(-self.rows // lanes_of(self.isa)), -(-self.columns // self.together)
        return self.rows * along + across * (INTERLEAVES * along + COLUMN_OPERATIONS * self.columns)

    def generate(self, asm: Assembler) -> None:
        by_rows = self.rows > self.columns
        body = ConvertTransposeCode(self, asm, by_rows)
        self.emit_blocks(asm, body, by_rows, body.most_rows if by_rows else body.most_columns)


class ConvertTransposeCode:
    """Emits blocks of the kernel relative to its pointers."""

    def __init__(self, spec: ConvertTransposeSpec, asm: Assembler, by_rows: bool) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        take, self.src = self.v.registers.take, element_of(spec.conversion.src)
        self.size = self.src.size_bytes
        vectors, runs = LINE_BYTES // self.v.bytes, 1
        if self.size == ELEMENT_BYTES and (by_rows or vectors == 1):
            vectors, runs = 1, self.v.count // FOR_A_SET
        self.most_rows, self.most_columns = vectors * self.v.lanes, runs * spec.together
        self.pointers = spec.pointers(asm)
        # Elements that lie apart are put into the first 16 registers only: what is no set comes first.
        self.converter = Converter(self.v, spec.conversion, take("spare", SPARE), take("zero points", 2))
        self.free, self.column = take("interleaved"), take("column")
        if self.puts_words_up:
            self.zero = take("0")
            self.v.zero(self.zero)
        self.sets = take("rows", vectors * runs, ROWS)

    def block(self, rows: int, columns: int) -> None:
        """Pieces for all sets, rows first, so that lines of dst become whole."""
        for c in range(0, columns, self.most_columns):
            for r in range(0, rows, self.most_rows):
                self.piece(r, min(self.most_rows, rows - r), c, min(self.most_columns, columns - c))

    def piece(self, r: int, rows: int, c: int, columns: int) -> None:
        """Every set holds 16 bytes of a vector of rows; those that have the same columns are stored together."""
        whole, lanes, end = self.spec.together, self.v.lanes, c + columns
        heights = {row: min(lanes, r + rows - row) for row in range(r, r + rows, lanes)}
        places = list(product(range(c, end, whole), heights))
        for i, (first, row) in enumerate(places):
            start = first - self.before(end - first)
            self.load(self.sets[i], row, heights[row], start, min(whole, end - start))
            self.sets[i] = self.transposed(self.sets[i])
        for column in range(c, end):
            for i, (first, row) in enumerate(places):
                if first <= column < first + whole:
                    number, part = divmod(column - first + self.before(end - first), ROWS // self.size)
                    self.store(self.widened(self.sets[i][number], part), row, heights[row], column)

    def before(self, count: int) -> int:
        """How many columns before the last `count` are loaded, too, so that a load takes 16 bytes."""
        whole = self.spec.together
        return whole - count if count < whole <= self.spec.columns else 0

    def store(self, x: Any, r: int, rows: int, c: int) -> None:
        """A column, converted."""
        self.asm.role(f"column {c}, rows {r}-{r + rows - 1}")
        scales = self.place(Argument.SCALES, r, c) if self.spec.conversion.scaled else None
        dst = self.place(Argument.DST, r, c)
        self.converter.apply(x, scales, dst, rows)
        self.converter.store(dst, x, rows)

    def place(self, argument: Argument, row: int, column: int) -> StridedPlace:
        """The elements from (row, column) on, along rows."""
        return StridedPlace(self.pointers[argument], self.spec.at(argument, row, column), self.spec.steps(argument)[0])

    def load(self, xs: list[Any], r: int, rows: int, c: int, columns: int) -> None:
        """16 bytes, or `columns`, of each row; the lanes of rows that are not there are zero."""
        dense = self.converter.dense
        dense.spare = self.converter.spare[0]
        for i, x in enumerate(xs):
            if i >= rows:
                dense.zero(x)
            for quarter, row in enumerate(range(i, rows, ROWS)):
                self.asm.role(f"row {r + row}, columns {c}-{c + columns - 1}")
                source = StridedPlace(self.pointers[Argument.SRC], self.spec.at(Argument.SRC, r + row, c), self.size)
                dense.load(x, source.at(0, 1), columns * self.size, quarter)

    def transposed(self, values: list[Any]) -> list[Any]:
        """The four rows of a column together, in every quarter."""
        self.asm.role("transpose")
        values = self.interleaved(self.interleaved(values))
        for x in values if self.src.is_packed else ():
            packing_of(self.v).sort_halves(x, self.column)
        return values

    def interleaved(self, values: list[Any]) -> list[Any]:
        """Values 2 i and 2 i + 1 become the low and the high interleave of i and i + 2, in each quarter."""
        asm = self.asm
        low, high = {
            1: (asm.VPUNPCKLBW, asm.VPUNPCKHBW),
            2: (asm.VPUNPCKLWD, asm.VPUNPCKHWD),
            4: (asm.VPUNPCKLDQ, asm.VPUNPCKHDQ),
        }[self.size]
        result = []
        for a, b in zip(values[:2], values[2:], strict=True):
            low(self.free, a, b)
            high(a, a, b)
            result += [self.free, a]
            self.free = b
        return result

    def widened(self, value: Any, part: int) -> Any:
        """A register with one of the columns that lie in a value, as f32."""
        asm, v, x, src = self.asm, self.v, self.column, self.src
        spare = self.converter.spare
        if src.stays:
            return value
        if self.size == ELEMENT_BYTES:
            src.widen(v, x, value, spare)
        elif src.is_packed:
            if part:
                packing_of(v).upper_half(x, value)
            src.widen(v, x, low_part(x if part else value, self.size), spare)
        elif self.puts_words_up:
            (asm.VPUNPCKHWD if part else asm.VPUNPCKLWD)(x, self.zero, value)
            src.from_end(v, x, spare)
        else:
            order = byte_order(part, src.is_upper) * (v.bytes // QUARTER_BYTES)
            asm.VPSHUFB(x, value, asm.const(order, v.bytes, size=v.bytes))
            src.from_end(v, x, spare)
        return x

    @property
    def puts_words_up(self) -> bool:
        """Whether elements of 2 bytes are put into the upper ends of lanes."""
        return self.size == 2 and self.src.is_upper


def byte_order(column: int, is_upper: bool) -> bytes:
    """VPSHUFB's order of a quarter, from 4 columns of bytes to the dwords of one, at their lower or upper end."""
    order = bytearray([NOTHING]) * QUARTER_BYTES
    for row in range(ROWS):
        order[ROWS * row + (ROWS - 1) * is_upper] = ROWS * column + row
    return bytes(order)
