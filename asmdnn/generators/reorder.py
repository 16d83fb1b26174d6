"""f32 reorder blocks: copies, transposes through registers, and zero fill.

| argument | dtype[shape] | what it is |
|---|---|---|
| src | f32[rows, columns] | rows src_row_bytes apart, columns dense; no other byte is read |
| dst | f32[...]           | see each spec; no other byte is written |

They use AVX2, which every supported level has.
"""

from dataclasses import dataclass
from typing import Any

from asmdnn.generators.footprint import Footprint, Range
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vector import Vector, vector_of

SRC, DST = range(2)
ARGUMENTS = ("src", "dst")
BLOCK = 8  # a transpose's square: lanes of a ymm register


def rows_of(argument: int, rows: int, row_bytes: int, width_bytes: int) -> tuple[Range, ...]:
    return tuple(Range(argument, r * row_bytes, r * row_bytes + width_bytes) for r in range(rows))


@dataclass(frozen=True, slots=True)
class CopySpec:
    """dst[r, c] = src[r, c], or 0 when `zero`; columns dense in both."""

    isa: str
    rows: int
    columns: int
    src_row_bytes: int
    dst_row_bytes: int
    zero: bool = False

    @property
    def name(self) -> str:
        source = "zero" if self.zero else f"s{self.src_row_bytes}"
        return f"copy_f32_{self.rows}x{self.columns}_{source}_d{self.dst_row_bytes}__{self.isa}"

    def footprint(self) -> Footprint:
        reads = () if self.zero else rows_of(SRC, self.rows, self.src_row_bytes, 4 * self.columns)
        return Footprint(reads, rows_of(DST, self.rows, self.dst_row_bytes, 4 * self.columns))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        src, dst, left = (asm.gp.take(name) for name in ("src", "dst", "rows left"))
        asm.role("start")
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        asm.MOV(left, self.rows)
        vectors = -(-self.columns // v.lanes)
        with v.parts(vectors, self.columns) as parts:
            data = v.registers.take("data", min(vectors, v.registers.available))
            for x in data if self.zero else ():
                v.zero(x)
            asm.role("row")
            with asm.loop(left, "rows"):
                for j, part in enumerate(parts):
                    x = data[j % len(data)]
                    if not self.zero:
                        part.load(x, mem(src, j * v.bytes, size=v.bytes))
                    part.store(mem(dst, j * v.bytes, size=v.bytes), x)
                asm.ADD(src, self.src_row_bytes)
                asm.ADD(dst, self.dst_row_bytes)
        asm.ret()


@dataclass(frozen=True, slots=True)
class TransposeSpec:
    """dst[c, r] = src[r, c] for at most 8 rows; dst's rows are dense and dst_row_bytes apart."""

    isa: str
    rows: int
    columns: int
    src_row_bytes: int
    dst_row_bytes: int

    @property
    def name(self) -> str:
        return f"transpose_f32_{self.rows}x{self.columns}_s{self.src_row_bytes}_d{self.dst_row_bytes}__{self.isa}"

    def footprint(self) -> Footprint:
        return Footprint(
            rows_of(SRC, self.rows, self.src_row_bytes, 4 * self.columns),
            rows_of(DST, self.columns, self.dst_row_bytes, 4 * self.rows),
        )

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        src, dst, left = (asm.gp.take(name) for name in ("src", "dst", "blocks left"))
        asm.role("start")
        asm.MOV(src, mem(asm.frame, 8 * SRC))
        asm.MOV(dst, mem(asm.frame, 8 * DST))
        blocks, rest = divmod(self.columns, BLOCK)
        if blocks:
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                self.block(v, src, dst, BLOCK)
                asm.role("next block")
                asm.ADD(src, 4 * BLOCK)
                asm.ADD(dst, BLOCK * self.dst_row_bytes)
        if rest:
            self.block(v, src, dst, rest)
        asm.ret()

    def block(self, v: Vector, src: Any, dst: Any, columns: int) -> None:
        """Transpose `columns` columns of all rows."""
        rows = v.registers.take("rows", BLOCK)
        v.asm.role("load rows")
        with v.parts(1, columns) as (part,):
            for r, x in enumerate(rows):
                if r < self.rows:
                    part.load(x, mem(src, r * self.src_row_bytes, size=v.bytes))
                else:
                    v.zero(x)
        transposed = v.registers.take("transposed", BLOCK)
        v.asm.role("transpose")
        transpose_8x8(v, rows, transposed)
        v.registers.free(*rows)
        v.asm.role("store columns")
        with v.parts(1, self.rows) as (part,):
            for c in range(columns):
                part.store(mem(dst, c * self.dst_row_bytes, size=v.bytes), transposed[c])
        v.registers.free(*transposed)


def transpose_8x8(v: Vector, x: list[Any], t: list[Any]) -> None:
    """t = the transpose of the 8 ymm registers x, which are overwritten: pairs, quads, then halves."""
    asm = v.asm
    for i in range(0, 8, 2):
        asm.VUNPCKLPS(t[i], x[i], x[i + 1])
        asm.VUNPCKHPS(t[i + 1], x[i], x[i + 1])
    for i in (0, 4):
        for j in (0, 1):
            asm.VSHUFPS(x[i + 2 * j], t[i + j], t[i + 2 + j], 0x44)
            asm.VSHUFPS(x[i + 2 * j + 1], t[i + j], t[i + 2 + j], 0xEE)
    for i in range(4):
        asm.VPERM2F128(t[i], x[i], x[i + 4], 0x20)
        asm.VPERM2F128(t[i + 4], x[i], x[i + 4], 0x31)


ReorderSpec = CopySpec | TransposeSpec
