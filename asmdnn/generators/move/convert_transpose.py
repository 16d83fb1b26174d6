"""Reorder blocks that change the element type and the order: transposes of 8 x 8 elements in registers.

Arguments and formula are those of convert_block.py.  They use AVX2 with F16C, which every supported level has.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

from asmdnn.generators.move.conversion import LANES, Argument, Converter
from asmdnn.generators.move.convert_block import TransposedBlock
from asmdnn.generators.move.pieces import Place
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of

PLAIN = ("b8", "b16", "b32")  # bits, with which nothing is computed


@dataclass(frozen=True, slots=True)
class ConvertTransposeSpec(TransposedBlock):
    """dst[c, r] = src[r, c]: columns dense in src, rows dense in dst; the longer side is looped over, 8 at a time."""

    @property
    def name(self) -> str:
        return f"transpose_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        left = asm.gp.take("blocks left")
        pointers = self.pointers(asm)
        rows, columns = v.registers.take("rows", LANES), v.registers.take("columns", LANES)
        converter = Converter(v, self.conversion, columns[:3], [])
        by_rows = self.rows > self.columns
        blocks, rest = divmod(self.rows if by_rows else self.columns, LANES)

        def block(extent: int) -> None:
            shape = (extent, self.columns) if by_rows else (self.rows, extent)
            for r, c in product(range(0, shape[0], LANES), range(0, shape[1], LANES)):
                origin = {a: Place(p, self.at(a, r, c), 0) for a, p in pointers.items()}
                square = (min(LANES, shape[0] - r), min(LANES, shape[1] - c))
                self.square(v, converter, rows, columns, origin, square)

        if blocks:
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                block(LANES)
                for argument, pointer in pointers.items():
                    if step := LANES * self.steps(argument)[0 if by_rows else 1]:
                        asm.ADD(pointer, step)
        if rest:
            block(rest)
        asm.ret()

    def square(
        self,
        v: Vector,
        converter: Converter,
        rows: list[Any],
        columns: list[Any],
        origin: dict[Argument, Place],
        shape: tuple[int, int],
    ) -> None:
        """At most 8 x 8 elements: rows into registers, transposed, converted, out by columns."""
        converter.spare = columns[:3]
        for r in range(shape[0]):
            v.asm.role(f"row {r}")
            converter.load(rows[r], self.moved(origin, Argument.SRC, r, 0, 1), shape[1], self.conversion.src)
        if self.conversion.src not in PLAIN:
            for missing in rows[shape[0] :]:  # what they hold could be denormals, whose arithmetic is slow
                v.asm.VXORPS(missing, missing, missing)
        v.asm.role("transpose")
        transpose_8x8(v, rows, columns)
        converter.spare = rows[:3]
        for c in range(shape[1]):
            v.asm.role(f"column {c}")
            dst = self.moved(origin, Argument.DST, 0, c, 0)
            scales = self.moved(origin, Argument.SCALES, 0, c, 0) if self.conversion.scaled else None
            converter.apply(columns[c], scales, dst, shape[0])
            converter.store(dst, columns[c], shape[0])

    def moved(self, origin: dict[Argument, Place], argument: Argument, row: int, column: int, along: int) -> Place:
        """The elements from (row, column) on, along rows (0) or columns (1)."""
        place = origin[argument]
        return Place(place.base, place.offset + self.at(argument, row, column), self.steps(argument)[along])


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
