"""Reorder blocks that convert to s8 or u8 and change the order: bytes are made before the transpose, not behind it.

Arguments and formula are those of convert_block.py, without the sum.

Four rows of a vector are converted, packed to bytes, and shuffled so that a dword holds the four rows of one column: a
*quad*.  In each quarter of the register these are four columns.  Two or four quads are interleaved by dwords, so that 8
or 16 bytes of a column lie together, and stored.  A transpose of f32 in front of the conversion moves four times as
many bytes: of 8 x 16 elements f32 to s8 it takes 176 instructions with AVX2, this one 64.
"""

from dataclasses import dataclass
from struct import pack
from typing import Any

from asmdnn.generators.move.conversion import LARGEST, Argument, Converter
from asmdnn.generators.move.convert_block import TransposedBlock
from asmdnn.generators.move.pieces import Place
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.elements import extract, pieces, store_bytes
from asmdnn.isa.vectors import vector_of

QUAD = 4  # rows
MOST_ROWS = 4 * QUAD
QUAD_ORDER = bytes(4 * row + column for column in range(4) for row in range(QUAD))  # of bytes, by rows before


@dataclass(frozen=True, slots=True)
class ConvertBytesSpec(TransposedBlock):
    """dst[c, r] = src[r, c] in s8 or u8: columns dense in src, rows dense in dst; the longer side is looped over."""

    @property
    def name(self) -> str:
        return f"transpose_bytes_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        body = Body(self, asm)
        by_rows = self.rows > self.columns
        step, extent = (MOST_ROWS, self.rows) if by_rows else (body.lanes, self.columns)
        blocks, rest = divmod(extent, step)
        left = asm.gp.take("blocks left")
        if blocks:
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                body.block(*((step, self.columns) if by_rows else (self.rows, step)))
                for argument, pointer in body.pointers.items():
                    if distance := step * self.steps(argument)[0 if by_rows else 1]:
                        asm.ADD(pointer, distance)
        if rest:
            body.block(*((rest, self.columns) if by_rows else (self.rows, rest)))
        asm.ret()


class Body:
    """Emits blocks of the kernel relative to its pointers."""

    def __init__(self, spec: ConvertBytesSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        take = self.v.registers.take
        self.quads, self.rows = take("quads", 4), take("rows", QUAD - 1)
        self.spare, self.largest, self.order = take("spare", 3), take("largest"), take("order")
        self.pointers = spec.pointers(asm)
        self.converter = Converter(self.v, spec.conversion, self.spare, take("zero points", 2))
        self.v.broadcast(self.largest, asm.const(pack("<f", LARGEST[spec.conversion.dst]), 4, size=4))
        orders = QUAD_ORDER * (self.v.bytes // QUARTER_BYTES)
        self.v.load(self.order, asm.const(orders, self.v.bytes, size=self.v.bytes))

    @property
    def lanes(self) -> int:
        return self.v.lanes

    def block(self, rows: int, columns: int) -> None:
        """Pieces of at most 16 rows and a vector of columns; rows within columns, so that lines of dst become whole."""
        for c in range(0, columns, self.lanes):
            for r in range(0, rows, MOST_ROWS):
                self.piece(r, min(MOST_ROWS, rows - r), c, min(self.lanes, columns - c))

    def piece(self, r: int, rows: int, c: int, columns: int) -> None:
        first = range(0, rows, QUAD)
        quads = [self.quad(x, r + q, min(QUAD, rows - q), c, columns) for x, q in zip(self.quads, first, strict=False)]
        self.asm.role("transpose")
        whole = self.interleaved(quads)
        for quarter in range(-(-columns // 4)):
            at = Place(self.pointers[Argument.DST], self.spec.at(Argument.DST, r, c + 4 * quarter), 1)
            self.asm.role(f"columns {c + 4 * quarter}-{c + min(columns, 4 * quarter + 4) - 1}")
            self.store(whole, quarter, at, rows, min(4, columns - 4 * quarter))

    def quad(self, x: Any, r: int, rows: int, c: int, columns: int) -> Any:
        """x = for each column a dword of four rows, of which those behind `rows` are undefined."""
        asm, used = self.asm, [x, *self.rows[: rows - 1]]
        for i, row in enumerate(used):
            asm.role(f"row {r + i}, columns {c}-{c + columns - 1}")
            self.integers(row, r + i, c, columns)
        asm.role(f"rows {r}-{r + rows - 1} of a column")
        words, octets = self.converter.packs(self.spec.conversion.dst)
        a, b, d, e = (used[min(i, rows - 1)] for i in range(QUAD))
        words(x, a, b)
        if rows > 2:
            words(d, d, e)
        octets(x, x, d if rows > 2 else x)
        asm.VPSHUFB(x, x, self.order)
        return x

    def integers(self, x: Any, r: int, c: int, columns: int) -> None:
        """x = a row as s32, by the formula; where nothing is computed the comparison loads it itself."""
        conversion, spec = self.spec.conversion, self.spec
        places = {a: Place(p, spec.at(a, r, c), spec.steps(a)[1]) for a, p in self.pointers.items()}
        source: Any = x
        plain = not (conversion.scaled or conversion.src_zero_point or conversion.dst_zero_point)
        if plain and conversion.src == "f32" and columns == self.lanes:
            source = places[Argument.SRC].at(0, self.v.bytes)
        else:
            self.converter.load(x, places[Argument.SRC], columns, conversion.src)
            self.converter.apply(x, places.get(Argument.SCALES), places[Argument.DST], columns)
        self.asm.VMINPS(x, self.largest, source)  # the source where it is NaN
        self.asm.VCVTPS2DQ(x, x)

    def interleaved(self, quads: list[Any]) -> list[Any]:
        """One, two or four registers; number i of n holds, in each quarter, the columns i * 4 / n and those behind."""
        asm, low, high = self.asm, self.rows[:2], [self.rows[2], self.spare[0]]
        if len(quads) == 1:
            return quads
        pairs = [*quads, quads[-1]] if len(quads) % 2 else quads
        for i, (a, b) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
            asm.VPUNPCKLDQ(low[i], a, b)
            asm.VPUNPCKHDQ(high[i], a, b)
        if len(quads) == 2:
            return [low[0], high[0]]
        for i, (a, b) in enumerate((low, high)):
            asm.VPUNPCKLQDQ(self.quads[2 * i], a, b)
            asm.VPUNPCKHQDQ(self.quads[2 * i + 1], a, b)
        return list(self.quads)

    def store(self, whole: list[Any], quarter: int, place: Place, rows: int, columns: int) -> None:
        """Of one quarter up to four columns of `rows` bytes."""
        together = 4 // len(whole)  # columns in a register's quarter
        part, step = QUARTER_BYTES // together, self.spec.dst_steps[1]
        touching = step == part == rows  # columns lie one behind another
        for i, x in enumerate(whole[: -(-columns // together)]):
            count = min(together, columns - i * together)
            target = place.at(i * together * step, QUARTER_BYTES)
            if quarter and (rows == QUARTER_BYTES or (touching and count == together)):
                self.converter.dense.extract(target, x, quarter)
                continue
            low = x.xmm
            if quarter:
                low = self.spare[1].xmm
                self.converter.dense.extract(low, x, quarter)
            if touching:
                self.bytes_of(target, low, 0, part * count)
                continue
            for j in range(count):
                self.bytes_of(target.shifted(j * step), low, j * part, rows)

    def bytes_of(self, target: Any, x: Any, start: int, count: int) -> None:
        """Bytes of an xmm register; `start` is a multiple of every power of two in `count`."""
        if start == 0:
            store_bytes(self.asm, target, x, count)
            return
        for offset, size in pieces(count):
            extract(self.asm, target.shifted(offset).sized(size), x, size, (start + offset) // size)
