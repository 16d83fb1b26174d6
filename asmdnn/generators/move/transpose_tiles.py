"""Tiles of a transpose: small units that are loaded, interleaved in registers, and stored; see transpose.py.

N = 16 / unit units fill half a ymm register; log2(N) rounds of interleaving row i with row i + N/2 transpose N x N of
them in each half.

    stacked        2 N x N: the upper half holds N more rows, so a store writes 2 N units of one column
    side by side   N x 2 N: for few rows, the upper half holds N more columns
    moved          units of 32 bytes: each is a register

Rows of zeros behind those of src make the last tiles: they are stored without being read.
"""

from collections.abc import Callable
from typing import Any, Protocol

from asmdnn.generators.move.pieces import Place
from asmdnn.isa.assembler import Assembler, mem, rsp
from asmdnn.isa.elements import HALF_BYTES, load_bytes, store_bytes

VECTOR_BYTES = 2 * HALF_BYTES
SPILL = mem(rsp, -VECTOR_BYTES, size=VECTOR_BYTES)  # in the red zone: a transpose calls nothing


class Shape(Protocol):
    """What is read here of a TransposeSpec."""

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


class Tiles:
    """Emits tiles of a transpose relative to the pointers `src` and `dst`."""

    def __init__(self, asm: Assembler, spec: Shape, src: Any, dst: Any) -> None:
        self.asm, self.spec, self.src, self.dst = asm, spec, src, dst
        self.unit = spec.unit_bytes
        self.size = HALF_BYTES // self.unit  # N
        self.store_vector: Callable[..., None] = asm.VMOVDQU
        registers = asm.vectors(VECTOR_BYTES, 16)
        self.data = registers.take("rows", max(1, min(self.size, registers.available - 1)))
        self.spare = registers.take("spare")
        self.unpack = {
            1: (asm.VPUNPCKLBW, asm.VPUNPCKHBW),
            2: (asm.VPUNPCKLWD, asm.VPUNPCKHWD),
            4: (asm.VPUNPCKLDQ, asm.VPUNPCKHDQ),
            8: (asm.VPUNPCKLQDQ, asm.VPUNPCKHQDQ),
        }.get(self.unit)

    def block(self, rows: int, columns: int, last: bool) -> None:
        """All tiles of a block of src, and the zeros behind; `last`: no rows and columns of this kernel follow."""
        if self.unit == VECTOR_BYTES:
            self.moves(rows, columns)
            return
        stored = rows + self.spec.zero_rows
        stacked = self.spec.stored_rows > self.size
        high, wide = (2 * self.size, self.size) if stacked else (self.size, 2 * self.size)
        # Rows within columns: lines of dst are whole before others begin, which streaming and aliased lines need.
        for c in range(0, columns, wide):
            for r in range(0, stored, high):
                real = max(0, min(high, rows - r))
                tile = Tile(self, r, min(high, stored - r), real, c, min(wide, columns - c), stacked)
                tile.emit(last and r + high >= rows, last and c + wide >= columns)

    def moves(self, rows: int, columns: int) -> None:
        """Units that are whole vectors."""
        spec, x = self.spec, self.data[0]
        for c in range(columns):
            for r in range(rows):
                self.asm.role(f"row {r}, column {c}")
                self.asm.VMOVDQU(x, mem(self.src, r * spec.src_row_bytes + c * self.unit, size=VECTOR_BYTES))
                self.store_vector(mem(self.dst, c * spec.dst_row_bytes + r * self.unit, size=VECTOR_BYTES), x)
        if spec.zero_rows:
            self.asm.VPXOR(x, x, x)
        for c in range(columns):
            for r in range(rows, rows + spec.zero_rows):
                self.asm.role(f"zeros of column {c}")
                self.store_vector(mem(self.dst, c * spec.dst_row_bytes + r * self.unit, size=VECTOR_BYTES), x)


class Tile:
    """`rows` x `columns` units from row r, column c on, of which `real` rows are src's and the others zero."""

    def __init__(self, tiles: Tiles, r: int, rows: int, real: int, c: int, columns: int, stacked: bool) -> None:
        self.tiles, self.asm, self.spec = tiles, tiles.asm, tiles.spec
        self.r, self.rows, self.real, self.c, self.columns, self.stacked = r, rows, real, c, columns, stacked
        self.free: list[Any] = []

    def emit(self, last_rows: bool, last_columns: bool) -> None:
        if not self.real:
            x = self.tiles.data[0]
            self.asm.role("zeros")
            self.asm.VPXOR(x, x, x)
            self.store([x] * self.tiles.size, last_columns)
            return
        self.store(self.transposed(self.load(last_rows)), last_columns)

    def src(self, row: int, column: int) -> Place:
        offset = (self.r + row) * self.spec.src_row_bytes + (self.c + column) * self.spec.unit_bytes
        return Place(self.tiles.src, offset, self.spec.unit_bytes)

    def dst(self, column: int) -> Place:
        offset = (self.c + column) * self.spec.dst_row_bytes + self.r * self.spec.unit_bytes
        return Place(self.tiles.dst, offset, self.spec.unit_bytes)

    def load(self, last_rows: bool) -> list[Any]:
        """N values, each a register or the spill slot; those of missing rows are undefined, for no store uses them."""
        size, values = self.tiles.size, []
        for i in range(size):
            x = self.tiles.data[i] if i < len(self.tiles.data) else self.tiles.spare
            if i < self.real:
                self.load_row(x, i, last_rows)
            elif i < self.rows:
                self.asm.VPXOR(x, x, x)
            values.append(x)
        if values[-1] is self.tiles.spare:
            values[-1] = self.spilled(self.tiles.spare)
        return values

    def load_row(self, x: Any, i: int, last_rows: bool) -> None:
        size = self.tiles.size
        self.asm.role(f"row {self.r + i}")
        if self.stacked:
            self.load_low(x.xmm, i, 0, self.columns, last_rows and i == self.real - 1)  # clears the upper half
            if i + size < self.real:
                self.load_high(x, i + size, 0, self.columns, last_rows and i + size == self.real - 1)
            return
        last = last_rows and i == self.real - 1
        if self.columns == 2 * size:
            self.asm.VMOVDQU(x, self.src(i, 0).at(0, VECTOR_BYTES))
            return
        self.load_low(x.xmm, i, 0, min(size, self.columns), last)
        if self.columns > size:
            self.load_high(x, i, size, self.columns - size, last)

    def load_low(self, x: Any, row: int, column: int, count: int, last: bool) -> None:
        load_bytes(self.asm, x, self.src(row, column).at(0, 1), self.reach(count * self.spec.unit_bytes, last))

    def load_high(self, x: Any, row: int, column: int, count: int, last: bool) -> None:
        """Into the upper half.  A partial load goes through the upper half of nothing: a register of its own."""
        reach = self.reach(count * self.spec.unit_bytes, last)
        place = self.src(row, column)
        if reach == HALF_BYTES:
            self.asm.VINSERTI128(x, x, place.at(0, HALF_BYTES), 1)
            return
        spare = self.tiles.spare
        if x is spare:  # only the 16th row of bytes; it waits in the lower half of the spill slot
            self.asm.VMOVDQU(mem(rsp, -VECTOR_BYTES, size=HALF_BYTES), x.xmm)
            load_bytes(self.asm, x.xmm, place.at(0, 1), reach)
            self.asm.VMOVDQU(mem(rsp, -HALF_BYTES, size=HALF_BYTES), x.xmm)
            self.asm.VMOVDQU(x, SPILL)
            return
        load_bytes(self.asm, spare.xmm, place.at(0, 1), reach)
        self.asm.VINSERTI128(x, x, spare.xmm, 1)

    def reach(self, count: int, last: bool) -> int:
        """Bytes to load for `count` of a row: as many as one load takes if what follows is the next row."""
        dense = self.spec.src_row_bytes == self.spec.columns * self.spec.unit_bytes
        return count if last or not dense else round_up(count)

    def transposed(self, values: list[Any]) -> list[Any]:
        """Value c holds column c afterwards: in each half log2(N) rounds of interleaving."""
        self.asm.role("transpose")
        self.free = [self.tiles.spare]
        for _ in range(len(values).bit_length() - 1):
            values = self.interleaved(values, len(values) // 2)
        return values

    def interleaved(self, values: list[Any], distance: int) -> list[Any]:
        """Values 2i and 2i + 1 become the low and the high interleave of i and i + distance."""
        assert self.tiles.unpack
        low, high = self.tiles.unpack
        result: list[Any] = [None] * len(values)
        # The pair of the spilled value first: it needs no register for its other half.
        for i in sorted(range(distance), key=lambda i: values[i + distance] is not SPILL):
            a, b = values[i], values[i + distance]
            target = self.free.pop()
            low(target, a, b)
            high(a, a, b)
            self.free.append(a if b is SPILL else b)
            result[2 * i], result[2 * i + 1] = target, self.spilled(a) if b is SPILL else a
        return result

    def spilled(self, x: Any) -> Any:
        self.asm.VMOVDQU(SPILL, x)
        return SPILL

    def store(self, values: list[Any], last_columns: bool) -> None:
        """Columns in rising order: a store may reach into the next column, which is written after it."""
        for half in (0,) if self.stacked else (0, 1):
            for k, value in enumerate(values):
                column = k + half * self.tiles.size
                if column >= self.columns:
                    break
                self.asm.role(f"column {self.c + column}")
                self.store_column(value, column, half, last_columns and column == self.columns - 1)

    def store_column(self, value: Any, column: int, half: int, last: bool) -> None:
        place, count = self.dst(column), self.rows * self.spec.unit_bytes
        dense = self.spec.dst_row_bytes == count and self.rows == self.spec.stored_rows
        reach = round_up(count) if dense and not last and count < HALF_BYTES else count
        x = value
        if value is SPILL:
            x = self.free[0]
            self.asm.VMOVDQU(x, SPILL)
        if reach == VECTOR_BYTES:
            self.tiles.store_vector(place.at(0, VECTOR_BYTES), x)
        elif half or reach > HALF_BYTES:
            if not half:
                store_bytes(self.asm, place.at(0, 1), x.xmm, HALF_BYTES)
            part = reach if half else reach - HALF_BYTES
            upper = Place(place.base, place.offset + (0 if half else HALF_BYTES), place.step)
            if part == HALF_BYTES:
                self.asm.VEXTRACTI128(upper.at(0, HALF_BYTES), x, 1)
            else:
                self.asm.VEXTRACTI128(x.xmm, x, 1)
                store_bytes(self.asm, upper.at(0, 1), x.xmm, part)
        else:
            store_bytes(self.asm, place.at(0, 1), x.xmm, reach)


def round_up(count: int) -> int:
    """To a power of two."""
    return 1 << (count - 1).bit_length()
