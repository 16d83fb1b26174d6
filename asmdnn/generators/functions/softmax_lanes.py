"""Softmax along rows apart, for lanes side by side: of x = before(src), element by element, for each column,

    dst = after(e^(x - max x) / sum of e^(x - max x)),   or   dst = after(x - max x - log(sum of e^(x - max x)))

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | kind[rows, elements] | rows src_row_bytes apart, elements dense; maxima and sums are over the rows |
| dst     | kind[rows, elements] | rows dst_row_bytes apart, elements dense; may be src; f32 has e^(x - max) meanwhile |
| 2, 3 .. | f32[rows, elements] | operands of before and after, each laid out as its Operand says |

kind is f32, or what `types` says of src and dst; elements become f32 as they are loaded, and are rounded once.
A group of vectors goes three times down the rows, with its maxima and sums in registers; e^(x - max x) is 0 below
2^-127.  A column with NaN or +infinity, or with nothing but -infinity, becomes NaN.
"""

from collections.abc import Callable, Sequence

from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.chain import compose, operands_of
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.generators.functions.row_code import OTHER_REGISTERS, Computation
from asmdnn.generators.functions.rows import Vectors, Walk, tensors_read
from asmdnn.generators.functions.softmax_code import INFINITY, REGISTERS_OF_VECTOR
from asmdnn.generators.functions.softmax_programs import exponential, log_program, logarithm, probability, quotient
from asmdnn.generators.functions.softmax_shape import DST, SRC, SoftmaxShape
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.elements import storing_element
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxLanesSpec(SoftmaxShape):
    """Everything that the bytes of such a kernel depend on.  log: of the second form."""

    @property
    def name(self) -> str:
        return self.named(f"lanes{self.rows}x{self.elements}")

    def footprint(self) -> Footprint:
        return self.touched(rereads=self.keeps)

    def generate(self, asm: Assembler) -> None:
        LanesCode(self, vector_of(self.isa, asm)).emit()
        asm.ret()


class LanesCode(Computation):
    """Three passes down the rows for some vectors at a time."""

    def __init__(self, spec: SoftmaxLanesSpec, v: Vector) -> None:
        super().__init__(v)
        (self.src_kind, self.dst_kind), self.before = spec.types, operands_of(spec.before)
        self.stored = storing_element(self.dst_kind, spec.isa)
        self.spec, self.at_once = spec, v.count // REGISTERS_OF_VECTOR
        self.walk, self.left = Walk(v, spec.elements, spec.unit), v.asm.gp.take("rows left")
        self.limits, self.lasts = ([v.asm.stack(v.bytes) for _ in range(self.at_once)] for _ in range(2))

    def emit(self) -> None:
        self.walk.each(self.at_once, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        """These lanes of all rows."""
        v, asm = self.v, self.v.asm
        asm.role("maximum")
        most = v.registers.take("most", vectors.count)
        for x in most:
            self.constant(x, -INFINITY)
        self.down(vectors, "maximum", (SRC, *arguments(self.spec.before)), self.maximum(most))
        self.keep(most, self.limits)
        asm.role("exponentials")
        totals = v.registers.take("sum", vectors.count)
        v.zeros(totals)
        self.down(vectors, "exponentials", (SRC, DST, *arguments(self.spec.before)), self.exponentials(totals))
        if self.spec.log:
            totals = self.apply(log_program(), [totals])
        else:
            for total in totals:
                self.inverse(total)
        self.keep(totals, self.lasts)
        asm.role("results")
        read = () if self.spec.keeps else (SRC, *arguments(self.spec.before))
        self.down(vectors, "results", (*read, DST, *arguments(self.spec.after)), self.results)

    def down(self, vectors: Vectors, name: str, used: Sequence[int], body: "Body") -> None:
        """`body` in every row, with pointers to the arguments that it uses."""
        spec, asm = self.spec, self.v.asm
        steps = {SRC: spec.src_row_bytes, DST: spec.dst_row_bytes, **spec.steps}
        pointers = RowPointers(asm, {argument: steps[argument] for argument in used}, spec.rows, OTHER_REGISTERS)
        with pointers.each_row(self.left, spec.rows, name):
            body(vectors, pointers)
        pointers.release()

    def maximum(self, most: Sequence[Register]) -> "Body":
        def in_row(vectors: Vectors, pointers: RowPointers) -> None:
            program = of_lanes(compose(self.spec.before), (self.src_kind,), ("f32",))
            values = self.apply(program, self.inputs(vectors, pointers))
            for x, value in zip(most, values, strict=True):
                self.v.asm.VMAXPS(x, x, value)
            self.v.registers.free(*values)

        return in_row

    def exponentials(self, totals: Sequence[Register]) -> "Body":
        def in_row(vectors: Vectors, pointers: RowPointers) -> None:
            inputs = [*self.inputs(vectors, pointers), self.kept(self.limits, vectors)]
            powers = self.apply(of_lanes(exponential(self.spec.before), (self.src_kind,), ("f32",)), inputs)
            for j, (total, x) in enumerate(zip(totals, powers, strict=True)):
                if self.spec.keeps:
                    vectors.parts[j].store(vectors.at(pointers.register(DST), j), x)
                self.v.add(total, total, x)
            self.v.registers.free(*powers)

        return in_row

    def results(self, vectors: Vectors, pointers: RowPointers) -> None:
        spec, lasts = self.spec, self.kept(self.lasts, vectors)
        after = [self.operand(operand, vectors, pointers) for operand in operands_of(spec.after)]
        if spec.keeps:
            dst = vectors.sources(lambda: pointers.register(DST))
            values = self.apply(quotient(spec.after), [dst, lasts, *after])
        else:
            x, *before = self.inputs(vectors, pointers)
            inputs = [x, self.kept(self.limits, vectors), lasts, *before, *after]
            program = (logarithm if spec.log else probability)(spec.before, spec.after)
            values = self.apply(of_lanes(program, (self.src_kind,), (self.stored.stored_as,)), inputs)
        self.store(self.stored, values, vectors.places(pointers.register(DST), self.dst_kind))

    def inputs(self, vectors: Vectors, pointers: RowPointers) -> list[list[Source]]:
        """src, and the operands of what comes before."""
        operands = [self.operand(operand, vectors, pointers) for operand in self.before]
        return [vectors.sources(lambda: pointers.register(SRC), kind=self.src_kind), *operands]

    def operand(self, operand: Operand | None, vectors: Vectors, pointers: RowPointers) -> list[Source]:
        assert operand is not None, "sums of what dst held are refused"
        argument = operand.argument
        return vectors.sources(lambda: pointers.register(argument), operand.element)

    def keep(self, values: Sequence[Register], places: Sequence[Pointer]) -> None:
        """On the stack, and give the registers back."""
        for value, place in zip(values, places, strict=False):
            self.v.store(place, value)
        self.v.registers.free(*values)

    def kept(self, places: Sequence[Pointer], vectors: Vectors) -> list[Source]:
        return [Source(lambda place=place: place, self.v) for place in places[: vectors.count]]  # type: ignore[misc]


Body = Callable[[Vectors, RowPointers], None]


def arguments(chain: tuple[PostOp, ...]) -> tuple[int, ...]:
    """What a chain reads beside its vectors."""
    return tuple(operand.argument for operand in tensors_read(chain))
