"""Reductions: sums, products, maxima, minima of before(src), along rows or down them.

    rows:  dst[r] = after(before(src[r, 0]) o before(src[r, 1]) o ..)
    lanes: dst[c] = after(before(src[0, c]) o before(src[1, c]) o ..)

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | kind[rows, elements]   | rows src_row_bytes apart, elements dense |
| dst     | made[rows or elements] | results of rows dst_row_bytes apart; those of lanes dense |
| 2, 3 .. |                        | operands of before, laid out as src; of after, as dst: an element a row, or a row |

kind and made are f32, or what a TypedReduceSpec says; elements become f32 as they are loaded, results are rounded as
they are stored.

The order of the operations depends on the spec alone.  Maxima and minima pass over NaN: of nothing else, they are the
neutral element, an infinity.
"""

from collections.abc import Sequence
from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import chain_words, compose, names_of_operands, operands_of
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import DST, OTHER_REGISTERS, SRC, Computation, Rows, steps_of
from asmdnn.generators.functions.rows import Vectors, Walk, operands_touched, rows_touched, words_of_types
from asmdnn.generators.functions.typed_program import typed_program
from asmdnn.generators.functions.values import Source
from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import size_of, storing_element
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

NEUTRAL: Final = {"sum": 0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}
INSTRUCTIONS: Final = {"sum": "VADDPS", "mul": "VMULPS", "max": "VMAXPS", "min": "VMINPS"}
AT_ONCE = 4
AHEAD_BYTES = 4096  # of what is prefetched: the next page, where a CPU's own prefetchers stop
SHORT: Final = 16  # vectors of a row: in longer ones each row's own loads would be strange to prefetchers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceSpec:
    """Everything that the bytes of such a kernel depend on.  along: "rows" or "lanes", see above.  prefetches: rows
    are asked for AHEAD_BYTES before."""

    isa: str
    along: str
    op: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    before: tuple[PostOp, ...] = ()
    after: tuple[PostOp, ...] = ()
    prefetches: bool = False

    @property
    def src_kind(self) -> str:
        """The type of src."""
        return "f32"

    @property
    def dst_kind(self) -> str:
        """The type of dst."""
        return "f32"

    @property
    def program(self) -> Program:
        """What is reduced, of src and the operands of `before`."""
        return compose(self.before)

    @property
    def last(self) -> Program:
        """What is stored of lanes, of the reduction and the operands of `after`."""
        return compose(self.after)

    @property
    def name(self) -> str:
        words = [*chain_words((*self.before, *self.after)), checksum(self)]
        types = words_of_types((self.src_kind, *[self.dst_kind] * (self.dst_kind != "f32")))
        return f"reduce_{self.op}_{types}_{self.along}{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst", *names_of_operands((*self.before, *self.after)))

    @property
    def results(self) -> tuple[int, int]:
        """Rows and elements of dst."""
        return (self.rows, 1) if self.along == "rows" else (1, self.elements)

    def footprint(self) -> Footprint:
        rows, elements = self.results
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements, size_of(self.src_kind))
        operands: list[Range] = [*operands_touched(self.before, self.rows, self.elements)]
        operands += operands_touched(self.after, rows, elements)
        dst = rows_touched(DST, rows, self.dst_row_bytes, elements, size_of(self.dst_kind))
        return Footprint(tuple(dict.fromkeys((*src, *operands))), dst)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        if self.along == "rows":
            ReduceAlong(self, v).all_rows()
        else:
            ReduceDown(self, v).emit()
        asm.ret()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedReduceSpec(ReduceSpec):
    """A reduction of elements of another type than f32, in which it computes, or to such elements."""

    kind: str = "f32"
    made: str = "f32"

    @property
    def src_kind(self) -> str:
        return self.kind

    @property
    def dst_kind(self) -> str:
        return self.made

    @property
    def program(self) -> Program:
        kinds = (self.kind, *["f32"] * len(operands_of(self.before)))
        return typed_program((self.before,), kinds, ("f32",))

    @property
    def last(self) -> Program:
        kinds = ("f32", *["f32"] * len(operands_of(self.after)))
        return typed_program((self.after,), kinds, (storing_element(self.made, self.isa).stored_as,))


def combine_of(op: str, v: Vector) -> Combine:
    """dst = a op b, b being what maxima and minima take where a is NaN."""
    combine: Combine = getattr(v.asm, INSTRUCTIONS[op])
    return combine


def walk_of(spec: ReduceSpec, v: Vector) -> Walk:
    return Walk(v, spec.elements, min(size_of(spec.src_kind), size_of(spec.dst_kind)))


class ReduceAlong(Rows):
    """A row at a time, in AT_ONCE accumulators.  Dense results of another type than f32 wait on the stack for others,
    and are rounded together: one alone costs as much as a short row."""

    def __init__(self, spec: ReduceSpec, v: Vector) -> None:
        steps = steps_of(operands_of((*spec.before, *spec.after)))
        is_short = spec.elements <= SHORT * v.lanes
        waits = spec.dst_kind != "f32" and spec.dst_row_bytes == size_of(spec.dst_kind) and is_short
        together = min(v.lanes, spec.rows) if waits else 1
        super().__init__(v, spec.rows, together, (spec.src_row_bytes, spec.dst_row_bytes), steps)
        self.spec, self.walk, self.combine = spec, walk_of(spec, v), combine_of(spec.op, v)
        if spec.dst_kind != "f32":
            self.element = storing_element(spec.dst_kind, spec.isa)
            room = v.asm.stack(v.bytes)
            self.waiting = [room.shifted(F32_BYTES * r) for r in range(together)]

    def some(self, rows: int) -> None:
        v, asm, is_rounded = self.v, self.v.asm, self.spec.dst_kind != "f32"
        for row in range(rows):
            result = self.row(row)
            asm.VMOVSS(self.waiting[row].sized(4) if is_rounded else mem(self.dst, size=4), result.xmm)
            v.registers.free(result)
        if is_rounded:
            asm.role("results")
            with v.parts(1, rows) as parts:
                rounded = typed_program(((),), ("f32",), (self.element.stored_as,))
                values = self.apply(rounded, [[Source(lambda: self.waiting[0].sized(v.bytes), parts[0])]])
                self.store(self.element, values, [(mem(self.dst, size=v.bytes), parts[0])])

    def row(self, row: int) -> Register:
        """Its result, in the first lane at least."""
        v, spec = self.v, self.spec
        v.asm.role("row")
        totals = v.registers.take(spec.op, min(AT_ONCE, len(self.walk.parts)))
        for total in totals:
            self.constant(total, NEUTRAL[spec.op])
        self.walk.each(AT_ONCE, "vectors", lambda vectors: self.add(vectors, totals, row))
        v.asm.role("result")
        self.combined(totals[0], totals, self.combine)
        v.registers.free(*totals[1:])
        one = Vectors(v, [v], 0, None)
        operands = [self.operand(operand, one, row) for operand in operands_of(spec.after)]
        (result,) = self.apply(compose(spec.after), [[totals[0]], *operands])
        return result

    def add(self, vectors: Vectors, totals: Sequence[Register], row: int) -> None:
        v, spec = self.v, self.spec
        if spec.prefetches:
            self.prefetch(vectors, AHEAD_BYTES + row * spec.src_row_bytes, size_of(spec.src_kind))
        operands = [self.operand(operand, vectors, row) for operand in operands_of(spec.before)]
        src = vectors.sources(lambda: self.src, further_bytes=row * spec.src_row_bytes, kind=spec.src_kind)
        values = self.apply(spec.program, [src, *operands])
        for part, value, total in zip(vectors.parts, values, totals, strict=False):
            if part is not v:
                neutral = v.registers.take("neutral")
                self.constant(neutral, NEUTRAL[spec.op])
                part.fill_rest(value, neutral)
                v.registers.free(neutral)
            self.combine(total, value, total)
        v.registers.free(*values)


class ReduceDown(Computation):
    """Some vectors at a time, down all rows."""

    def __init__(self, spec: ReduceSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.combine = spec, combine_of(spec.op, v)
        self.walk, self.left = walk_of(spec, v), v.asm.gp.take("rows left")

    def emit(self) -> None:
        self.walk.each(AT_ONCE, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        v, asm, spec = self.v, self.v.asm, self.spec
        asm.role("rows")
        totals = v.registers.take(spec.op, vectors.count)
        for total in totals:
            self.constant(total, NEUTRAL[spec.op])
        before, after = operands_of(spec.before), operands_of(spec.after)
        pointers = self.pointers({SRC: spec.src_row_bytes, **steps_of(before)})
        with pointers.each_row(self.left, spec.rows, "rows"):
            sources = vectors.sources(lambda: pointers.register(SRC), kind=spec.src_kind)
            values = self.apply(spec.program, [sources, *(self.operand(o, vectors, pointers) for o in before)])
            for total, value in zip(totals, values, strict=True):
                self.combine(total, value, total)
            v.registers.free(*values)
        pointers.release()
        asm.role("results")
        pointers = self.pointers({DST: 0, **dict.fromkeys(steps_of(after), 0)})
        results = self.apply(spec.last, [totals, *(self.operand(o, vectors, pointers) for o in after)])
        places = vectors.places(pointers.register(DST), spec.dst_kind)
        self.store(storing_element(spec.dst_kind, spec.isa), results, places)
        pointers.release()

    def pointers(self, steps: dict[int, int]) -> RowPointers:
        return RowPointers(self.v.asm, steps, self.spec.rows, OTHER_REGISTERS)

    def operand(self, operand: Operand | None, vectors: Vectors, pointers: RowPointers) -> list[Source]:
        assert operand is not None, "sums of what dst held are refused"
        argument = operand.argument
        return vectors.sources(lambda: pointers.register(argument), operand.element)
