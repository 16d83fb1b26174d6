"""Reorder blocks that convert to elements of 1 or 2 bytes and change the order: made small before the transpose.

Arguments and formula are those of convert_block.py, without the sum.

Four rows of a vector, two of elements of 2 bytes, are converted, packed, and shuffled so that a dword holds these rows
of one column: a *group*.  In each quarter of the register these are four columns.  Two or four groups are interleaved
by dwords, so that 8 or 16 bytes of a column lie together, and stored.  A transpose of f32 in front of the conversion
moves four times as many bytes: of 8 x 16 elements f32 to s8 it takes 176 instructions with AVX2, this one 64.
"""

from typing import Any

from asmdnn.generators.contract import Range
from asmdnn.generators.move.conversion import Argument, Conversion, Converter
from asmdnn.generators.move.convert_block import TransposedBlock, ranges
from asmdnn.generators.move.pieces import StridedPlace
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dense import QUARTER_BYTES
from asmdnn.isa.element import SPARE
from asmdnn.isa.pieces import extract, pieces, store_bytes
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

GROUP_BYTES = 4  # of a column
COLUMNS = QUARTER_BYTES // GROUP_BYTES  # that a quarter of a register has a group of


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertNarrowSpec(TransposedBlock):
    """dst[c, r] = src[r, c]: columns dense in src, rows dense in dst; the longer side is looped over.

    zero_rows: of zeros after the others, all together as many as one piece has, and not more than there are columns."""

    zero_rows: int = 0

    @property
    def name(self) -> str:
        zeros = f"z{self.zero_rows}_" if self.zero_rows else ""
        return f"transpose_narrow_{zeros}{self.block_name}"

    def writes(self) -> tuple[Range, ...]:
        row, column = self.dst_steps
        rows = self.rows + self.zero_rows
        return ranges(Argument.DST, self.columns, rows, (column, row), self.conversion.sizes[1])

    @property
    def group(self) -> int:
        """Rows that make a dword."""
        return GROUP_BYTES // self.conversion.sizes[1]

    @property
    def most_rows(self) -> int:
        """Rows of a column that fill 16 bytes."""
        return QUARTER_BYTES // self.conversion.sizes[1]

    def generate(self, asm: Assembler) -> None:
        body = NarrowCode(self, asm)
        by_rows = self.rows > self.columns
        self.emit_blocks(asm, body, by_rows, self.most_rows if by_rows else body.lanes)


class NarrowCode:
    """Emits blocks of the kernel relative to its pointers."""

    def __init__(self, spec: ConvertNarrowSpec, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        take = self.v.registers.take
        self.groups, self.rows = take("groups", 4), take("rows", 3)
        self.spare, self.order = take("spare", SPARE), take("order")
        self.pointers = spec.pointers(asm)
        self.converter = Converter(self.v, spec.conversion, self.spare, take("zero points", 2))
        self.zero = take("zero") if spec.zero_rows else None
        if self.zero is not None:
            self.v.zero(self.zero)
        self.dst = self.converter.dst
        if self.dst.limits:
            self.largest = take("largest")
            self.dst.load_largest(self.v, self.largest)
        order = order_of(spec.conversion.sizes[1]) * (self.v.bytes // QUARTER_BYTES)
        self.v.load(self.order, asm.const(order, self.v.bytes, size=self.v.bytes))

    @property
    def lanes(self) -> int:
        return self.v.lanes

    def block(self, rows: int, columns: int) -> None:
        """Pieces of a vector of columns and 16 bytes of rows, rows first, so that lines of dst become whole."""
        most = self.spec.most_rows
        for c in range(0, columns, self.lanes):
            for r in range(0, rows, most):
                self.piece(r, min(most, rows - r), c, min(self.lanes, columns - c))

    def piece(self, r: int, rows: int, c: int, columns: int) -> None:
        size, first = self.spec.group, range(0, rows, self.spec.group)
        groups = [
            self.group(x, r + i, min(size, rows - i), c, columns) for x, i in zip(self.groups, first, strict=False)
        ]
        rows += self.spec.zero_rows
        groups += [self.zero] * (-(-rows // size) - len(groups))
        self.asm.role("transpose")
        whole = self.interleaved(groups)
        for quarter, begin in enumerate(range(0, columns, COLUMNS)):
            count = min(COLUMNS, columns - begin)
            at = StridedPlace(self.pointers[Argument.DST], self.spec.at(Argument.DST, r, c + begin), 1)
            self.asm.role(f"columns {c + begin}-{c + begin + count - 1}")
            self.store(whole, quarter, at, rows * self.spec.conversion.sizes[1], count)

    def group(self, x: Any, r: int, rows: int, c: int, columns: int) -> Any:
        """x = for each column a dword of its rows, of which those after `rows` are zeros if there are such."""
        used = [x, *self.rows[: rows - 1]]
        for i, row in enumerate(used):
            self.asm.role(f"row {r + i}, columns {c}-{c + columns - 1}")
            self.narrowed(row, r + i, c, columns)
        self.asm.role(f"rows {r}-{r + rows - 1} of a column")
        words, octets = self.dst.packs(self.asm)
        fill = self.zero if self.zero is not None else used[-1]
        words(x, x, used[1] if rows > 1 else fill)
        if self.spec.group > 2:
            if rows > 2:
                words(used[2], used[2], used[3] if rows > 3 else fill)
            octets(x, x, used[2] if rows > 2 else fill if self.zero is not None else x)
        self.asm.VPSHUFB(x, x, self.order)
        return x

    def narrowed(self, x: Any, r: int, c: int, columns: int) -> None:
        """x = a row by the formula, as dwords that packs narrow; a minimum loads itself what is not computed with."""
        conversion, spec = self.spec.conversion, self.spec
        places = {a: StridedPlace(p, spec.at(a, r, c), spec.steps(a)[1]) for a, p in self.pointers.items()}
        source: Any = x
        plain = conversion == Conversion("f32", conversion.dst)
        if plain and self.dst.limits and columns == self.lanes:
            source = places[Argument.SRC].at(0, self.v.bytes)
        else:
            self.converter.load(x, places[Argument.SRC], columns, conversion.src)
            self.converter.apply(x, places.get(Argument.SCALES), places[Argument.DST], columns)
        if self.dst.limits:
            self.asm.VMINPS(x, self.largest, source)  # the source where it is NaN
            self.asm.VCVTPS2DQ(x, x)
        else:
            self.dst.round(self.v, x, self.spare)

    def interleaved(self, groups: list[Any]) -> list[Any]:
        """One, two or four registers; number i of n holds, in each quarter, the columns i * 4 / n and those after."""
        asm, low, high = self.asm, self.rows[:2], [self.rows[2], self.spare[0]]
        if len(groups) == 1:
            return groups
        pairs = [*groups, groups[-1]] if len(groups) % 2 else groups
        for i, (a, b) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
            asm.VPUNPCKLDQ(low[i], a, b)
            asm.VPUNPCKHDQ(high[i], a, b)
        if len(groups) == 2:
            return [low[0], high[0]]
        for i, (a, b) in enumerate((low, high)):
            asm.VPUNPCKLQDQ(self.groups[2 * i], a, b)
            asm.VPUNPCKHQDQ(self.groups[2 * i + 1], a, b)
        return list(self.groups)

    def store(self, whole: list[Any], quarter: int, place: StridedPlace, size: int, columns: int) -> None:
        """Of one quarter up to four columns of `size` bytes."""
        together = COLUMNS // len(whole)  # columns in a register's quarter
        part, step = QUARTER_BYTES // together, self.spec.dst_steps[1]
        touching = step == part == size  # columns lie one after another
        for i, x in enumerate(whole[: -(-columns // together)]):
            count = min(together, columns - i * together)
            target = place.at(i * together * step, QUARTER_BYTES)
            if quarter and (size == QUARTER_BYTES or (touching and count == together)):
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
                self.bytes_of(target.shifted(j * step), low, j * part, size)

    def bytes_of(self, target: Any, x: Any, start: int, count: int) -> None:
        """Bytes of an xmm register; `start` is a multiple of every power of two in `count`."""
        if start == 0:
            store_bytes(self.asm, target, x, count)
            return
        for offset, size in pieces(count):
            extract(self.asm, target.shifted(offset).sized(size), x, size, (start + offset) // size)


def order_of(size: int) -> bytes:
    """VPSHUFB's order of a quarter, from rows of elements of that size to groups of each column."""
    rows, columns, octets = range(GROUP_BYTES // size), range(COLUMNS), range(size)
    return bytes(COLUMNS * size * row + size * column + i for column in columns for row in rows for i in octets)
