"""Softmax along rows but for the division, which who sums products of its rows does to their sums:

    dst = e^(x - max x) and factors = 1 / sum of e^(x - max x),   x = masks(src * scale)

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src_row_bytes apart, elements dense |
| dst     | kind[rows, elements] | rows dst_row_bytes apart, elements dense |
| factors | f32[rows] | dense |
| 3, 4 .. | f32[rows, elements] | operands of masks, each laid out as its Operand says |
| last, if it is asked for | f32[rows] | logsumexp: max x + log(sum of e^(x - max x)); its Operand says how far apart |

dst is rounded once, by the instruction of the level: bf16 is 0 where it is a denormal number, as products take those.
Of a row with NaN or +infinity, or with nothing but -infinity, the factor is NaN.

e^y = 2^t, t = y log2(e).  VREDUCEPS leaves f = t - floor t, a polynomial gives 2^f, and VSCALEFPS multiplies it by
2^floor t, which is 0 for -infinity.  The polynomial is a minimax one with 1 for f = 0; its relative error is below
2^-13.5, a twentieth of what rounding to bf16 does.
"""

from collections.abc import Callable, Sequence

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import chain_words, compose, names_of_operands, operands_of
from asmdnn.generators.functions.eltwise.exponential import LOG2_E
from asmdnn.generators.functions.postops import EltwiseOp, Operand, PostOp
from asmdnn.generators.functions.row_code import DST, SRC, Rows, steps_of
from asmdnn.generators.functions.rows import Vectors, Walk, operands_touched, rows_touched
from asmdnn.generators.functions.softmax_programs import log_program
from asmdnn.generators.stores import ROUNDING_REGISTERS, store_at_once
from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import native_element, size_of
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

FACTORS = 2
POWER = (1.0, 0.695116817, 0.227644839, 0.0770671833)  # 2^f for 0 <= f < 1
DOWN = 0b1001  # VREDUCEPS's immediate: floor, and no exception
ROWS = 4  # at a time: their maxima, and their sums, are found together
AT_ONCE = 4  # vectors
INFINITY = float("inf")
NEXT = 0b111001  # VPERMILPS's immediate: each lane has the next one's number


@exact
@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxPartsSpec:
    """Everything that the bytes of such a kernel depend on."""

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    scale: float
    kind: str
    masks: tuple[PostOp, ...] = ()
    logsumexp: Operand | None = None

    @property
    def name(self) -> str:
        words = [*chain_words(self.masks), checksum(self)]
        return f"softmaxparts_f32{self.kind}_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        names = names_of_operands(self.masks)
        return ("src", "dst", "factors", *names, *["logsumexp"] * (self.logsumexp is not None))

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements)
        dst = rows_touched(DST, self.rows, self.dst_row_bytes, self.elements, size_of(self.kind))
        masks, sums = operands_touched(self.masks, self.rows, self.elements), self.logsumexp
        left = rows_touched(sums.argument, self.rows, sums.row_bytes, 1) if sums else ()
        factors = Range(FACTORS, 0, F32_BYTES * self.rows)
        return Footprint(tuple(dict.fromkeys((*src, *masks))), (*dst, factors, *left))

    def generate(self, asm: Assembler) -> None:
        PartsCode(self, vector_of(self.isa, asm)).all_rows()
        asm.ret()


class PartsCode(Rows):
    """Some rows at a time: the maximum of each, then the powers of each, while they are summed."""

    def __init__(self, spec: SoftmaxPartsSpec, v: Vector) -> None:
        steps = {FACTORS: F32_BYTES, **steps_of([*operands_of(spec.masks), spec.logsumexp])}
        super().__init__(v, spec.rows, min(spec.rows, ROWS), (spec.src_row_bytes, spec.dst_row_bytes), steps)
        self.spec, self.stored = spec, native_element(spec.kind, spec.isa)
        self.walk = Walk(v, spec.elements, self.stored.size_bytes)
        self.limits = v.asm.stack(ROWS * F32_BYTES)
        self.factor = LOG2_E * (1.0 if spec.masks else spec.scale)  # of what is loaded, or masked
        v.asm.role("constants")
        self.unit, *self.power = v.registers.take("constants", 1 + len(POWER))
        for register, number in zip((self.unit, *self.power), (self.factor, *POWER), strict=True):
            self.constant(register, number)

    def some(self, rows: int) -> None:
        v, asm = self.v, self.v.asm
        asm.role("maximum")
        further, least = (asm.VMAXPS, -INFINITY) if self.factor > 0 else (asm.VMINPS, INFINITY)
        most = self.together_of([self.furthest(r, further, least) for r in range(rows)], further)
        self.times(most, -self.factor)
        v.store_first(self.limits, most, whole(rows))
        if self.spec.logsumexp is None:
            v.registers.free(most)
        asm.role("powers")
        total = self.together_of([self.powers(r) for r in range(rows)], v.add)
        if self.spec.logsumexp is not None:
            self.leave_logsumexp(total, most, rows, self.spec.logsumexp)
        asm.VDIVPS(total.xmm, self.power[0].xmm, total.xmm)
        self.store_factors(total, rows)
        v.registers.free(total)

    def together_of(self, xs: Sequence[Register], combine: Combine) -> Register:
        """Lane r of a register = all lanes of xs[r] combined; the others are given up."""
        v = self.v
        copies = v.registers.take("copy", whole(len(xs)) - len(xs))
        for copy in copies:
            v.move(copy, xs[0])
        with v.registers.taken("spare") as spare:
            first = v.sum_lanes([*xs, *copies], spare, combine)
        v.registers.free(*xs[1:], *copies)
        return first

    def furthest(self, row: int, further: Callable[..., None], least: float) -> Register:
        """The largest of a row lie in its lanes, or the least where the scale is negative."""
        v = self.v
        found, other, filler = (v.registers.take(name) for name in ("furthest", "others", "filler"))
        for register in (found, other, filler):
            self.constant(register, least)

        def some(vectors: Vectors) -> None:
            values = self.loaded(vectors, row)
            for j, (part, x) in enumerate(zip(vectors.parts, values, strict=True)):
                part.fill_rest(x, filler)
                target = (found, other)[j % 2]
                further(target, target, x)
            v.registers.free(*values)

        self.walk.each(AT_ONCE, "maximum", some)
        further(found, found, other)
        v.registers.free(other, filler)
        return found  # type: ignore[no-any-return]

    def loaded(self, vectors: Vectors, row: int) -> list[Register]:
        """What the factor multiplies, of some vectors of a row."""
        spec, v = self.spec, self.v
        if spec.masks:
            chain = (EltwiseOp("linear", spec.scale, 0.0, 1.0), *spec.masks)
            src = vectors.sources(lambda: self.src, further_bytes=row * spec.src_row_bytes)
            return self.apply(compose(chain), [src, *(self.operand(o, vectors, row) for o in operands_of(spec.masks))])
        values: list[Register] = v.registers.take("x", vectors.count)
        for j, x in enumerate(values):
            vectors.load(x, self.src, j, row * spec.src_row_bytes)
        return values

    def powers(self, row: int) -> Register:
        """Those of a row are stored; their sums lie in the lanes of a register."""
        v, asm = self.v, self.v.asm
        limit, total, other = (v.registers.take(name) for name in ("limit", "sum", "other sum"))
        v.broadcast(limit, self.limits.shifted(F32_BYTES * row).sized(F32_BYTES))
        v.zero(total)
        v.zero(other)

        def some(vectors: Vectors) -> None:
            values = self.loaded(vectors, row)
            for x in values:
                asm.VFMADD213PS(x, self.unit, limit)
            results = self.powers_of_two(values)
            for j, (part, x) in enumerate(zip(vectors.parts, results, strict=True)):
                part.clear_rest(x)
                target = (total, other)[j % 2]
                v.add(target, target, x)
            places = vectors.places(self.dst, self.spec.kind, row * self.spec.dst_row_bytes)
            with v.registers.taken("rounding", ROUNDING_REGISTERS) as spare:
                store_at_once(v, self.stored, results, places, spare)
            v.registers.free(*results)

        self.walk.each(AT_ONCE, "powers", some)
        v.add(total, total, other)
        v.registers.free(limit, other)
        return total  # type: ignore[no-any-return]

    def powers_of_two(self, values: Sequence[Register]) -> list[Register]:
        """2^x of each, in other registers; the values are given up."""
        v, asm = self.v, self.v.asm
        fractions, results = (v.registers.take(name, len(values)) for name in ("fraction", "power"))
        for x, f in zip(values, fractions, strict=True):
            asm.VREDUCEPS(f, x, DOWN)
        *lower, highest = self.power
        for result in results:
            v.move(result, highest)
        for c in reversed(lower):
            for result, f in zip(results, fractions, strict=True):
                asm.VFMADD213PS(result, f, c)
        for result, x in zip(results, values, strict=True):
            asm.VSCALEFPS(result, result, x)
        v.registers.free(*values, *fractions)
        return list(results)

    def leave_logsumexp(self, total: Register, limits: Register, rows: int, where: Operand) -> None:
        """log(total) - limits log(2), a lane for each row; the limits are given up."""
        v, asm = self.v, self.v.asm
        copy = v.registers.take("sum")
        v.move(copy, total)
        (found,) = self.apply(log_program(), [[copy]])
        self.times(limits, -1.0 / LOG2_E)
        v.add(found, found, limits)
        v.registers.free(limits)
        to = self.operands.register(where.argument)
        for row in range(rows):
            asm.VMOVSS(mem(to, row * where.row_bytes, size=F32_BYTES), found.xmm)
            if row + 1 < rows:
                asm.VPERMILPS(found.xmm, found.xmm, NEXT)
        v.registers.free(found)

    def store_factors(self, x: Register, rows: int) -> None:
        at = mem(self.operands.register(FACTORS), size=self.v.bytes)
        if rows == whole(rows):
            self.v.store_first(at, x, rows)
        else:
            part = self.v.tail(rows)
            part.store(at, x)
            part.release()


def whole(rows: int) -> int:
    """The next power of two."""
    return 1 << (rows - 1).bit_length()
