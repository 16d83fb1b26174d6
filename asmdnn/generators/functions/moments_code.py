"""The code of moments.py: along rows, long ones or short ones, and down them."""

from collections.abc import Sequence
from typing import Protocol

from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.row_code import OTHER_REGISTERS, SRC, Computation, Rows
from asmdnn.generators.functions.rows import Vectors, Walk
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.elements import element_of, size_of
from asmdnn.isa.vector import Broadcast, Vector
from asmdnn.types import F32_BYTES

MEAN, M2 = 1, 2
AT_ONCE = 4  # vectors of a long row
TOGETHER = 4  # short rows, whose sums across lanes take as long as one's
SHORT = 8  # vectors of such a row, which need no loop
CHAINS = 4  # sums of a vector of lanes: a multiply-add waits four cycles for the one before


class MomentsFields(Protocol):
    """What the code is of; see MomentsSpec."""

    @property
    def rows(self) -> int: ...
    @property
    def elements(self) -> int: ...
    @property
    def src_row_bytes(self) -> int: ...
    @property
    def dst_row_bytes(self) -> int: ...
    @property
    def divides(self) -> bool: ...
    @property
    def kind(self) -> str: ...


class MomentsOfLongRows(Rows):
    """A row at a time; where other kernels have dst, there is the mean."""

    def __init__(self, spec: MomentsFields, v: Vector) -> None:
        super().__init__(v, spec.rows, 1, (spec.src_row_bytes, spec.dst_row_bytes), {M2: spec.dst_row_bytes})
        self.spec, self.walk = spec, walk_of(spec, v)

    def some(self, rows: int) -> None:
        v, asm, n = self.v, self.v.asm, self.spec.elements
        asm.role("sums")
        count = min(AT_ONCE, len(self.walk.parts))
        sums, squares = v.registers.take("sum d", count), v.registers.take("sum d^2", count)
        shift, d = v.registers.take("k"), v.registers.take("d", 2)
        Vectors(v, self.walk.parts[:1], 0, None).load(shift, self.src, 0, kind=self.spec.kind)
        self.combined(shift, [shift], v.add)
        self.times(shift, 1 / min(v.lanes, n))
        for total in (*sums, *squares):
            v.zero(total)

        def add(vectors: Vectors) -> None:
            add_distances(vectors, (self.src, 0), [shift] * count, (sums, squares), d, self.spec.kind)

        self.walk.each(AT_ONCE, "vectors", add)
        asm.role("results")
        self.combined(sums[0], sums, v.add)
        self.combined(squares[0], squares, v.add)
        finish(self, n, self.spec.divides, shift, sums[0], squares[0])
        asm.VMOVSS(mem(self.dst, size=4), shift.xmm)
        asm.VMOVSS(mem(self.operands.register(M2), size=4), squares[0].xmm)
        v.registers.free(*sums, *squares, shift, *d)


class ShortRows(Rows):
    """TOGETHER rows of few vectors at a time: their sums become lanes of one vector, and so their results."""

    def __init__(self, spec: MomentsFields, v: Vector) -> None:
        row_bytes = (spec.src_row_bytes, spec.dst_row_bytes)
        super().__init__(v, spec.rows, TOGETHER, row_bytes, {M2: spec.dst_row_bytes})
        self.spec, self.parts = spec, walk_of(spec, v).parts

    def some(self, rows: int) -> None:
        """In powers of two."""
        done = 0
        while done < rows:
            size = 1 << (rows - done).bit_length() - 1
            self.few(done, size)
            done += size

    def few(self, first: int, rows: int) -> None:
        """A power of two of rows, from number `first` on."""
        v, asm = self.v, self.v.asm
        asm.role("sums")
        shifts, sums, squares = (v.registers.take(name, rows) for name in ("k", "sum d", "sum d^2"))
        d = v.registers.take("d", 2)
        for r in range(rows):
            row, place = Vectors(v, self.parts, 0, None), (first + r) * self.src_row_bytes
            self.first_element(shifts[r], place)
            v.zero(sums[r])
            v.zero(squares[r])
            totals = [sums[r]] * row.count, [squares[r]] * row.count
            add_distances(row, (self.src, place), [shifts[r]] * row.count, totals, d, self.spec.kind)
        v.registers.free(*d)
        asm.role("results")
        spare = v.registers.take("spare")
        total, square = v.sum_lanes(sums, spare), v.sum_lanes(squares, spare)
        v.registers.free(spare)
        means = self.beside(shifts)
        finish(self, self.spec.elements, self.spec.divides, means, total, square)
        for pointer, result in ((self.dst, means), (self.operands.register(M2), square)):
            v.store_first(mem(pointer, first * F32_BYTES, size=v.bytes), result, rows)
        v.registers.free(*shifts, *sums, *squares)

    def first_element(self, x: Register, place: int) -> None:
        """That of a row, in every lane."""
        of = element_of(self.spec.kind)
        (of.repeated(self.v) or Broadcast(self.v)).load(x, mem(self.src, place, size=of.size_bytes))
        of.to_f32(self.v, x)

    def beside(self, numbers: Sequence[Register]) -> Register:
        """The first of them, whose lane i becomes that of numbers[i]; of which there are up to four."""
        for unpack in (self.v.asm.VUNPCKLPS, self.v.asm.VUNPCKLPD):
            for x, y in zip(numbers[::2], numbers[1::2], strict=False):
                unpack(x, x, y)
            numbers = numbers[::2]
        return numbers[0]


class MomentsDown(Computation):
    """Some vectors at a time, down all rows; where they are few, several rows at a time, each in sums of its own."""

    def __init__(self, spec: MomentsFields, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.walk, self.left = spec, walk_of(spec, v), v.asm.gp.take("rows left")
        self.free = v.registers.available - 2  # but two for d
        self.at_once = 1 << (self.free // 3).bit_length() - 1  # k and both sums of each; whole lines

    def emit(self) -> None:
        self.walk.each(self.at_once, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        v, asm, spec, count = self.v, self.v.asm, self.spec, vectors.count
        asm.role("sums")
        chains = max(1, min(CHAINS, spec.rows, (self.free - count) // (2 * count)))
        shifts, d = v.registers.take("k", count), v.registers.take("d", 2)
        sums, squares = v.registers.take("sum d", chains, count), v.registers.take("sum d^2", chains, count)
        pointers = RowPointers(asm, {SRC: chains * spec.src_row_bytes}, spec.rows, OTHER_REGISTERS)
        src = pointers.register(SRC)
        for j in range(count):
            vectors.load(shifts[j], src, j, kind=spec.kind)
        v.zeros((sums, squares))

        def add(rows: int) -> None:
            for r in range(rows):
                add_distances(vectors, (src, r * spec.src_row_bytes), shifts, (sums[r], squares[r]), d, spec.kind)

        asm.MOV(self.left, spec.rows // chains)
        with asm.loop(self.left, "rows"):
            add(chains)
            pointers.next_row()
        add(spec.rows % chains)
        pointers.release()
        asm.role("results")
        for j in range(count):
            for r in range(1, chains):
                v.add(sums[0][j], sums[0][j], sums[r][j])
                v.add(squares[0][j], squares[0][j], squares[r][j])
        v.registers.free(d, sums[1:], squares[1:])
        self.results(vectors, shifts, sums[0], squares[0])

    def results(
        self, vectors: Vectors, shifts: Sequence[Register], sums: Sequence[Register], squares: Sequence[Register]
    ) -> None:
        spec, pointers = self.spec, RowPointers(self.v.asm, {MEAN: 0, M2: 0}, 1)
        for j, part in enumerate(vectors.parts):
            finish(self, spec.rows, spec.divides, shifts[j], sums[j], squares[j])
            part.store(vectors.at(pointers.register(MEAN), j), shifts[j])
            part.store(vectors.at(pointers.register(M2), j), squares[j])
        pointers.release()
        self.v.registers.free(*shifts, *sums, *squares)


def walk_of(spec: MomentsFields, v: Vector) -> Walk:
    return Walk(v, spec.elements, size_of(spec.kind))


def add_distances(
    vectors: Vectors,
    src: tuple[Register, int],
    shifts: Sequence[Register],
    totals: tuple[Sequence[Register], Sequence[Register]],
    d: Sequence[Register],
    kind: str,
) -> None:
    """Sums of d = x - k, and of d^2, of every vector to those of its number; the registers of d take turns.

    src: the pointer of the vectors, and bytes after it.
    """
    v, (sums, squares) = vectors.v, totals
    for j, part in enumerate(vectors.parts):
        distance = d[j % len(d)]
        vectors.load(distance, src[0], j, src[1], kind)
        v.asm.VSUBPS(distance, distance, shifts[j])
        part.clear_rest(distance)
        v.add(sums[j], sums[j], distance)
        v.fma(squares[j], distance, distance)


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
