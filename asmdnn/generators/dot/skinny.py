"""f32 products of a few rows that read whole rows of row-major weights: as fast as memory gives them.

    dst[r, c] = sum over k of src[r, k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, depth]    | (r, k) at r * src_row_bytes + k * src_depth_bytes |
| weights | f32[depth, columns] | row k at k * weights_row_bytes, dense; nothing past the columns is read |
| dst     | f32[rows, columns]  | rows dst_row_bytes apart; partial sums lie there between passes, best in L1 |

A pass takes STEPS rows of weights through all columns, so that each is a stream that the hardware prefetches, and every
weight that is loaded meets all rows of src; a tile that takes all rows of a few columns would touch another page with
every step.
"""

from dataclasses import dataclass
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.operands import DST, OPERANDS, WEIGHTS, load_operands, src_of_f32
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of

STEPS = 8  # rows of weights in a pass: so many streams
MOST_VECTORS = 4  # of columns at a time, which hide the latency of a multiply
SPARE = 2  # registers: an element of src, and the mask of a tail


@dataclass(frozen=True, slots=True)
class SkinnySpec:
    """Everything that the bytes of the kernel depend on; 1 < rows, depth > 0."""

    isa: str
    rows: int
    columns: int
    depth: int
    src_row_bytes: int
    src_depth_bytes: int
    weights_row_bytes: int
    dst_row_bytes: int

    @property
    def name(self) -> str:
        return f"skinny_f32_{self.rows}x{self.columns}x{self.depth}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return OPERANDS

    def footprint(self) -> Footprint:
        src = src_of_f32(self.rows, self.src_row_bytes, self.src_depth_bytes, self.depth)
        dst = (r * self.dst_row_bytes for r in range(self.rows))
        weights = (k * self.weights_row_bytes for k in range(self.depth))
        return Footprint(
            (*src, *(Range(WEIGHTS, at, at + 4 * self.columns) for at in weights)),
            tuple(Range(DST, at, at + 4 * self.columns) for at in dst),
            rereads=self.depth > STEPS,
        )

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), whose words `frame` names."""
        v = vector_of(self.isa, asm)
        code = SkinnyCode(self, asm, v)
        rest = self.depth % STEPS or STEPS
        code.one_pass(rest, first=True)
        passes = (self.depth - rest) // STEPS
        if passes:
            left = asm.gp.take("passes left")
            code.advance(rest)
            asm.MOV(left, passes)
            with asm.loop(left, "passes"):
                code.one_pass(STEPS, first=False)
                code.advance(STEPS)
        asm.ret()


class SkinnyCode:
    """The code of the passes; pointers stay in registers."""

    def __init__(self, spec: SkinnySpec, asm: Assembler, v: Vector) -> None:
        self.spec, self.asm, self.v = spec, asm, v
        self.vectors = min(MOST_VECTORS, (v.count - SPARE) // (spec.rows + 1))
        self.src, self.weights, self.dst = load_operands(asm)

    def advance(self, steps: int) -> None:
        """To the rows of weights behind so many."""
        self.asm.ADD(self.src, steps * self.spec.src_depth_bytes)
        self.asm.ADD(self.weights, steps * self.spec.weights_row_bytes)

    def one_pass(self, steps: int, first: bool) -> None:
        """dst = or += the products of so many rows of weights; the pointers are left as they were."""
        asm, chunk = self.asm, self.vectors * self.v.lanes
        chunks, rest = divmod(self.spec.columns, chunk)
        if chunks:
            left = asm.gp.take("chunks left")
            asm.MOV(left, chunks)
            with asm.loop(left, f"chunks of {steps} rows"):
                self.chunk(chunk, steps, first)
                asm.ADD(self.weights, 4 * chunk)
                asm.ADD(self.dst, 4 * chunk)
            asm.gp.free(left)
        if rest:
            self.chunk(rest, steps, first)
        if chunks:
            asm.SUB(self.weights, 4 * chunk * chunks)
            asm.SUB(self.dst, 4 * chunk * chunks)

    def chunk(self, columns: int, steps: int, first: bool) -> None:
        """Some vectors of all rows of dst."""
        spec, v, vectors = self.spec, self.v, -(-columns // self.v.lanes)
        acc = v.registers.take("sums", spec.rows, vectors)
        row, factor = v.registers.take("weights row", vectors), v.registers.take("src, broadcast")
        with v.parts(vectors, columns) as parts:
            if not first:
                self.walk(acc, parts, lambda x, at, part: part.load(x, at))
            for k in range(steps):
                for j, (data, part) in enumerate(zip(row, parts, strict=True)):
                    part.load(data, mem(self.weights, k * spec.weights_row_bytes + j * v.bytes, size=v.bytes))
                for r, sums in enumerate(acc):
                    v.broadcast(factor, mem(self.src, r * spec.src_row_bytes + k * spec.src_depth_bytes, size=4))
                    update = v.mul if first and k == 0 else v.fma
                    for x, data in zip(sums, row, strict=True):
                        update(x, factor, data)
            self.walk(acc, parts, lambda x, at, part: part.store_last(at, x))
        v.registers.free(*(x for sums in acc for x in sums), *row, factor)

    def walk(self, acc: list[list[Any]], parts: list[Lanes], visit: Any) -> None:
        """visit(register, memory, lanes) for all of dst that a chunk computes."""
        for r, sums in enumerate(acc):
            for j, (x, part) in enumerate(zip(sums, parts, strict=True)):
                visit(x, mem(self.dst, r * self.spec.dst_row_bytes + j * self.v.bytes, size=self.v.bytes), part)
