"""What tiles of a shifted source start from: what the shift would add to their sums, the other way round.

    starts[n] = -(shift + zero_point) * sum over rows r of a list of sums[r + n], or of -sums if these are `negated`

because sum of (a + s) * w is sum of a * w, plus s * sum of w.  Where some of the taps of a pixel lie in the padding its
list leaves them out: padding is not read, so that it counts as zero_point, which is what it stands for.

| argument   | dtype[shape]        | what it is |
|---|---|---|
| sums       | s32[.., vectors]    | sums of weights over the input channels, a row for each kernel position |
| rows       | int64[1 + n]        | n, then as many byte offsets of sums |
| zero_point | s32[1]              | of src; only read if has_zero_point |
| starts     | s32[vectors]        | whole vectors |

Modulo 2^32, as all sums of bytes.
"""

from typing import Final

from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import s32

ARGUMENTS: Final = ("sums", "rows", "zero_point", "starts")
SUMS, ROWS, ZERO_POINT, STARTS = range(len(ARGUMENTS))
WORD_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsSpec:
    """So many vectors of starts; shift: what is added to every element of src on its way.  negated: sums are -1 times
    those of weights, as they lie after packed ones."""

    isa: str
    vectors: int
    shift: int
    has_zero_point: bool
    negated: bool = False
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        words = [f"{self.vectors}x{lanes_of(self.isa)}", f"shift{self.shift}"] + ["zero_point"] * self.has_zero_point
        words += ["negated"] * self.negated
        return f"starts_s32_{'_'.join(words)}__{self.isa}"

    def footprint(self) -> Footprint:
        size = self.vectors * lanes_of(self.isa) * s32.size_bytes
        zero_point = (Range(ZERO_POINT, 0, s32.size_bytes),) * self.has_zero_point
        return Footprint(zero_point, (Range(STARTS, 0, size),), TapList(ROWS, (SUMS,), ((Range(SUMS, 0, size),),)))

    def generate(self, asm: Assembler) -> None:
        v, gp = vector_of(self.isa, asm), asm.gp
        total, factor = v.registers.take("total", self.vectors), v.registers.take("factor")
        sums, rows, left, row = (gp.take(name) for name in ("sums", "rows", "rows left", "row"))
        asm.MOV(sums, mem(asm.frame, WORD_BYTES * SUMS))
        asm.MOV(rows, mem(asm.frame, WORD_BYTES * ROWS))
        v.zeros(total)
        asm.MOV(left, mem(rows))
        with unless_zero(asm, left, "rows_done"), asm.loop(left, "rows"):
            asm.ADD(rows, WORD_BYTES)
            asm.MOV(row, mem(rows))
            asm.ADD(row, sums)
            for j, x in enumerate(total):
                asm.VPADDD(x, x, mem(row, j * v.bytes, size=v.bytes))
        asm.role("finish")
        v.zero(factor)
        take = asm.VPADDD if self.negated else asm.VPSUBD
        if self.shift:
            take(factor, factor, v.splat(self.shift))
        if self.has_zero_point:
            shifts = v.registers.take("zero point")
            asm.MOV(row, mem(asm.frame, WORD_BYTES * ZERO_POINT))
            v.broadcast(shifts, mem(row, size=s32.size_bytes))
            take(factor, factor, shifts)
        starts = gp.take("starts")
        asm.MOV(starts, mem(asm.frame, WORD_BYTES * STARTS))
        for j, x in enumerate(total):
            asm.VPMULLD(x, x, factor)
            v.store(mem(starts, j * v.bytes, size=v.bytes), x)
        asm.ret()
