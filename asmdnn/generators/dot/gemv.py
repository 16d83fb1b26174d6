"""f32 matrix-vector products that read whole rows of a row-major matrix: as fast as memory gives them.

    dst[c] = sum over k of src[k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[depth]          | element k at k * src_depth_bytes |
| weights | f32[depth, columns] | row k at k * weights_row_bytes, dense; nothing past the columns is read |
| dst     | f32[columns]        | dense; only written as far as the caller sees: partial sums lie there between passes |

A pass takes ROWS rows and goes through all columns, so that each row is a stream that the hardware prefetches; a tile
that takes all rows of a few columns would touch another page with every step.
"""

from dataclasses import dataclass
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.operands import DST, OPERANDS, SRC, WEIGHTS, load_operands
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of

ROWS = 8  # of weights in a pass: so many streams, and registers that hold elements of src
CHUNK = 4  # vectors of columns in a step, to hide the latency of a multiply


@dataclass(frozen=True, slots=True)
class GemvSpec:
    """Everything that the bytes of the kernel depend on; depth > 0."""

    isa: str
    columns: int
    depth: int
    src_depth_bytes: int
    weights_row_bytes: int

    @property
    def name(self) -> str:
        return f"gemv_f32_{self.columns}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return OPERANDS

    def footprint(self) -> Footprint:
        src = [Range(SRC, k * self.src_depth_bytes, k * self.src_depth_bytes + 4) for k in range(self.depth)]
        rows = [k * self.weights_row_bytes for k in range(self.depth)]
        weights = [Range(WEIGHTS, at, at + 4 * self.columns) for at in rows]
        return Footprint((*src, *weights), (Range(DST, 0, 4 * self.columns),), rereads=self.depth > ROWS)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), whose words `frame` names."""
        v = vector_of(self.isa, asm)
        src, weights, dst = load_operands(asm)
        rest = self.depth % ROWS or ROWS
        GemvPass(self, asm, v, rest, first=True).emit(src, weights, dst)
        passes = (self.depth - rest) // ROWS
        if passes:
            left = asm.gp.take("passes left")
            asm.MOV(left, passes)
            with asm.loop(left, "passes"):
                asm.ADD(src, rest * self.src_depth_bytes)
                asm.ADD(weights, rest * self.weights_row_bytes)
                GemvPass(self, asm, v, ROWS, first=False).emit(src, weights, dst)
                if rest != ROWS:
                    asm.ADD(src, (ROWS - rest) * self.src_depth_bytes)
                    asm.ADD(weights, (ROWS - rest) * self.weights_row_bytes)
        asm.ret()


class GemvPass:
    """dst = or += the products of `rows` rows."""

    def __init__(self, spec: GemvSpec, asm: Assembler, v: Vector, rows: int, first: bool) -> None:
        self.spec, self.asm, self.v, self.rows, self.first = spec, asm, v, rows, first

    def emit(self, src: Any, weights: Any, dst: Any) -> None:
        """The pointers are left as they were."""
        asm, v = self.asm, self.v
        factors = v.registers.take("src", self.rows)
        for k, x in enumerate(factors):
            v.broadcast(x, mem(src, k * self.spec.src_depth_bytes, size=4))
        chunk = CHUNK * v.lanes
        chunks, rest = divmod(self.spec.columns, chunk)
        if chunks:
            left = asm.gp.take("chunks left")
            asm.MOV(left, chunks)
            with asm.loop(left, f"chunks of {self.rows} rows"):
                self.step(chunk, factors, weights, dst)
                asm.ADD(weights, 4 * chunk)
                asm.ADD(dst, 4 * chunk)
            asm.gp.free(left)
        if rest:
            self.step(rest, factors, weights, dst)
        if chunks:
            asm.SUB(weights, 4 * chunk * chunks)
            asm.SUB(dst, 4 * chunk * chunks)
        v.registers.free(*factors)

    def step(self, columns: int, factors: list[Any], weights: Any, dst: Any) -> None:
        v, vectors = self.v, -(-columns // self.v.lanes)
        acc = v.registers.take("sums", vectors)
        data = v.registers.take("weights")
        with v.parts(vectors, columns) as parts:
            for j, (x, part) in enumerate(zip(acc, parts, strict=True)):
                if self.first:
                    v.zero(x)
                else:
                    part.load(x, mem(dst, j * v.bytes, size=v.bytes))
            for k, factor in enumerate(factors):
                for j, (x, part) in enumerate(zip(acc, parts, strict=True)):
                    at = mem(weights, k * self.spec.weights_row_bytes + j * v.bytes, size=v.bytes)
                    if part is v:
                        v.fma(x, factor, at)
                    else:
                        part.load(data, at)
                        v.fma(x, factor, data)
            for j, (x, part) in enumerate(zip(acc, parts, strict=True)):
                part.store_last(mem(dst, j * v.bytes, size=v.bytes), x)
        v.registers.free(*acc, data)
