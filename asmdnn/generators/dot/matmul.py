"""Matrix tiles: a few rows by a few vectors of columns of a product, accumulated in registers.

    dst[r, c] = post_ops(bias[r, c] + sum over k of src[r, k] * weights[k, c])
    dst[r, c] = scale[0] * (sum over k of src[r, k] * weights[k, c]) + (scale[1] or 1 or 0) * dst[r, c]     if `scaled`

| argument | dtype[shape] | what it is |
|---|---|---|
| src        | src[rows, depth]    | group k of a row at r * src_row_bytes + k * src_depth_bytes |
| weights    | weights[depth, columns] | group k at k * weights_row_bytes; after `panel_vectors` panel_bytes on |
| bias       | sums[...]           | see `Bias`; nothing past the columns is read |
| dst        | dst[rows, columns]  | columns dense, rows dst_row_bytes apart; read only for a start, beta or sum |
| prefetched | bytes               | weights that will be needed soon; only prefetched |
| scale      | f32[2]              | alpha and beta, if `scaled` |
| packed     | weights[depth, vectors] | if `packs`: a copy of the weights, a whole panel, zero after the columns |
|            | src[rows, depth]    | if `near_row_bytes`: a copy of src, whose rows are so far apart |
| 7, 8 ..    | f32[...]            | operands of post-ops, laid out as each Operand says; none past the columns |

The types of src, weights and sums are the tile's `types`.  k goes in groups (isa/dot.py), which are single elements in
f32; weights hold a group of every column side by side.  Where the last group is not whole, src is read only up to
the depth; weights are read whole, and are zero beyond.  dst has the type of the sums, or f32 if they are scaled or have
post-ops, which work in f32; accumulating into dst needs the type of the sums.

Nothing is read past the columns, unless the weights are `padded`: then whole vectors are.  One call computes `items`
such tiles, each argument a constant distance on from one to the next: a batch of small matrices.
The register block is the outer product of Goto and van de Geijn's GEBP kernel ("Anatomy of high-performance matrix
multiplication", 2008).  dst is read only where needed: BLAS demands that beta = 0 overwrites NaN.

Where the rows of src share the sets of L1, a line is gone before its next element is read.  A tile that copies src
reads each of its lines as vectors, and multiplies what it has stored.  That costs it a twentieth of its time on a Zen
4, and other tiles of the same rows nothing; without copies all of them take 1.2 to 1.5 times as long.
"""

from collections.abc import Callable
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.matmul_shape import (
    ARGUMENTS,
    BIAS,
    DST,
    PACKED,
    PREFETCHED,
    SCALE,
    SRC,
    WEIGHTS,
    MatmulTile,
    TileKernel,
)
from asmdnn.generators.dot.operands import BROADCASTS
from asmdnn.generators.dot.prologue import load_bias, start_tile
from asmdnn.generators.functions.chain import chain_words
from asmdnn.isa.assembler import Assembler, Pointer, mem
from asmdnn.isa.dot import GROUP_BYTES, dot_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass, replace
from asmdnn.types import f32

UNROLL = 8  # steps of depth in the loop's body, each of a group of k


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulTileSpec(TileKernel):
    """The kernel of a tile."""

    tile: MatmulTile

    @property
    def name(self) -> str:
        """The block, the depth, the start and end of the sum, and a checksum of the whole spec for the geometry."""
        tile = self.tile
        words = [f"{tile.rows}x{tile.columns}x{tile.depth}"] + [f"i{tile.items.count}"] * (tile.items.count > 1)
        words += ["bias"] * bool(tile.bias) + ["acc"] * tile.accumulate
        words += ["alpha"] * tile.scaled + ["beta"] * tile.beta + chain_words(tile.post_ops)
        words += ["pack"] * tile.packs + ["prefetch"] * bool(tile.prefetch_lines) + [checksum(self)]
        return f"matmul_{tile.types}_{'_'.join(words)}__{tile.isa}"

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 7 arguments and one for each operand of post-ops."""
        assert not self.tile.pieces, "k lies in pieces, which tiles of AMX alone walk over"
        v = vector_of(self.isa, asm)
        code = TileCode(self.tile, asm, v)
        if self.tile.items.count == 1:
            code.compute()
        else:
            with asm.repeated(self.tile.items.count, "items left", "items"):
                code.compute()
                code.next_item()
        asm.ret()


Visit = Callable[[int, int, Pointer, Lanes], None]


class TileCode:
    """The code of one tile; pointers stay in registers from item to item."""

    def __init__(self, tile: MatmulTile, asm: Assembler, v: Vector) -> None:
        self.tile, self.asm, self.v, self.dot = tile, asm, v, dot_of(tile.types, tile.isa, v)
        self.turns = v.registers.take("accumulators", tile.sums, tile.rows, tile.vectors)
        self.acc = self.turns[0]
        self.pointers: dict[int, Any] = {}
        used = {SRC: tile.depth > 0, WEIGHTS: tile.depth > 0, BIAS: tile.bias is not None, DST: True}
        used |= {PREFETCHED: tile.prefetch_lines > 0, SCALE: tile.scaled, PACKED: tile.packs or tile.near_row_bytes > 0}
        for argument in (a for a, needed in used.items() if needed):
            self.pointers[argument] = asm.gp.take(ARGUMENTS[argument])
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))

    def compute(self) -> None:
        if self.tile.prefetches_dst:
            self.prefetch_dst()
        self.start()
        if self.tile.depth:
            with self.dot.ready():
                self.multiply()
        self.finish()

    def next_item(self) -> None:
        """Advance the pointers to the next item; src and weights have advanced by the depth already."""
        tile, items = self.tile, self.tile.items
        loops = looped_steps(tile)
        for argument, step in (
            (SRC, items.src_bytes - loops * tile.src_depth_bytes),
            (WEIGHTS, items.weights_bytes - loops * tile.weights_row_bytes),
            (BIAS, items.bias_bytes),
            (DST, items.dst_bytes),
        ):
            if argument in self.pointers and step:
                self.asm.ADD(self.pointers[argument], step)

    def start(self) -> None:
        """acc[r][j] = dst, bias or zero."""
        from_dst = self.tile.accumulate and not self.tile.scaled
        start_tile(self.v, self.acc, self.load_dst if from_dst else None, self.load_bias if self.tile.bias else None)
        self.v.zeros(self.turns[1:])

    def prefetch_dst(self) -> None:
        """Lines that come from beyond L2 one after another would have the next tile's stores wait."""
        tile = self.tile
        self.asm.role("prefetch dst")
        for r in range(tile.rows):
            for begin in range(0, tile.columns * tile.dst_type.size_bytes, LINE_BYTES):
                self.asm.PREFETCHT0(self.dst_at(r, begin, 1))

    def load_dst(self) -> None:
        self.walk_dst(lambda r, j, at, part: part.load(self.acc[r][j], at))

    def load_bias(self) -> None:
        tile = self.tile
        assert tile.bias
        load_bias(self.v, self.acc, tile.bias, self.pointers[BIAS], tile.columns, tile.types.sums.size_bytes)

    def multiply(self) -> None:
        """acc[r][j] += src[r, k] * weights[k, j] for all k."""
        tile, v, dot = self.tile, self.v, self.dot
        columns = tile.vectors * v.lanes if tile.padded else tile.columns
        with v.parts(tile.vectors, columns, halves=dot.row_bytes == v.bytes) as parts:
            # `parts` are whole vectors where weights are padded, else the last one may be TailLanes: nothing after the
            # columns is read.  One row of src uses each weight once, so it needs a register for that tail only.
            wide = tile.rows == 1 and not tile.packs
            row = v.registers.take("weights row", dot.row_registers * (1 if wide else tile.vectors))
            spare = v.registers.take("broadcast source", min(BROADCASTS, v.registers.available))
            self.all_steps(parts, row, spare)
            v.registers.free(*row, *spare)

    def all_steps(self, parts: list[Lanes], row: list[Any], spare: list[Any]) -> None:
        """All groups of k: a loop over UNROLL of them, then the rest."""
        tile, asm = self.tile, self.asm

        def looped_body() -> None:
            self.steps(UNROLL, GROUP_BYTES, parts, row, spare)
            asm.ADD(self.pointers[SRC], UNROLL * tile.src_depth_bytes)
            asm.ADD(self.pointers[WEIGHTS], UNROLL * tile.weights_row_bytes)
            if tile.packs:
                asm.ADD(self.pointers[PACKED], UNROLL * tile.vectors * self.dot.row_bytes)
            if tile.near_row_bytes:
                asm.ADD(self.pointers[PACKED], UNROLL * GROUP_BYTES)
            if tile.prefetch_lines:
                asm.ADD(self.pointers[PREFETCHED], tile.prefetch_lines * tile.line_step_bytes)

        looped, runs = looped_steps(tile), self.dot.runs(self.acc)
        if looped:
            runs.loop(looped // UNROLL, UNROLL, looped_body, [*row, *spare])
        self.steps(tile.steps - looped, tile.last_group_bytes, parts, row, spare)
        runs.end([*row, *spare])
        if tile.sums > 1:
            self.dot.add_up(self.turns)

    def steps(self, count: int, last_bytes: int, parts: list[Lanes], row: list[Any], spare: list[Any]) -> None:
        """The next groups of k, the last of which has `last_bytes` in src."""
        tile, dot = self.tile, self.dot
        weights = self.pointers[WEIGHTS]
        if tile.near_row_bytes and count:
            self.copy_src(spare)
        for k in range(count):
            self.asm.role(f"step {k}")
            at = [k * tile.weights_row_bytes + tile.weights_vector(j, dot.row_bytes) for j in range(tile.vectors)]
            vectors = [mem(weights, x, size=dot.row_bytes) for x in at]
            column = [self.src_at(r, k) for r in range(tile.rows)]
            group_bytes = last_bytes if k == count - 1 else GROUP_BYTES
            self.prefetch(k, count, at)
            acc = self.turns[k % tile.sums]
            if tile.rows == 1 and not tile.packs:
                turn = k % len(spare)
                pieces = list(zip(parts, vectors, strict=True))
                dot.one_row(acc[0], (column[0], group_bytes), pieces, row, [*spare[turn:], *spare[:turn]])
                continue
            # Weights first: every row of src multiplies them, and they are loaded while elements are broadcast,
            # into registers that take turns (see conv.py).
            each = dot.row_registers
            for j, (part, vector) in enumerate(zip(parts, vectors, strict=True)):
                dot.load(row[j * each : (j + 1) * each], part, vector)
            for j, factor in enumerate(row if tile.packs else ()):
                place = (k * tile.vectors + j) * dot.row_bytes
                self.v.store(mem(self.pointers[PACKED], place, size=dot.row_bytes), factor)
            dot.outer_product(acc, row, column, spare, group_bytes)

    def src_at(self, row: int, step: int) -> Pointer:
        """Group `step` of those at hand of a row of src, or of its copy."""
        tile = self.tile
        if tile.near_row_bytes:
            return mem(self.pointers[PACKED], row * tile.near_row_bytes + step * tile.src_depth_bytes, size=GROUP_BYTES)
        return mem(self.pointers[SRC], row * tile.src_row_bytes + step * tile.src_depth_bytes, size=GROUP_BYTES)

    def copy_src(self, spare: list[Any]) -> None:
        """The next UNROLL groups of every row, a ymm register each."""
        tile = self.tile
        self.asm.role("copy src")
        for r in range(tile.rows):
            copy = spare[r % len(spare)].ymm
            self.asm.VMOVUPS(copy, mem(self.pointers[SRC], r * tile.src_row_bytes, size=copy.size_bytes))
            self.asm.VMOVUPS(mem(self.pointers[PACKED], r * tile.near_row_bytes, size=copy.size_bytes), copy)

    def prefetch(self, k: int, count: int, vectors: list[int]) -> None:
        """Prefetch a share of the next weights into L2, and these weights and src, some steps ahead, into L1."""
        tile, asm = self.tile, self.asm
        for row in range(k, tile.rows if tile.src_ahead_bytes else 0, count):
            asm.PREFETCHT0(mem(self.pointers[SRC], row * tile.src_row_bytes + tile.src_ahead_bytes))
        for line in range(k, tile.prefetch_lines, count):
            asm.PREFETCHT1(mem(self.pointers[PREFETCHED], line * tile.line_step_bytes))
        if tile.stream_bytes:
            ends = {at + self.dot.row_bytes - 1 for at in vectors} if tile.weights_row_bytes % LINE_BYTES else set()
            for line in sorted({at // LINE_BYTES for at in (*vectors, *ends)}):
                asm.PREFETCHT0(mem(self.pointers[WEIGHTS], line * LINE_BYTES + tile.stream_bytes))

    def finish(self) -> None:
        """Scale, post-ops and stores."""
        tile, v = self.tile, self.v
        self.asm.role("finish")
        types = replace(tile.epilogue_types, sums=f32) if tile.scaled else tile.epilogue_types  # scales widen them
        epilogue = TileEpilogue(v, tile.post_ops, types=types, tile=self.acc, touching=True)
        old, factor = epilogue.spare

        def scale(x: Any, at: Pointer, part: Lanes) -> None:
            self.dot.to_f32(x)
            v.mul(x, x, factor)
            if tile.beta:
                part.load(old, at)
                v.fma(x, old, self.beta)
            elif tile.accumulate:
                part.load(old, at)
                v.add(x, x, old)

        def visit(r: int, j: int, at: Pointer, part: Lanes) -> None:
            x = self.acc[r][j]
            if tile.scaled:
                scale(x, at, part)
            epilogue.finish(x, r, j, at, part, part)

        if tile.scaled:
            v.broadcast(factor, mem(self.pointers[SCALE], 0, size=f32.size_bytes))
            if tile.beta:
                self.beta = v.registers.take("beta")
                v.broadcast(self.beta, mem(self.pointers[SCALE], f32.size_bytes, size=f32.size_bytes))
        epilogue.emit(self.pointers[DST], tile.streams, lambda: self.walk_dst(visit))
        epilogue.release()
        if tile.beta:
            v.registers.free(self.beta)

    def walk_dst(self, visit: Visit) -> None:
        """visit(row, vector, memory, lanes) for the whole tile."""
        tile, v = self.tile, self.v
        vector_bytes = v.lanes * tile.dst_type.size_bytes
        with v.parts(tile.vectors, tile.columns, halves=tile.has_halves) as parts:
            for j, part in enumerate(parts):
                for r in range(tile.rows):
                    visit(r, j, self.dst_at(r, j * vector_bytes, vector_bytes), part)

    def dst_at(self, row: int, begin_bytes: int, size_bytes: int) -> Pointer:
        """A vector of a row of dst."""
        return mem(self.pointers[DST], row * self.tile.dst_row_bytes + begin_bytes, size=size_bytes)


def looped_steps(tile: MatmulTile) -> int:
    """The number of groups of k in the loop, all whole; the rest is unrolled after it.  One round needs no loop."""
    rounds = tile.depth // tile.types.group // UNROLL
    return rounds * UNROLL if rounds > 1 else 0
