"""Matrix-vector products whose matrix has its sums along its rows: as fast as memory gives them.

    dst[r] = sum over k of src[r, k] * weights[k]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | types.weights[rows, depth] | row r at r * src_row_bytes, dense; nothing past the depth is read |
| weights | types.src[depth]           | dense |
| dst     | types.sums[rows]           | dense; only written |

The matrix is what a dot calls weights, since those are multiplied from memory: a product of rows of src with a vector
of weights is this one's transpose.  A lane has a group of k.  Each step takes two vectors of STRIP rows, so that each
row is a stream that the hardware prefetches; at the end of a strip its lanes are added up.  What the dot adds to its
src is not undone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.operands import DST, OPERANDS, SRC, WEIGHTS, load_operands
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.dense import Run, dense_of
from asmdnn.isa.dot import F32, Dot, Types, dot_of
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

STRIP = 4  # rows at a time: with two vectors of each, sums enough to hide the latency of a multiply
CHUNK = 2  # vectors of a row in a step


@dataclass(frozen=True, slots=True)
class DotsSpec:
    """Everything that the bytes of the kernel depend on; rows and depth > 0, depth in elements."""

    isa: str
    rows: int
    depth: int
    src_row_bytes: int
    types: Types = F32
    frame = OPERANDS

    @property
    def name(self) -> str:
        return f"dots_{self.types}_{self.rows}x{self.depth}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        row, vector = (x.size_bytes * self.depth for x in (self.types.weights, self.types.src))
        src = (Range(SRC, r * self.src_row_bytes, r * self.src_row_bytes + row) for r in range(self.rows))
        dst = Range(DST, 0, self.types.sums.size_bytes * self.rows)
        return Footprint((*src, Range(WEIGHTS, 0, vector)), (dst,))

    def generate(self, asm: Assembler) -> None:
        dot = dot_of(self.types, self.isa, vector_of(self.isa, asm))
        code = DotsCode(self, dot)
        strips, rest = divmod(self.rows, STRIP)
        with dot.ready():
            if strips:
                with asm.repeated(strips, "strips left", "strips of rows"):
                    code.strip(STRIP)
            for rows in (2, 1):
                if rest & rows:
                    code.strip(rows)
        asm.ret()


class DotsCode:
    """The code of strips; pointers stay in registers."""

    def __init__(self, spec: DotsSpec, dot: Dot) -> None:
        self.spec, self.dot, self.asm, self.v = spec, dot, dot.asm, dot.v
        self.src, self.weights, self.dst = load_operands(dot.asm)

    def strip(self, rows: int) -> None:
        """Some rows, a power of two; src and dst go on to the next ones."""
        asm, v, types = self.asm, self.v, self.spec.types
        asm.role(f"strip of {rows}")
        acc = v.registers.take("sums", rows, CHUNK)
        for x in (x for row in acc for x in row):
            v.zero(x)
        elements = CHUNK * v.lanes * types.group
        chunks, rest = divmod(self.spec.depth, elements)
        steps = ((self.src, types.weights.size_bytes * elements), (self.weights, types.src.size_bytes * elements))
        if chunks:
            with asm.repeated(chunks, "chunks left", "chunks of depth"):
                self.chunk(acc, elements)
                for pointer, size in steps:
                    asm.ADD(pointer, size)
        if rest:
            self.chunk(acc, rest)
        for pointer, size in steps if chunks else ():
            asm.SUB(pointer, chunks * size)
        firsts, seconds = zip(*acc, strict=True)
        for first, second in acc:
            self.dot.add(first, second)
        v.store_first(mem(self.dst, size=v.bytes), v.sum_lanes(firsts, seconds[0], self.dot.addition), rows)
        asm.ADD(self.src, rows * self.spec.src_row_bytes)
        asm.ADD(self.dst, rows * types.sums.size_bytes)
        v.registers.free(*firsts, *seconds)

    def chunk(self, acc: Sequence[Sequence[Register]], depth: int) -> None:
        """Some vectors of the rows, of so many elements of k."""
        v, dot, types = self.v, self.dot, self.spec.types
        vectors = -(-depth // (v.lanes * types.group))
        each = dot.copy_registers
        factors, data = v.registers.take("weights", each * vectors), v.registers.take("src", dot.row_registers)
        spare = v.registers.take("product", dot.product_registers)
        vector_bytes = v.lanes * types.group * types.src.size_bytes
        with self.parts(vectors, depth, data[0]) as parts:
            for j, part in enumerate(parts):
                copy = factors[j * each : (j + 1) * each]
                part.load(copy[-1], mem(self.weights, j * vector_bytes, size=vector_bytes))
                dot.arrange_src(copy)
                for r, sums in enumerate(acc):
                    at = mem(self.src, r * self.spec.src_row_bytes + j * dot.row_bytes, size=dot.row_bytes)
                    dot.accumulate(sums[j], copy, dot.read(data, part, at), [*spare, data[0]][0])
        v.registers.free(*factors, *data, *spare)

    @contextmanager
    def parts(self, vectors: int, depth: int, spare: Register) -> Iterator[list[Lanes]]:
        """How to read each vector where only `depth` elements exist."""
        v, types = self.v, self.spec.types
        if types.group == 1:
            with v.parts(vectors, depth) as single:
                yield single
            return
        full = depth // (v.lanes * types.group)
        size = depth * types.src.size_bytes - full * v.bytes
        dense = dense_of(v, spare)
        parts: list[Lanes] = [v] * full + [Run(dense, size)] * (vectors - full)
        yield parts
        dense.forget()
