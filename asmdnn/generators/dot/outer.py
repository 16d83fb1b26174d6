"""Products of few steps of depth, dst row after row: as fast as memory takes dst.

    dst[r, c] = bias[r, c] + sum over k of src[r, k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | types.src[rows, depth]    | group (r, k) at r * src_row_bytes + k * src_depth_bytes |
| weights | types.weights[depth, columns] | group k at k * weights_row_bytes, each `panel_vectors` panel_bytes apart |
| bias    | types.sums[...]           | see `Bias`; nothing past the columns is read |
| dst     | types.sums[rows, columns] | columns dense, rows dst_row_bytes apart; only written |

A row after the other goes through all columns, so that dst is one stream of stores: streams side by side are slow past
the caches.  Weights come from L1 again for every row.  The frame is that of matmul tiles.  Nothing is read past the
columns, unless the weights are `padded`: then whole vectors are.  What the dot adds to src is not undone.
"""

from collections.abc import Iterator

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.matmul_shape import ARGUMENTS, BIAS, DST, SRC, WEIGHTS, Bias
from asmdnn.generators.dot.operands import in_chunks, src_of, sums_at
from asmdnn.generators.dot.prologue import load_bias_by
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dot import F32, GROUP_BYTES, Dot, Types, dot_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes, Row
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass

CHUNK = 8  # vectors of columns at a time, to hide the latency of a multiply
BROADCASTS = 2  # registers that elements of src take turns in


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterSpec:
    """Everything that the bytes of the kernel depend on; depth > 0, in elements, panel_vectors divides CHUNK.

    prefetches: the same columns of the next row, where a row of dst is wider than a call, so that it is no stream.
    streaming: stores go past the caches if dst is aligned, which the kernel looks at when called.
    """

    isa: str
    rows: int
    columns: int
    depth: int
    src_row_bytes: int
    src_depth_bytes: int
    weights_row_bytes: int
    panel_vectors: int
    panel_bytes: int
    padded: bool
    dst_row_bytes: int
    bias: Bias | None = None
    prefetches: bool = False
    streaming: bool = False
    types: Types = F32
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        words = [f"{self.rows}x{self.columns}x{self.depth}"] + ["bias"] * bool(self.bias)
        words += ["prefetch"] * self.prefetches + ["streaming"] * self.streaming + [checksum(self)]
        return f"outer_{self.types}_{'_'.join(words)}__{self.isa}"

    def footprint(self) -> Footprint:
        size, bias = self.types.sums.size_bytes, self.bias
        width = size * self.columns
        src = src_of(self.rows, self.src_row_bytes, self.src_depth_bytes, self.types.groups_of(self.depth))
        reads = [*src, *self._weights()]
        if bias:
            size, rows = width if bias.columns else size, self.rows if bias.row_bytes else 1
            reads += [Range(BIAS, r * bias.row_bytes, r * bias.row_bytes + size) for r in range(rows)]
        dst = tuple(Range(DST, r * self.dst_row_bytes, r * self.dst_row_bytes + width) for r in range(self.rows))
        return Footprint(tuple(reads), dst)

    def _weights(self) -> Iterator[Range]:
        panel = self.panel_vectors * lanes_of(self.isa)
        for number in range(-(-self.columns // panel)):
            left = self.columns - number * panel
            vectors = -(-left // lanes_of(self.isa))
            width = min(panel, vectors * lanes_of(self.isa) if self.padded else left)
            for k in range(len(self.types.groups_of(self.depth))):
                begin = number * self.panel_bytes + k * self.weights_row_bytes
                yield Range(WEIGHTS, begin, begin + self.types.weights_bytes * width)

    def generate(self, asm: Assembler) -> None:
        dot = dot_of(self.types, self.isa, vector_of(self.isa, asm))
        rows = OuterCode(self, dot)
        with dot.ready():
            if self.streaming:
                scratch = asm.gp.take("alignment")
                with if_aligned(asm, rows.pointers[DST], dot.v.bytes, scratch):
                    rows.emit(streaming=True)
                    asm.ret()
                asm.gp.free(scratch)
            rows.emit(streaming=False)
        asm.ret()


class OuterCode:
    """The code for all rows; pointers stay in registers."""

    def __init__(self, spec: OuterSpec, dot: Dot) -> None:
        self.spec, self.dot, self.v, self.streaming = spec, dot, dot.v, False
        self.asm = asm = dot.asm
        self.pointers: dict[int, Register] = {}
        for argument in (SRC, WEIGHTS, DST, *[BIAS] * bool(spec.bias)):
            self.pointers[argument] = asm.gp.take(ARGUMENTS[argument])
            asm.MOV(self.pointers[argument], mem(asm.frame, 8 * argument))

    def emit(self, streaming: bool) -> None:
        spec, asm = self.spec, self.asm
        self.streaming = streaming
        with asm.repeated(spec.rows, "rows left", "rows"):
            self.row()
            steps = {SRC: spec.src_row_bytes, DST: spec.dst_row_bytes, BIAS: spec.bias.row_bytes if spec.bias else 0}
            for argument, step in steps.items():
                if step:
                    asm.ADD(self.pointers[argument], step)

    def row(self) -> None:
        """All columns of a row; the pointers are left as they were."""
        spec, v = self.spec, self.v
        steps = {WEIGHTS: CHUNK // spec.panel_vectors * spec.panel_bytes, DST: CHUNK * v.bytes}
        if spec.bias and spec.bias.columns:
            steps[BIAS] = CHUNK * v.bytes
        moved = [(self.pointers[argument], step) for argument, step in steps.items()]
        in_chunks(self.asm, spec.columns, CHUNK * v.lanes, moved, self.chunk, "columns")

    def chunk(self, columns: int) -> None:
        """Some vectors of a row."""
        spec, v, vectors = self.spec, self.v, -(-columns // self.v.lanes)
        acc, each = v.registers.take("sums", vectors), self.dot.copy_registers
        spare = v.registers.take("broadcast src", BROADCASTS * each)
        prefetched = spec.types.sums.size_bytes * columns if spec.prefetches and not self.streaming else 0
        for line in range(0, prefetched, LINE_BYTES):
            self.asm.PREFETCHT0(mem(self.pointers[DST], spec.dst_row_bytes + line))
        with v.parts(vectors, columns) as parts:
            if spec.bias:
                load_bias_by(v, [acc], spec.bias, self.pointers[BIAS], parts, spec.types.sums.size_bytes)
            for k, group_bytes in enumerate(spec.types.groups_of(spec.depth)):
                copy = spare[k % BROADCASTS * each :][:each]
                self.dot.keep(copy, mem(self.pointers[SRC], k * spec.src_depth_bytes, size=GROUP_BYTES), group_bytes)
                for j, (x, part) in enumerate(zip(acc, parts, strict=True)):
                    starts = k == 0 and not spec.bias
                    self.multiply(x, copy, self.weights(k, j), v if spec.padded else part, starts)
            for x, place, part in sums_at(mem(self.pointers[DST], size=v.bytes), [acc], parts):
                store = v.stream if self.streaming and part is v else part.store_last
                store(place, x)
        v.registers.free(acc, spare)

    def weights(self, k: int, j: int) -> Pointer:
        """Vector j of a chunk, group k."""
        panel, within = divmod(j, self.spec.panel_vectors)
        size = self.dot.row_bytes
        at = k * self.spec.weights_row_bytes + panel * self.spec.panel_bytes + within * size
        return mem(self.pointers[WEIGHTS], at, size=size)

    def multiply(self, x: Register, copy: Row, weights: Pointer, part: Lanes, starts: bool) -> None:
        """x = or += copy * weights."""
        dot, registers = self.dot, self.v.registers
        row, products = registers.take("weights", dot.row_registers), registers.take("product", dot.product_registers)
        update = dot.accumulate_first if starts else dot.accumulate
        update(x, copy, dot.read(row, part, weights), [*products, row[0]][0])
        registers.free(*row, *products)
