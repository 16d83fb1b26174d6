"""Means, and sums of squared distances from them: of chunks, and of chunks together.

    rows:  mean[r] = mean of src[r, :],   m2[r] = sum of (src[r, :] - mean[r])^2
    lanes: mean[c] = mean of src[:, c],   m2[c] = sum of (src[:, c] - mean[c])^2

| argument | dtype[shape] | what it is |
|---|---|---|
| src  | f32[rows, elements]   | rows src_row_bytes apart, elements dense |
| mean | f32[rows or elements] | those of rows dst_row_bytes apart, those of lanes dense |
| m2   | f32[rows or elements] | likewise |

One read: sums of d = x - k and of d^2, k being the first element of a column, or the mean of the first vector of a row;
m2 = sum d^2 - (sum d)^2 / n.  (k - mean)^2 <= m2, and of a row (k - mean)^2 <= m2 / lanes, so that at most 1 + n, or
1 + n / lanes roundings cancel; hence chunks.

Chunks are merged by means' distances from the mean of all (Chan, Golub and LeVeque 1979), where nothing cancels:

    mean = sum of n_i mean_i / n,   m2 = sum of m2_i + n_i (mean_i - mean)^2

| argument | dtype[shape] | what it is |
|---|---|---|
| means, squares | f32[rows, elements] | chunks row_bytes apart; all of `count` elements, the last one of `last` |
| mean, m2 | f32[elements] | the result; m2 / n instead of m2 if `divides` |
"""

from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.row_code import OTHER_REGISTERS, SRC, Computation, Rows
from asmdnn.generators.functions.rows import Vectors, Walk, rows_touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of

MEAN, M2 = 1, 2
MEANS, SQUARES, MERGED_MEAN, MERGED_M2 = range(4)
AT_ONCE = 4
MERGED_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class MomentsSpec:
    """Of one chunk for each row, or for each lane.  divides: m2 / n instead of m2."""

    isa: str
    along: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    divides: bool = False

    @property
    def name(self) -> str:
        return f"moments_f32_{self.along}{self.rows}x{self.elements}_{crc32(repr(self).encode()):08x}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ("src", "mean", "m2")

    def footprint(self) -> Footprint:
        results = (self.rows, self.dst_row_bytes, 1) if self.along == "rows" else (1, 0, self.elements)
        written = (*rows_touched(MEAN, *results), *rows_touched(M2, *results))
        return Footprint(rows_touched(SRC, self.rows, self.src_row_bytes, self.elements), written)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        v = vector_of(self.isa, asm)
        if self.along == "rows":
            AlongRows(self, v).all_rows()
        else:
            DownRows(self, v).emit()
        asm.ret()


class AlongRows(Rows):
    """A row at a time; where other kernels have dst, there is the mean."""

    def __init__(self, spec: MomentsSpec, v: Vector) -> None:
        row_bytes = (spec.src_row_bytes, spec.dst_row_bytes)
        super().__init__(v, spec.rows, 1, row_bytes, {M2: spec.dst_row_bytes})
        self.spec, self.walk = spec, Walk(v, spec.elements)

    def some(self, rows: int) -> None:
        v, asm, n = self.v, self.v.asm, self.spec.elements
        asm.role("sums")
        count = min(AT_ONCE, len(self.walk.parts))
        sums, squares = v.registers.take("sum d", count), v.registers.take("sum d^2", count)
        shift, d = v.registers.take("k"), v.registers.take("d", 2)
        self.walk.parts[0].load(shift, mem(self.src, size=v.bytes))
        self.combined(shift, [shift], v.add)
        self.times(shift, 1 / min(v.lanes, n))
        for total in (*sums, *squares):
            v.zero(total)

        def add(vectors: Vectors) -> None:
            for j, part in enumerate(vectors.parts):
                part.load(d[j % 2], vectors.at(self.src, j))
                asm.VSUBPS(d[j % 2], d[j % 2], shift)
                part.clear_rest(d[j % 2])
                v.add(sums[j], sums[j], d[j % 2])
                v.fma(squares[j], d[j % 2], d[j % 2])

        self.walk.each(AT_ONCE, "vectors", add)
        asm.role("results")
        self.combined(sums[0], sums, v.add)
        self.combined(squares[0], squares, v.add)
        finish(self, n, self.spec.divides, shift, sums[0], squares[0])
        asm.VMOVSS(mem(self.dst, size=4), shift.xmm)
        asm.VMOVSS(mem(self.operands.register(M2), size=4), squares[0].xmm)
        v.registers.free(*sums, *squares, shift, *d)


class DownRows(Computation):
    """Some vectors at a time, down all rows."""

    def __init__(self, spec: MomentsSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.walk, self.left = spec, Walk(v, spec.elements), v.asm.gp.take("rows left")
        self.at_once = (v.count - 2) // 4  # shift, sums, squares and d of each, and what a tail needs

    def emit(self) -> None:
        self.walk.each(self.at_once, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        v, asm, spec, count = self.v, self.v.asm, self.spec, vectors.count
        asm.role("sums")
        shifts, sums, squares = (v.registers.take(name, count) for name in ("k", "sum d", "sum d^2"))
        d = v.registers.take("d", count)
        pointers = RowPointers(asm, {SRC: spec.src_row_bytes}, spec.rows, OTHER_REGISTERS)
        src = pointers.register(SRC)
        for j, part in enumerate(vectors.parts):
            part.load(shifts[j], vectors.at(src, j))
        for total in (*sums, *squares):
            v.zero(total)
        asm.MOV(self.left, spec.rows)
        with asm.loop(self.left, "rows"):
            for j, part in enumerate(vectors.parts):
                part.load(d[j], vectors.at(src, j))
                asm.VSUBPS(d[j], d[j], shifts[j])
                v.add(sums[j], sums[j], d[j])
                v.fma(squares[j], d[j], d[j])
            pointers.next_row()
        pointers.release()
        v.registers.free(*d)
        asm.role("results")
        pointers = RowPointers(asm, {MEAN: 0, M2: 0}, 1)
        for j, part in enumerate(vectors.parts):
            finish(self, spec.rows, spec.divides, shifts[j], sums[j], squares[j])
            part.store(vectors.at(pointers.register(MEAN), j), shifts[j])
            part.store(vectors.at(pointers.register(M2), j), squares[j])
        pointers.release()
        v.registers.free(*shifts, *sums, *squares)


def finish(code: Computation, n: int, divides: bool, shift: Register, total: Register, squares: Register) -> None:
    """shift += sum d / n, squares -= (sum d)^2 / n, but not below 0; the register of the sum is lost."""
    v, asm = code.v, code.v.asm
    mean = v.registers.take("mean of d")
    v.move(mean, total)
    code.times(mean, 1 / n)
    v.add(shift, shift, mean)
    asm.VFNMADD231PS(squares, mean, total)
    v.zero(mean)
    asm.VMAXPS(squares, mean, squares)
    v.registers.free(mean)
    if divides:
        code.times(squares, 1 / n)


@dataclass(frozen=True, slots=True)
class MergeMomentsSpec:
    """Of `rows` chunks, for each lane."""

    isa: str
    rows: int
    elements: int
    row_bytes: int
    count: int
    last: int
    divides: bool

    @property
    def name(self) -> str:
        return f"moments_f32_merge{self.rows}x{self.elements}_{crc32(repr(self).encode()):08x}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ("means", "squares", "mean", "m2")

    @property
    def total(self) -> int:
        return (self.rows - 1) * self.count + self.last

    def footprint(self) -> Footprint:
        reads = (rows_touched(argument, self.rows, self.row_bytes, self.elements) for argument in (MEANS, SQUARES))
        writes = (rows_touched(argument, 1, 0, self.elements) for argument in (MERGED_MEAN, MERGED_M2))
        return Footprint(tuple(x for found in reads for x in found), tuple(x for found in writes for x in found))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        MergeCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


class MergeCode(Computation):
    """Twice down the chunks, some vectors at a time: the mean, and the distances from it."""

    def __init__(self, spec: MergeMomentsSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.walk, self.left = spec, Walk(v, spec.elements), v.asm.gp.take("chunks left")

    def emit(self) -> None:
        self.walk.each(MERGED_AT_ONCE, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        v, asm, spec, count = self.v, self.v.asm, self.spec, vectors.count
        asm.role("means")
        first, means, squares = (v.registers.take(name, count) for name in ("mean 0", "mean", "m2"))
        d, weight = v.registers.take("d", count), v.registers.take("n_i")
        pointers = RowPointers(asm, {MEANS: spec.row_bytes}, spec.rows, OTHER_REGISTERS)
        for j, part in enumerate(vectors.parts):
            part.load(first[j], vectors.at(pointers.register(MEANS), j))
            v.zero(means[j])

        def add_mean(place: RowPointers) -> None:
            for j, part in enumerate(vectors.parts):
                part.load(d[j], vectors.at(place.register(MEANS), j))
                asm.VSUBPS(d[j], d[j], first[j])
                v.fma(means[j], d[j], weight)

        self.down(pointers, weight, add_mean)
        for mean, start in zip(means, first, strict=True):
            self.times(mean, 1 / spec.total)
            v.add(mean, mean, start)
        asm.role("squares")
        pointers = RowPointers(asm, {MEANS: spec.row_bytes, SQUARES: spec.row_bytes}, spec.rows, OTHER_REGISTERS)
        for square in squares:
            v.zero(square)

        def add_squares(place: RowPointers) -> None:
            for j, part in enumerate(vectors.parts):
                part.load(d[j], vectors.at(place.register(MEANS), j))
                asm.VSUBPS(d[j], d[j], means[j])
                part.load(first[j], vectors.at(place.register(SQUARES), j))
                v.add(squares[j], squares[j], first[j])
                v.mul(first[j], d[j], weight)
                v.fma(squares[j], first[j], d[j])

        self.down(pointers, weight, add_squares)
        asm.role("results")
        pointers = RowPointers(asm, {MERGED_MEAN: 0, MERGED_M2: 0}, 1)
        for j, part in enumerate(vectors.parts):
            if spec.divides:
                self.times(squares[j], 1 / spec.total)
            part.store(vectors.at(pointers.register(MERGED_MEAN), j), means[j])
            part.store(vectors.at(pointers.register(MERGED_M2), j), squares[j])
        pointers.release()
        v.registers.free(*first, *means, *squares, *d, weight)

    def down(self, pointers: RowPointers, weight: Register, body: Callable[[RowPointers], None]) -> None:
        """`body` for every chunk, with its number of elements in `weight`; gives the pointers back."""
        asm, spec = self.v.asm, self.spec
        if spec.rows > 1:
            self.constant(weight, spec.count)
            asm.MOV(self.left, spec.rows - 1)
            with asm.loop(self.left, "chunks"):
                body(pointers)
                pointers.next_row()
        self.constant(weight, spec.last)
        body(pointers)
        pointers.release()
