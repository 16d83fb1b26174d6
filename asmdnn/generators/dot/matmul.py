"""Matrix tiles: a few rows by a few vectors of columns of a product, accumulated in registers.

    dst[r, c] = post_ops(bias[r, c] + sum over k of src[r, k] * weights[k, c])
    dst[r, c] = scale[0] * (sum over k of src[r, k] * weights[k, c]) + (scale[1] or 1 or 0) * dst[r, c]     if `scaled`

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src[rows, depth]    | group k of a row at r * src_row_bytes + k * src_depth_bytes |
| weights | weights[depth, columns] | group k at k * weights_row_bytes, in pieces of `panel_vectors`, panel_bytes on |
| bias    | sums[...]           | see `Bias`; nothing past the columns is read |
| dst     | dst[rows, columns]  | columns dense, rows dst_row_bytes apart; read only for a start, beta or sum |
| ahead   | bytes               | weights that will be needed soon; only prefetched |
| scale   | f32[2]              | alpha and beta, if `scaled` |
| packed  | weights[depth, vectors] | if `packs`: the weights are left here, a whole panel, zero behind the columns |
| 7, 8 .. | f32[...]            | operands of post-ops, laid out as each Operand says; none past the columns |

The types of src, weights and sums are the spec's `types`.  k goes in groups (isa/dot.py), which are single elements in
f32; weights hold a group of every column side by side.  Of a last group that is not whole src is read as far as the
depth, weights are read whole, and are zero there.  dst has the type of the sums, but f32 if they are scaled or have
post-ops, which work in f32; a start from dst takes sums.

Nothing is read past the columns, unless the weights are `padded`: then whole vectors are.  One call computes `items`
such tiles, each argument a constant distance on from one to the next: a batch of small matrices.
The register block is the outer product of Goto and van de Geijn's GEBP kernel ("Anatomy of high-performance matrix
multiplication", 2008).  dst is not read where it need not be: BLAS demands that beta = 0 overwrites NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asmdnn.generators.dot.conv import BROADCASTS, LINE_BYTES
from asmdnn.generators.dot.ending import TileEnding
from asmdnn.generators.dot.matmul_shape import (
    AHEAD,
    ARGUMENTS,
    BIAS,
    DST,
    PACKED,
    SCALE,
    SRC,
    WEIGHTS,
    MatmulTile,
)
from asmdnn.generators.dot.start import load_bias, start_tile
from asmdnn.isa.assembler import Assembler, Pointer, mem
from asmdnn.isa.dot import GROUP_BYTES, dot_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.types import f32

UNROLL = 8  # steps of depth in the loop's body, each of a group of k


@dataclass(frozen=True, slots=True, repr=False)
class MatmulTileSpec(MatmulTile):
    """The kernel of a tile."""

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 7 arguments and one for each operand of post-ops."""
        v = vector_of(self.isa, asm)
        tile = TileCode(self, asm, v)
        if self.items.count == 1:
            tile.compute()
        else:
            left = asm.gp.take("items left")
            asm.MOV(left, self.items.count)
            with asm.loop(left, "items"):
                tile.compute()
                tile.next_item()
        asm.ret()


Visit = Callable[[int, int, Pointer, Lanes], None]


class TileCode:
    """The code of one tile; pointers stay in registers from item to item."""

    def __init__(self, spec: MatmulTileSpec, asm: Assembler, v: Vector) -> None:
        self.spec, self.asm, self.v, self.dot = spec, asm, v, dot_of(spec.types, spec.isa, v)
        self.acc = v.registers.take("accumulators", spec.rows, spec.vectors)
        self.pointers: dict[int, Any] = {}
        used = {SRC: spec.depth > 0, WEIGHTS: spec.depth > 0, BIAS: spec.bias is not None, DST: True}
        used |= {AHEAD: spec.ahead_lines > 0, SCALE: spec.scaled, PACKED: spec.packs}
        for argument in (a for a, needed in used.items() if needed):
            self.pointers[argument] = asm.gp.take(ARGUMENTS[argument])
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))

    def compute(self) -> None:
        self.start()
        if self.spec.depth:
            self.multiply()
        self.finish()

    def next_item(self) -> None:
        """Move the pointers, of which src and weights have come forward already."""
        spec, items = self.spec, self.spec.items
        loops = looped_steps(spec)
        for argument, step in (
            (SRC, items.src_bytes - loops * spec.src_depth_bytes),
            (WEIGHTS, items.weights_bytes - loops * spec.weights_row_bytes),
            (BIAS, items.bias_bytes),
            (DST, items.dst_bytes),
        ):
            if argument in self.pointers and step:
                self.asm.ADD(self.pointers[argument], step)

    def start(self) -> None:
        """acc[r][j] = dst, bias or zero."""
        from_dst = self.spec.accumulate and not self.spec.scaled
        start_tile(self.v, self.acc, self.load_dst if from_dst else None, self.load_bias if self.spec.bias else None)

    def load_dst(self) -> None:
        self.walk_dst(lambda r, j, at, part: part.load(self.acc[r][j], at))

    def load_bias(self) -> None:
        spec = self.spec
        assert spec.bias
        load_bias(self.v, self.acc, spec.bias, self.pointers[BIAS], spec.columns, spec.types.sums.size_bytes)

    def multiply(self) -> None:
        """acc[r][j] += src[r, k] * weights[k, j] for all k: a loop over UNROLL steps, then the rest."""
        spec, asm, v = self.spec, self.asm, self.v
        with v.parts(spec.vectors, spec.vectors * v.lanes if spec.padded else spec.columns, halves=True) as parts:
            # `parts` are whole vectors where weights are padded, else the last one may be a Tail: nothing behind the
            # columns is read.  One row of src uses each weight once, so it needs a register for that tail only.
            wide = spec.rows == 1 and not spec.packs
            row = v.registers.take("weights row", 1 if wide else spec.vectors)
            spare = v.registers.take("broadcast source", min(BROADCASTS, v.registers.available))
            looped = looped_steps(spec)
            if looped:
                left = asm.gp.take("steps left")
                asm.MOV(left, looped // UNROLL)
                with asm.loop(left, "steps"):
                    self.steps(UNROLL, GROUP_BYTES, parts, row, spare)
                    asm.ADD(self.pointers[SRC], UNROLL * spec.src_depth_bytes)
                    asm.ADD(self.pointers[WEIGHTS], UNROLL * spec.weights_row_bytes)
                    if spec.packs:
                        asm.ADD(self.pointers[PACKED], UNROLL * spec.vectors * v.bytes)
                    if spec.ahead_lines:
                        asm.ADD(self.pointers[AHEAD], spec.ahead_lines * (spec.ahead_bytes or LINE_BYTES))
                asm.gp.free(left)
            self.steps(spec.steps - looped, spec.last_group_bytes, parts, row, spare)
            v.registers.free(*row, *spare)

    def steps(self, count: int, last_bytes: int, parts: list[Lanes], row: list[Any], spare: list[Any]) -> None:
        """So many groups of k behind the pointers, of which the last has `last_bytes` in src."""
        spec, v = self.spec, self.v
        src, weights = self.pointers[SRC], self.pointers[WEIGHTS]
        for k in range(count):
            self.asm.role(f"step {k}")
            at = [k * spec.weights_row_bytes + spec.weights_vector(j, v.bytes) for j in range(spec.vectors)]
            vectors = [mem(weights, x, size=v.bytes) for x in at]
            places = [r * spec.src_row_bytes + k * spec.src_depth_bytes for r in range(spec.rows)]
            column = [mem(src, x, size=GROUP_BYTES) for x in places]
            group_bytes = last_bytes if k == count - 1 else GROUP_BYTES
            self.prefetch(k, count, at)
            if spec.rows == 1 and not spec.packs:
                copy = spare[k % len(spare)]
                self.dot.broadcast(copy, column[0], group_bytes)
                self.one_row(vectors, parts, row[0], copy)
                continue
            # Weights first: every row of src multiplies them, and they are on the way while elements are broadcast,
            # into registers that take turns (see conv.py).
            for factor, part, vector in zip(row, parts, vectors, strict=True):
                part.load(factor, vector)
            for j, factor in enumerate(row if spec.packs else ()):
                v.store(mem(self.pointers[PACKED], (k * spec.vectors + j) * v.bytes, size=v.bytes), factor)
            self.dot.outer_product(self.acc, row, column, spare, group_bytes)

    def one_row(self, vectors: list[Pointer], parts: list[Lanes], data: Any, copy: Any) -> None:
        """Each weight is used once, so the multiply reads it from memory; a tail goes through the register `data`."""
        for acc, part, vector in zip(self.acc[0], parts, vectors, strict=True):
            if part is self.v:
                self.dot.multiply(acc, copy, vector)
            else:
                part.load(data, vector)
                self.dot.multiply(acc, copy, data)

    def prefetch(self, k: int, count: int, vectors: list[int]) -> None:
        """A share of the weights that come next into L2; and these weights, some steps ahead, into L1."""
        spec, asm = self.spec, self.asm
        for line in range(k, spec.ahead_lines, count):
            asm.PREFETCHT1(mem(self.pointers[AHEAD], line * (spec.ahead_bytes or LINE_BYTES)))
        if spec.stream_bytes:
            ends = {at + self.v.bytes - 1 for at in vectors} if spec.weights_row_bytes % LINE_BYTES else set()
            for line in sorted({at // LINE_BYTES for at in (*vectors, *ends)}):
                asm.PREFETCHT0(mem(self.pointers[WEIGHTS], line * LINE_BYTES + spec.stream_bytes))

    def finish(self) -> None:
        """Scale, post-ops and stores."""
        spec, v = self.spec, self.v
        self.asm.role("finish")
        ending = TileEnding(v, spec.post_ops)
        old, factor = ending.spare

        def scale(x: Any, at: Pointer, part: Lanes) -> None:
            v.mul(x, x, factor)
            if spec.beta:
                part.load(old, at)
                v.fma(x, old, self.beta)
            elif spec.accumulate:
                part.load(old, at)
                v.add(x, x, old)

        def visit(r: int, j: int, at: Pointer, part: Lanes) -> None:
            x = self.acc[r][j]
            if spec.works_in_f32:
                self.dot.to_f32(x)
            if spec.scaled:
                scale(x, at, part)
            ending.finish(x, r, j, at, part, part)

        if spec.scaled:
            v.broadcast(factor, mem(self.pointers[SCALE], 0, size=f32.size_bytes))
            if spec.beta:
                self.beta = v.registers.take("beta")
                v.broadcast(self.beta, mem(self.pointers[SCALE], f32.size_bytes, size=f32.size_bytes))
        self.walk_dst(visit)
        ending.release()
        if spec.beta:
            v.registers.free(self.beta)

    def walk_dst(self, visit: Visit) -> None:
        """visit(row, vector, memory, lanes) for the whole tile."""
        spec, v = self.spec, self.v
        with v.parts(spec.vectors, spec.columns, halves=True) as parts:
            for j, part in enumerate(parts):
                for r in range(spec.rows):
                    visit(r, j, mem(self.pointers[DST], r * spec.dst_row_bytes + j * v.bytes, size=v.bytes), part)


def looped_steps(spec: MatmulTile) -> int:
    """How many groups of k the loop takes, all whole; the others are unrolled behind it.  One round needs no loop."""
    rounds = spec.depth // spec.types.group // UNROLL
    return rounds * UNROLL if rounds > 1 else 0
