"""f32 matrix-vector products whose matrix has its sums along its rows: as fast as memory gives them.

    dst[r, lane] = sum over the k of that lane of src[r, k] * weights[k]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, depth] | row r at r * src_row_bytes, dense; nothing past the depth is read |
| weights | f32[depth]       | dense |
| dst     | f32[rows, lanes] | dense; only written: what is left to add up, in lanes of one vector |

Each step takes two vectors of STRIP rows, so that each row is a stream that the hardware prefetches.
"""

from dataclasses import dataclass
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.operands import DST, OPERANDS, SRC, WEIGHTS, load_operands
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of

STRIP = 4  # rows at a time: with two vectors of each, sums enough to hide the latency of a multiply
CHUNK = 2  # vectors of a row in a step


@dataclass(frozen=True, slots=True)
class DotsSpec:
    """Everything that the bytes of the kernel depend on; rows and depth > 0."""

    isa: str
    rows: int
    depth: int
    src_row_bytes: int

    @property
    def name(self) -> str:
        return f"dots_f32_{self.rows}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return OPERANDS

    def footprint(self) -> Footprint:
        size = 4 * self.depth
        src = (Range(SRC, r * self.src_row_bytes, r * self.src_row_bytes + size) for r in range(self.rows))
        dst = Range(DST, 0, 4 * lanes_of(self.isa) * self.rows)
        return Footprint((*src, Range(WEIGHTS, 0, size)), (dst,))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), whose words `frame` names."""
        v = vector_of(self.isa, asm)
        pointers = load_operands(asm)
        strips, rest = divmod(self.rows, STRIP)
        if strips:
            left = asm.gp.take("strips left")
            asm.MOV(left, strips)
            with asm.loop(left, "strips of rows"):
                self.strip(asm, v, STRIP, *pointers)
                asm.ADD(pointers[0], STRIP * self.src_row_bytes)
                asm.ADD(pointers[2], STRIP * v.bytes)
            asm.gp.free(left)
        if rest:
            self.strip(asm, v, rest, *pointers)
        asm.ret()

    def strip(self, asm: Assembler, v: Vector, rows: int, src: Any, weights: Any, dst: Any) -> None:
        """Some rows; the pointers are left as they were."""
        asm.role(f"strip of {rows}")
        acc = v.registers.take("sums", rows, CHUNK)
        for x in (x for row in acc for x in row):
            v.zero(x)
        chunks, rest = divmod(self.depth, CHUNK * v.lanes)
        if chunks:
            left = asm.gp.take("chunks left")
            asm.MOV(left, chunks)
            with asm.loop(left, "chunks of depth"):
                self.chunk(v, acc, CHUNK * v.lanes, src, weights)
                asm.ADD(src, CHUNK * v.bytes)
                asm.ADD(weights, CHUNK * v.bytes)
            asm.gp.free(left)
        if rest:
            self.chunk(v, acc, rest, src, weights)
        if chunks:
            asm.SUB(src, chunks * CHUNK * v.bytes)
            asm.SUB(weights, chunks * CHUNK * v.bytes)
        for r, (first, second) in enumerate(acc):
            v.add(first, first, second)
            v.store(mem(dst, r * v.bytes, size=v.bytes), first)
        v.registers.free(*(x for row in acc for x in row))

    def chunk(self, v: Vector, acc: list[list[Any]], depth: int, src: Any, weights: Any) -> None:
        """Some vectors of the rows."""
        vectors = -(-depth // v.lanes)
        factors = v.registers.take("weights", vectors)
        data = v.registers.take("src")
        with v.parts(vectors, depth) as parts:
            for j, (factor, part) in enumerate(zip(factors, parts, strict=True)):
                part.load(factor, mem(weights, j * v.bytes, size=v.bytes))
                for r, sums in enumerate(acc):
                    at = mem(src, r * self.src_row_bytes + j * v.bytes, size=v.bytes)
                    if part is v:
                        v.fma(sums[j], factor, at)
                    else:
                        part.load(data, at)
                        v.fma(sums[j], factor, data)
        v.registers.free(*factors, data)
