"""The code of softmax.py, for rows that registers hold and for longer ones."""

from collections.abc import Sequence

from asmdnn.generators.functions.chain import compose, operands_of
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import Rows
from asmdnn.generators.functions.rows import F32_TYPES, Vectors, Walk
from asmdnn.generators.functions.softmax_programs import (
    exponential,
    log_program,
    logarithm,
    power,
    probability,
    quotient,
)
from asmdnn.generators.functions.softmax_shape import SoftmaxShape
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.elements import storing_element
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_class
from asmdnn.types import F32_BYTES

INFINITY = float("inf")
ACCUMULATORS = 4
REGISTERS_OF_POWER = 3
REGISTERS_OF_VECTOR = 4  # which a walk takes some of at a time: its own, and what its power takes


def rows_held(isa: str, elements: int, log: bool = False) -> int:
    """How many rows of so many elements registers hold, beside what exponentials need; log: twice, as these come
    beside the elements."""
    return vector_class(isa).count // (4 if log else 2) // -(-elements // lanes_of(isa))


class HeldRows(Rows):
    """A few rows of a few vectors, in registers from the first load to the store.

    The last vector of a row of f32 ends where the row does, since masked stores are slow (microcode on Zen).
    """

    def __init__(self, spec: SoftmaxShape, v: Vector) -> None:
        together = min(spec.rows, rows_held(spec.isa, spec.elements, spec.log))
        super().__init__(v, spec.rows, together, spec.row_bytes, spec.steps)
        self.spec, (self.src_kind, self.dst_kind) = spec, spec.types
        self.stored = storing_element(self.dst_kind, spec.isa)
        full, rest = divmod(spec.elements, v.lanes)
        ends = full and spec.types == F32_TYPES
        self.last: Lanes = v if not rest else v.end(rest) if ends else v.tail(rest)
        self.parts = [*[v] * (full + bool(rest) - 1), self.last]

    def some(self, rows: int) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        row = Vectors(v, self.parts, 0, None)
        asm.role("load")
        x = self.loaded(row, rows)
        asm.role("maximum")
        self.fill([x[r * row.count + row.count - 1] for r in range(rows)])
        for of_row in by_row(x, rows):
            most = v.registers.take("most")
            self.combined(most, of_row, asm.VMAXPS)
            for value in of_row:
                asm.VSUBPS(value, value, most)
            v.registers.free(most)
        if spec.log:
            self.subtract_log_sums(x, rows)
        else:
            asm.role("exponentials")
            x = self.in_turn(power(), x)
            asm.role("sum")
            for of_row in by_row(x, rows):
                total = self.sum_of(of_row)
                self.inverse(total)
                for value in of_row:
                    v.mul(value, value, total)
                v.registers.free(total)
        if spec.after:
            asm.role("post-ops")
            operands = [self.of_rows(operand, row, rows) for operand in operands_of(spec.after)]
            x = self.apply(compose(spec.after), [x, *operands])
        asm.role("store")
        if self.stored.stored_as != "f32":
            x = self.in_turn(of_lanes(compose(()), ("f32",), (self.dst_kind,)), x)
        places = [at for r in range(rows) for at in row.places(self.dst, self.dst_kind, r * spec.dst_row_bytes)]
        self.store(self.stored, x, places)

    def loaded(self, row: Vectors, rows: int) -> list[Register]:
        """before(src) of so many rows."""
        spec, v = self.spec, self.v
        if spec.before:
            operands = [self.of_rows(operand, row, rows) for operand in operands_of(spec.before)]
            program = of_lanes(compose(spec.before), (self.src_kind,), ("f32",))
            return self.apply(program, [self.src_of_rows(row, rows, self.src_kind), *operands])
        x: list[Register] = v.registers.take("x", rows * row.count)
        for i, value in enumerate(x):
            r, j = divmod(i, row.count)
            row.load(value, self.src, j, r * spec.src_row_bytes, self.src_kind)
        return x

    def in_turn(self, program: Program, x: Sequence[Register]) -> list[Register]:
        """The program of x, as many at a time as there are registers for."""
        together = max(1, self.v.registers.available // REGISTERS_OF_POWER)
        found: list[Register] = []
        for first in range(0, len(x), together):
            found += self.apply(program, [x[first : first + together]])
        return found

    def subtract_log_sums(self, x: Sequence[Register], rows: int) -> None:
        """Of the exponentials of each row, beside which the elements stay."""
        v, asm = self.v, self.v.asm
        asm.role("exponentials")
        powers = v.registers.take("exponential", len(x))
        for of_x, copy in zip(x, powers, strict=True):
            v.move(copy, of_x)
        powers = self.in_turn(power(), powers)
        asm.role("sum")
        totals = []
        for of_row in by_row(powers, rows):
            totals.append(self.sum_of(of_row))
            v.registers.free(*of_row)
        asm.role("logarithms")
        for of_row, total in zip(by_row(x, rows), self.in_turn(log_program(), totals), strict=True):
            for value in of_row:
                asm.VSUBPS(value, value, total)
            v.registers.free(total)

    def sum_of(self, row: Sequence[Register]) -> Register:
        """The sum of a row's elements, in every lane."""
        v, last = self.v, row[-1]
        total, own = v.registers.take("sum", 2)
        v.move(own, last)
        self.last.clear_rest(own)
        self.combined(total, [own, *row[:-1]], v.add)
        v.registers.free(own)
        return total  # type: ignore[no-any-return]

    def fill(self, last: Sequence[Register]) -> None:
        """The lanes of last vectors that are after the rows."""
        filler = self.v.registers.take("-infinity")
        self.constant(filler, -INFINITY)
        for x in last:
            self.last.fill_rest(x, filler)
        self.v.registers.free(filler)


def by_row(x: Sequence[Register], rows: int) -> list[Sequence[Register]]:
    """The vectors of each row."""
    count = len(x) // rows
    return [x[r * count : (r + 1) * count] for r in range(rows)]


class SoftmaxOfLongRows(Rows):
    """One row at a time, in three walks."""

    def __init__(self, spec: SoftmaxShape, v: Vector, prefetches: bool) -> None:
        super().__init__(v, spec.rows, 1, spec.row_bytes, spec.steps)
        self.spec, (self.src_kind, self.dst_kind) = spec, spec.types
        self.stored = storing_element(self.dst_kind, spec.isa)
        self.prefetches = prefetches
        asm = v.asm
        self.walk = Walk(v, spec.elements, spec.unit)
        self.at_once = v.count // REGISTERS_OF_VECTOR
        self.limit, self.last = asm.stack(4), asm.stack(4)  # the maximum; 1 / sum, or its logarithm

    def some(self, rows: int) -> None:
        self.v.asm.role("maximum")
        self.maximum()
        self.v.asm.role("exponentials")
        total = self.exponentials()
        if self.spec.logsumexp:
            self.leave_logsumexp(total, self.spec.logsumexp)
        if self.spec.log:
            (total,) = self.apply(log_program(), [[total]])
        else:
            self.inverse(total)
        self.v.asm.VMOVSS(self.last, total.xmm)
        self.v.registers.free(total)
        self.v.asm.role("results")
        self.walk.each(self.at_once, "results", self.results)

    def maximum(self) -> None:
        v, asm = self.v, self.v.asm
        most = v.registers.take("most", ACCUMULATORS)
        for x in most:
            self.constant(x, -INFINITY)

        def some(vectors: Vectors) -> None:
            values = self.loaded(vectors)
            for j, (part, x) in enumerate(zip(vectors.parts, values, strict=True)):
                if isinstance(x, Register) and part is not v:
                    filler = v.registers.take("-infinity")
                    self.constant(filler, -INFINITY)
                    part.fill_rest(x, filler)
                    v.registers.free(filler)
                asm.VMAXPS(most[j % ACCUMULATORS], most[j % ACCUMULATORS], x)
            v.registers.free(*(x for x in values if isinstance(x, Register)))
            if self.prefetches:
                self.prefetch(vectors)

        self.walk.each(self.at_once, "maximum", some)
        self.combined(most[0], most, asm.VMAXPS)
        asm.VMOVSS(self.limit, most[0].xmm)
        v.registers.free(*most)

    def loaded(self, vectors: Vectors) -> Sequence[Register | Pointer]:
        """before(src), in registers; whole vectors of src itself where they are."""
        if self.spec.before:
            program = of_lanes(compose(self.spec.before), (self.src_kind,), ("f32",))
            return self.apply(program, [self.of_src(vectors), *self.of_before(vectors)])
        found: list[Register | Pointer] = []
        for j, part in enumerate(vectors.parts):
            if part is self.v and self.src_kind == "f32":
                found.append(vectors.at(self.src, j))
            else:
                x = self.v.registers.take("x")
                vectors.load(x, self.src, j, kind=self.src_kind)
                found.append(x)
        return found

    def of_src(self, vectors: Vectors) -> list[Source]:
        return vectors.sources(lambda: self.src, kind=self.src_kind)

    def exponentials(self) -> Register:
        """Their sum in every lane; each is stored if dst keeps them."""
        v = self.v
        total = v.registers.take("sum")
        v.zero(total)

        def some(vectors: Vectors) -> None:
            inputs = [self.of_src(vectors), *self.of_before(vectors), self.scalar(self.limit, vectors)]
            powers = self.apply(of_lanes(exponential(self.spec.before), (self.src_kind,), ("f32",)), inputs)
            for j, (part, x) in enumerate(zip(vectors.parts, powers, strict=True)):
                part.clear_rest(x)
                if self.spec.keeps:
                    part.store(vectors.at(self.dst, j), x)
            self.add_up(powers)
            v.add(total, total, powers[0])
            v.registers.free(*powers)

        self.walk.each(self.at_once, "exponentials", some)
        self.combined(total, [total], v.add)
        return total  # type: ignore[no-any-return]

    def leave_logsumexp(self, total: Register, where: Operand) -> None:
        """The largest element and the logarithm of the sum, which every lane has."""
        v = self.v
        copy = v.registers.take("sum")
        v.move(copy, total)
        (found,) = self.apply(log_program(), [[copy]])
        with v.registers.taken("most") as most:
            v.broadcast(most, self.limit)
            v.add(found, found, most)
        v.asm.VMOVSS(mem(self.operands.register(where.argument), size=F32_BYTES), found.xmm)
        v.registers.free(found)

    def add_up(self, x: Sequence[Register]) -> None:
        """x[0] = the sum, by halves: long rows have fewer sums in a row, whose errors add up."""
        while len(x) > 1:
            half = (len(x) + 1) // 2
            for a, b in zip(x, x[half:], strict=False):
                self.v.add(a, a, b)
            x = x[:half]

    def results(self, vectors: Vectors) -> None:
        spec = self.spec
        last, after = self.scalar(self.last, vectors), [self.operand(o, vectors) for o in operands_of(spec.after)]
        if spec.keeps:
            values = self.apply(quotient(spec.after), [vectors.sources(lambda: self.dst), last, *after])
        else:
            program = (logarithm if spec.log else probability)(spec.before, spec.after)
            inputs = [self.of_src(vectors), self.scalar(self.limit, vectors), last, *self.of_before(vectors), *after]
            values = self.apply(of_lanes(program, (self.src_kind,), (self.stored.stored_as,)), inputs)
        self.store(self.stored, values, vectors.places(self.dst, self.dst_kind))

    def of_before(self, vectors: Vectors) -> list[list[Source]]:
        return [self.operand(operand, vectors) for operand in operands_of(self.spec.before)]
