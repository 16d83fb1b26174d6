"""Means, and sums of squared distances from them, of chunks that become one.

Chunks are merged by means' distances from the mean of all (Chan, Golub and LeVeque 1979), where nothing cancels:

    mean = sum of n_i mean_i / n,   m2 = sum of m2_i + n_i (mean_i - mean)^2

| argument | dtype[shape] | what it is |
|---|---|---|
| means, squares | f32[rows, elements] | chunks row_bytes apart; all of `count` elements, the last one of `last` |
| mean, m2 | f32[elements] | the result; m2 / n instead of m2 if `divides` |
"""

from collections.abc import Callable

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.row_code import OTHER_REGISTERS, Computation
from asmdnn.generators.functions.rows import Vectors, Walk, rows_touched
from asmdnn.isa.assembler import Assembler, Register
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

MEANS, SQUARES, MERGED_MEAN, MERGED_M2 = range(4)
MERGED_AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return f"moments_f32_merge{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("means", "squares", "mean", "m2")

    @property
    def total(self) -> int:
        return (self.rows - 1) * self.count + self.last

    def footprint(self) -> Footprint:
        reads = (rows_touched(argument, self.rows, self.row_bytes, self.elements) for argument in (MEANS, SQUARES))
        writes = (rows_touched(argument, 1, 0, self.elements) for argument in (MERGED_MEAN, MERGED_M2))
        return Footprint(tuple(x for found in reads for x in found), tuple(x for found in writes for x in found))

    def generate(self, asm: Assembler) -> None:
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
        v.zeros(squares)

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
