"""Products of a matrix with one vector or a few, all with their sums along their rows: as fast as memory gives them.

    dst[r, c] = (dst[r, c] if accumulate else 0) + sum over k of src[r, k] * weights[k, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | types.weights[rows, depth] | row r at r * src_row_bytes, dense; nothing past the depth is read |
| weights | types.src[depth, columns]  | column c at c * column_bytes, dense; each is a vector |
| dst     | types.sums[rows, columns]  | dense by rows, or columns dst_column_bytes apart      |

The matrix is what a dot calls weights, since those are multiplied from memory: a product of rows of src with a vector
of weights is this one's transpose.  A lane has a group of k.  Each step takes some vectors of a strip of rows, so that
each row is a stream that the hardware prefetches; at the end of a strip its lanes are added up.  Where a dot shifts s8
to u8, each row is multiplied with the shift, too, and that is taken away from its sums.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import count, takewhile

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.dot.operands import DST, OPERANDS, SRC, WEIGHTS, in_chunks, load_operands
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dense import Run, dense_of
from asmdnn.isa.dot import F32, Dot, Types, dot_class, dot_of
from asmdnn.isa.vector import Lanes, Row
from asmdnn.isa.vectors import lanes_of, vector_class, vector_of
from asmdnn.records import dataclass

STRIP = 4  # rows at a time: with two vectors of each, sums enough to hide the latency of a multiply
CHUNK = 2  # vectors of a row in a step
SPARE = 2  # registers besides: the mask of a tail, and what a dot keeps


@dataclass(frozen=True, slots=True)
class DotStrip:
    """So many rows at a time, a power of two, and of each so many vectors in a step."""

    rows: int
    chunk: int


def strip_of(types: Types, isa: str, columns: int) -> DotStrip | None:
    """The largest strip whose sums registers hold, of as many lanes as a vector at most; None if there is none."""
    dot, vector = dot_class(types, isa), vector_class(isa)
    others = dot.row_registers + dot.product_registers + dot.spare_registers + SPARE
    for rows, chunk in ((STRIP, CHUNK), (STRIP, 1), (2, 1)):
        needed = columns * chunk * (rows + dot.copy_registers) + rows * bool(dot.shift) + others
        if needed <= vector.count and rows * columns <= lanes_of(isa):
            return DotStrip(rows, chunk)
    return None


@cache
def columns_at_once(types: Types, isa: str) -> int:
    """The most columns that a row is multiplied with: from one to so many there are strips."""
    return sum(1 for _ in takewhile(partial(strip_of, types, isa), count(1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DotsSpec:
    """Everything that the bytes of the kernel depend on; rows, depth and columns > 0, depth in elements, for which
    strip_of() has a strip.

    dst_column_bytes: from a column of dst to the next, whose rows are dense; 0: rows lie one after another.
    """

    isa: str
    rows: int
    depth: int
    src_row_bytes: int
    types: Types = F32
    columns: int = 1
    column_bytes: int = 0
    dst_column_bytes: int = 0
    accumulate: bool = False
    frame = OPERANDS

    @property
    def name(self) -> str:
        size = f"{self.rows}x{self.depth}" + f"x{self.columns}" * (self.columns > 1) + "_acc" * self.accumulate
        return f"dots_{self.types}_{size}_{checksum(self)}__{self.isa}"

    @property
    def dst_row_bytes(self) -> int:
        """From a row of dst to the next."""
        return self.types.sums.size_bytes * (1 if self.dst_column_bytes else self.columns)

    def footprint(self) -> Footprint:
        row, column = (x.size_bytes * self.depth for x in (self.types.weights, self.types.src))
        src = (Range(SRC, r * self.src_row_bytes, r * self.src_row_bytes + row) for r in range(self.rows))
        weights = (Range(WEIGHTS, c * self.column_bytes, c * self.column_bytes + column) for c in range(self.columns))
        parts, size = (self.columns if self.dst_column_bytes else 1), self.rows * self.dst_row_bytes
        dst = (Range(DST, c * self.dst_column_bytes, c * self.dst_column_bytes + size) for c in range(parts))
        written = tuple(dst)
        return Footprint((*src, *weights, *(written if self.accumulate else ())), written)

    def generate(self, asm: Assembler) -> None:
        dot = dot_of(self.types, self.isa, vector_of(self.isa, asm))
        strip = strip_of(self.types, self.isa, self.columns)
        assert strip, self
        code = DotsCode(self, dot, strip.chunk)
        strips, rest = divmod(self.rows, strip.rows)
        with dot.ready():
            if strips:
                with asm.repeated(strips, "strips left", "strips of rows"):
                    code.strip(strip.rows)
            for rows in (2, 1):
                if rest & rows:
                    code.strip(rows)
        asm.ret()


class DotsCode:
    """The code of strips; pointers stay in registers."""

    def __init__(self, spec: DotsSpec, dot: Dot, chunk: int) -> None:
        self.spec, self.dot, self.asm, self.v, self.chunk_vectors = spec, dot, dot.asm, dot.v, chunk
        self.src, self.weights, self.dst = load_operands(dot.asm)

    def strip(self, rows: int) -> None:
        """Some rows, a power of two; src and dst go on to the next ones."""
        asm, v, spec, types = self.asm, self.v, self.spec, self.spec.types
        asm.role(f"strip of {rows}")
        acc = v.registers.take("sums", rows, spec.columns, self.chunk_vectors)
        self.excess = v.registers.take("shift times the sum", rows * bool(self.dot.shift))
        v.zeros((acc, self.excess))
        elements = self.chunk_vectors * v.lanes * types.group
        steps = ((self.src, types.weights.size_bytes * elements), (self.weights, types.src.size_bytes * elements))
        in_chunks(asm, spec.depth, elements, steps, lambda depth: self.chunk(acc, depth), "depth")
        for first, *others in (sums for row in acc for sums in row):
            for other in others:
                self.dot.add(first, other)
            v.registers.free(*others)
        firsts = [[sums[0] for sums in row] for row in acc]
        for row, excess in zip(firsts, self.excess, strict=False):  # none without a shift
            for x in row:
                asm.VPSUBD(x, x, excess)
        v.registers.free(self.excess)
        self.store(firsts)
        asm.ADD(self.src, rows * spec.src_row_bytes)
        asm.ADD(self.dst, rows * spec.dst_row_bytes)
        v.registers.free(firsts)

    def store(self, acc: Sequence[Sequence[Register]]) -> None:
        """The lanes of sums by row and column are added up, and to what dst has where that is wanted: a vector for all
        columns or one for each."""
        v, step, adds = self.v, self.spec.dst_column_bytes, self.spec.accumulate
        parts = list(zip(*acc, strict=True)) if step else [[x for row in acc for x in row]]
        (spare,) = v.registers.take("spare", 1)
        for c, part in enumerate(parts):
            total = v.sum_lanes(part, spare, self.dot.addition)
            at = mem(self.dst, c * step, size=v.bytes)
            if len(part).bit_count() == 1:
                if adds:
                    v.load_first(spare, at, len(part))
                    self.dot.add(total, spare)
                v.store_first(at, total, len(part))
            else:
                tail = v.tail(len(part))
                if adds:
                    tail.load(spare, at)
                    self.dot.add(total, spare)
                tail.store(at, total)
                tail.release()
        v.registers.free(spare)

    def chunk(self, acc: Sequence[Sequence[Sequence[Register]]], depth: int) -> None:
        """Some vectors of the rows, of so many elements of k."""
        v, dot, spec, types = self.v, self.dot, self.spec, self.spec.types
        vectors, each = -(-depth // (v.lanes * types.group)), dot.copy_registers
        factors = v.registers.take("weights", vectors, spec.columns, each)
        data, spare = v.registers.take("src", dot.row_registers), v.registers.take("product", dot.product_registers)
        vector_bytes = v.lanes * types.group * types.src.size_bytes
        with self.parts(vectors, depth, data[0]) as parts:
            for j, (part, copies) in enumerate(zip(parts, factors, strict=True)):
                for c, copy in enumerate(copies):
                    part.load(copy[-1], mem(self.weights, c * spec.column_bytes + j * vector_bytes, size=vector_bytes))
                    dot.arrange_src(copy)
                for r, row in enumerate(acc):
                    at = mem(self.src, r * spec.src_row_bytes + j * dot.row_bytes, size=dot.row_bytes)
                    read = self.row_of(data, part, at)
                    for sums, copy in zip(row, copies, strict=True):
                        dot.accumulate(sums[j], copy, read, [*spare, data[0]][0])
                    if self.excess:
                        dot.accumulate_shift(self.excess[r], read, [*spare, data[0]][0])
        v.registers.free(factors, data, spare)

    def row_of(self, data: Row, part: Lanes, at: Pointer) -> Row | Sequence[Pointer]:
        """A vector of src: what several columns are multiplied with is loaded once."""
        if self.spec.columns == 1:
            return self.dot.read(data, part, at)
        self.dot.load(data, part, at)
        return data

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
