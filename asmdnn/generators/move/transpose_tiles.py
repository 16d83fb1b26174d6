"""Tiles of a transpose: small units that are loaded, interleaved in registers, and stored; see transpose.py.

N = 16 / unit units fill a quarter of a register, 16 bytes; log2(N) rounds of interleaving row i with row i + N/2
transpose N x N of them in each quarter.

    stacked        the quarters hold further rows, so a store writes N units of one column for each of them
    side by side   for few rows, the other quarters hold further columns
    moved          units of 32 bytes: each is half a register or all of it

As many quarters are stacked as there are rows for, 1, 2 or 4.  Rows of zeros after those of src make the last tiles:
they are stored without being read.
"""

from typing import Any, Protocol

from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Assembler, mem, rsp
from asmdnn.isa.dense import QUARTER_BYTES, dense_of
from asmdnn.isa.vectors import vector_of

MOVED_BYTES = 2 * QUARTER_BYTES
MOST_UNPACKED = QUARTER_BYTES // 2
SPILL = mem(rsp, -MOVED_BYTES, size=MOVED_BYTES)  # in the red zone: a transpose calls nothing


class TransposeFields(Protocol):
    """What is read here of a TransposeSpec."""

    @property
    def isa(self) -> str: ...
    @property
    def unit_bytes(self) -> int: ...
    @property
    def src_row_bytes(self) -> int: ...
    @property
    def dst_row_bytes(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def zero_rows(self) -> int: ...
    @property
    def stored_rows(self) -> int: ...
    @property
    def by_lines(self) -> bool: ...
    @property
    def group(self) -> int: ...
    def column_bytes(self, column: int) -> int: ...


class TransposeCode:
    """Emits tiles of a transpose relative to the pointers `src` and `dst`."""

    def __init__(self, asm: Assembler, spec: TransposeFields, src: Any, dst: Any) -> None:
        self.asm, self.spec, self.src, self.dst = asm, spec, src, dst
        self.unit = spec.unit_bytes
        self.size = QUARTER_BYTES // self.unit  # N
        self.vector = vector_of(spec.isa, asm)
        registers = self.vector.registers
        self.data = registers.take("rows", max(1, min(self.size, registers.available - 1)))
        self.spare = registers.take("spare")
        self.dense = dense_of(self.vector, self.spare)
        self.stacked, self.beside = quarters_of(spec, self.vector.bytes)
        self.unpack = None if self.unit > MOST_UNPACKED else unpacks(asm, self.unit)

    def block(self, rows: int, columns: int, last: bool) -> None:
        """All tiles of a block of src, and the zeros after; `last`: no rows and columns of this kernel follow."""
        if self.unit == MOVED_BYTES:
            self.moves(rows, columns)
            return
        stored = rows + self.spec.zero_rows
        high, wide = self.stacked * self.size, self.beside * self.size
        # Rows within columns: lines of dst are whole before others begin, which streaming and aliased lines need.
        places = [(r, c) for c in range(0, columns, wide) for r in range(0, stored, high)]
        for r, c in sorted(places) if self.spec.by_lines else places:
            real = max(0, min(high, rows - r))
            tile = TransposeTile(self, r, min(high, stored - r), real, c, min(wide, columns - c))
            tile.emit(last and r + high >= rows, last and c + wide >= columns)

    def moves(self, rows: int, columns: int) -> None:
        """Units that are no smaller than what is interleaved."""
        spec, x = self.spec, self.data[0].ymm
        store = self.asm.VMOVNTDQ if self.dense.streaming else self.asm.VMOVDQU
        for c in range(columns):
            for r in range(rows):
                self.asm.role(f"row {r}, column {c}")
                self.asm.VMOVDQU(x, mem(self.src, r * spec.src_row_bytes + c * self.unit, size=MOVED_BYTES))
                store(mem(self.dst, spec.column_bytes(c) + r * self.unit, size=MOVED_BYTES), x)
        if spec.zero_rows:
            self.asm.VPXOR(x, x, x)
        for c in range(columns):
            for r in range(rows, rows + spec.zero_rows):
                self.asm.role(f"zeros of column {c}")
                store(mem(self.dst, spec.column_bytes(c) + r * self.unit, size=MOVED_BYTES), x)


def unpacks(asm: Assembler, unit_bytes: int) -> tuple[Combine, Combine]:
    """The instructions that interleave units of two registers, the low halves of quarters and the high ones."""
    return {
        1: (asm.VPUNPCKLBW, asm.VPUNPCKHBW),
        2: (asm.VPUNPCKLWD, asm.VPUNPCKHWD),
        4: (asm.VPUNPCKLDQ, asm.VPUNPCKHDQ),
        8: (asm.VPUNPCKLQDQ, asm.VPUNPCKHQDQ),
    }[unit_bytes]


def quarters_of(spec: TransposeFields, vector_bytes: int) -> tuple[int, int]:
    """How many quarters of a register lie stacked, and how many stacks side by side."""
    quarters, stacked = vector_bytes // QUARTER_BYTES, 1
    while stacked < quarters and stacked * QUARTER_BYTES < spec.stored_rows * spec.unit_bytes:
        stacked *= 2
    return stacked, quarters // stacked


class TransposeTile:
    """`rows` x `columns` units from row r, column c on, of which `real` rows are src's and the others zero."""

    def __init__(self, tiles: TransposeCode, r: int, rows: int, real: int, c: int, columns: int) -> None:
        self.tiles, self.asm, self.spec, self.dense = tiles, tiles.asm, tiles.spec, tiles.dense
        self.r, self.rows, self.real, self.c, self.columns = r, rows, real, c, columns
        self.free: list[Any] = []

    def emit(self, last_rows: bool, last_columns: bool) -> None:
        if not self.real:
            x = self.tiles.data[0]
            self.asm.role("zeros")
            self.dense.zero(x)
            self.free = [self.tiles.spare]
            self.store([x] * self.tiles.size, last_columns)
            return
        self.store(self.transposed(self.load(last_rows)), last_columns)

    def src(self, row: int, column: int) -> Any:
        offset = (self.r + row) * self.spec.src_row_bytes + (self.c + column) * self.spec.unit_bytes
        return mem(self.tiles.src, offset, size=1)

    def dst(self, column: int) -> Any:
        offset = self.spec.column_bytes(self.c + column) + self.r * self.spec.unit_bytes
        return mem(self.tiles.dst, offset, size=1)

    def load(self, last_rows: bool) -> list[Any]:
        """N values, each a register or the spill slot; None for missing rows, of which no store uses a unit."""
        size, values = self.tiles.size, list[Any]()
        self.free = [self.tiles.spare]
        self.dense.spare = self.tiles.spare
        for i in range(size):
            x = self.tiles.data[i] if i < len(self.tiles.data) else self.tiles.spare
            if i >= max(self.real, self.rows):
                self.free += [x] * (x is not self.tiles.spare)
                values.append(None)
                continue
            if i < self.real:
                self.load_row(x, i, last_rows)
            else:
                self.dense.zero(x)
            values.append(x)
        if values[-1] is self.tiles.spare:
            values[-1] = self.spilled(self.tiles.spare)
        return values

    def load_row(self, x: Any, i: int, last_rows: bool) -> None:
        """Row i of each stack, quarter by quarter; the first quarter clears the others."""
        tiles, size = self.tiles, self.tiles.size
        self.asm.role(f"row {self.r + i}")
        if tiles.stacked == 1 and self.columns == tiles.beside * size:
            self.dense.load_vector(x, self.src(i, 0))
            return
        for column in range(0, self.columns, size):
            for level, row in enumerate(range(i, self.real, size)):
                count = min(size, self.columns - column) * self.spec.unit_bytes
                reach = self.reach(count, last_rows and row == self.real - 1)
                self.dense.load(x, self.src(row, column), reach, column // size * tiles.stacked + level)

    def reach(self, count: int, last: bool) -> int:
        """Bytes to load for `count` of a row: as many as one load takes if what follows is the next row."""
        dense = self.spec.src_row_bytes == self.spec.columns * self.spec.unit_bytes
        return count if last or not dense else round_up(count)

    def transposed(self, values: list[Any]) -> list[Any]:
        """Value c holds column c afterwards: in each quarter log2(N) rounds of interleaving."""
        self.asm.role("transpose")
        for _ in range(len(values).bit_length() - 1):
            values = self.interleaved(values, len(values) // 2)
        return values

    def interleaved(self, values: list[Any], distance: int) -> list[Any]:
        """Values 2i and 2i + 1 become the low and the high interleave of i and i + distance, or of i and anything."""
        assert self.tiles.unpack
        low, high = self.tiles.unpack
        result: list[Any] = [None] * len(values)
        # The pair of the spilled value first: it needs no register for its other half.
        for i in sorted(range(distance), key=lambda i: values[i + distance] is not SPILL):
            a, b = values[i], values[i + distance]
            if a is None:  # and so are all that come after it
                continue
            target = self.free.pop()
            low(target, a, a if b is None else b)
            high(a, a, a if b is None else b)
            spills = b is SPILL or (b is None and i + distance >= len(self.tiles.data))
            self.free += [a] if spills else [] if b is None else [b]
            result[2 * i], result[2 * i + 1] = target, self.spilled(a) if spills else a
        return result

    def spilled(self, x: Any) -> Any:
        self.asm.VMOVDQU(SPILL, x)
        return SPILL

    def store(self, values: list[Any], last_columns: bool) -> None:
        """Columns in rising order: a store may reach into the next column, which is written after it."""
        size = self.tiles.size
        self.dense.spare = self.free[0]
        for beside in range(self.tiles.beside):
            for k, value in enumerate(values[: max(0, self.columns - beside * size)]):
                column = k + beside * size
                self.asm.role(f"column {self.c + column}")
                quarter = beside * self.tiles.stacked
                self.store_column(value, column, quarter, last_columns and column == self.columns - 1)

    def store_column(self, value: Any, column: int, quarter: int, last: bool) -> None:
        count = self.rows * self.spec.unit_bytes
        dense = self.spec.dst_row_bytes == count and self.rows == self.spec.stored_rows and not self.spec.group
        reach = round_up(count) if dense and not last and count < QUARTER_BYTES else count
        x = value
        if value is SPILL:
            x = self.free[0]
            self.asm.VMOVDQU(x, SPILL)
        self.dense.store(self.dst(column), x, reach, quarter)


def round_up(count: int) -> int:
    """To a power of two."""
    return 1 << (count - 1).bit_length()
