"""Rows of bytes as words, which products of bytes take where a level multiplies words.

Arguments are those of convert_block.py.  A conversion by way of f32 would take 8 instructions where this takes one.
"""

from asmdnn.generators.move.conversion import Argument, Conversion
from asmdnn.generators.move.convert_block import ConvertBlock
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dense import QUARTER_BYTES, dense_of
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import INTEGERS8, s8, s16

UNROLLED = 8  # registers of words, a quarter's bytes each
WIDENED = tuple(Conversion(src.name, s16.name) for src in INTEGERS8)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsSpec(ConvertBlock):
    """dst[r, c] = src[r, c], columns dense in both."""

    @property
    def name(self) -> str:
        return f"words_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        x, spare = v.registers.take("words"), v.registers.take("spare")
        dense, pointers, left = dense_of(v, spare), self.pointers(asm), asm.gp.take("rows left")
        spread = asm.VPMOVSXBW if self.conversion.src == s8.name else asm.VPMOVZXBW
        sizes, run = self.conversion.sizes, UNROLLED * QUARTER_BYTES
        looped = self.columns // run if self.columns >= 2 * run else 0

        def places(column: int) -> list[int]:
            return [size * column for size in sizes]

        def some(columns: int) -> None:
            for first in range(0, columns, QUARTER_BYTES):
                count = min(QUARTER_BYTES, columns - first)
                asm.role(f"columns {first}-{first + count - 1}")
                src, dst = places(first)
                source = mem(pointers[Argument.SRC], src, size=QUARTER_BYTES)
                if count < QUARTER_BYTES:
                    dense.load(x, source, count)
                spread(x, source if count == QUARTER_BYTES else x.xmm)
                dense.store_run(mem(pointers[Argument.DST], dst, size=v.bytes), x, sizes[1] * count)

        asm.MOV(left, self.rows)
        with asm.loop(left, "rows"):
            if looped:
                with asm.repeated(looped, "blocks left", "blocks"):
                    some(run)
                    for argument, step in zip((Argument.SRC, Argument.DST), places(run), strict=True):
                        asm.ADD(pointers[argument], step)
            some(self.columns - looped * run)
            done = places(looped * run)
            for argument, at in zip((Argument.SRC, Argument.DST), done, strict=True):
                if step := self.steps(argument)[0] - at:
                    asm.ADD(pointers[argument], step)
        asm.ret()
