"""Gradients that need sums over their row: of softmax, layer and RMS normalization.

    rows:  dst[r, e] = result(x, operands, s),   s = sums over all e of sums(x, operands)      with x = src[r, e]
    lanes: dst[r, e] = result(x, operands, s),   s = sums over all r of sums(x, operands)

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | kind[rows, elements] | rows src_row_bytes apart, elements dense |
| dst     | kind[rows, elements] | rows dst_row_bytes apart, elements dense; may be src or an operand laid out alike |
| 2, 3 .. | kind                 | operands: rows row_bytes apart, elements dense, or an element a row |

kind is f32, or what `types` says of each argument; elements become f32 as they are loaded, and are rounded once.

A row, or some vectors down the rows, is walked twice; the second walk finds it in a cache.  Sums are in an order that
depends on the spec alone.
"""

from collections.abc import Callable, Sequence

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import DST, OTHER_REGISTERS, SRC, Computation, Rows, steps_of
from asmdnn.generators.functions.rows import TypedRows, Vectors, Walk, rows_touched, words_of_types
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.element import Element
from asmdnn.isa.elements import storing_element
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

AT_ONCE = 2  # vectors, of which programs of several inputs hold the values


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGradientSpec(TypedRows):
    """Everything that the bytes of such a kernel depend on.

    along: "rows" or "lanes", see above.  what: a word for its name.  sums, result: of src, the operands, and for the
    result the sums.  types: of all arguments, if not all are f32.
    """

    isa: str
    what: str
    along: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    operands: tuple[Operand, ...]
    sums: Program
    result: Program
    types: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        types = words_of_types(self.types or ("f32",))
        return f"{self.what}_{types}_{self.along}{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst", *(f"operand{operand.argument}" for operand in self.operands))

    @property
    def stored(self) -> Element:
        """What dst is of."""
        return storing_element(self.type_of(DST), self.isa)

    @property
    def unit(self) -> int:
        """Bytes of the smallest elements."""
        return min(self.size_of(argument) for argument in range(2 + len(self.operands)))

    def of_types(self, program: Program, result: str) -> Program:
        """A program of lanes as they are loaded, whose results are of that type."""
        read = (SRC, *(operand.argument for operand in self.operands))
        return of_lanes(program, tuple(map(self.type_of, read)), (result,) * len(program.results))

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements, self.size_of(SRC))
        dst = rows_touched(DST, self.rows, self.dst_row_bytes, self.elements, self.size_of(DST))
        return Footprint(tuple(dict.fromkeys((*src, *self.operands_read()))), dst)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        if self.along == "rows":
            AlongRows(self, v).all_rows()
        else:
            DownLanes(self, v).emit()
        asm.ret()


Inputs = Sequence[Sequence[Source | Register]]


def several(code: Computation, program: Program, inputs: Inputs) -> list[list[Register]]:
    """Each of a program's results for every vector, in registers that are taken."""
    v = code.v
    registers = v.registers.take("values", v.registers.available)
    results = apply_to_each(program, v, inputs, registers, code.slots)
    held = [register for of_result in results for register in of_result]
    v.registers.free(*(register for register in registers if register not in held))
    return results


class AlongRows(Rows):
    """A row at a time."""

    def __init__(self, spec: RowGradientSpec, v: Vector) -> None:
        super().__init__(v, spec.rows, 1, (spec.src_row_bytes, spec.dst_row_bytes), steps_of(spec.operands))
        self.spec, self.walk = spec, Walk(v, spec.elements, spec.unit)
        self.places = [v.asm.stack(4) for _ in spec.sums.results]

    def some(self, rows: int) -> None:
        v, asm = self.v, self.v.asm
        asm.role("sums")
        totals = v.registers.take("sums", len(self.places), min(AT_ONCE, len(self.walk.parts)))
        v.zeros(totals)
        self.walk.each(AT_ONCE, "sums", lambda vectors: self.add(vectors, totals))
        for of_sum, place in zip(totals, self.places, strict=True):
            self.combined(of_sum[0], of_sum, v.add)
            asm.VMOVSS(place, of_sum[0].xmm)
        v.registers.free(totals)
        asm.role("results")
        self.walk.each(AT_ONCE, "results", self.results)

    def inputs(self, vectors: Vectors) -> list[list[Source]]:
        kinds = self.spec.type_of
        operands = [self.operand(operand, vectors, kind=kinds(operand.argument)) for operand in self.spec.operands]
        return [vectors.sources(lambda: self.src, kind=kinds(SRC)), *operands]

    def add(self, vectors: Vectors, totals: Sequence[Sequence[Register]]) -> None:
        found = several(self, self.spec.of_types(self.spec.sums, "f32"), self.inputs(vectors))
        for values, of_sum in zip(found, totals, strict=True):
            for part, value, total in zip(vectors.parts, values, of_sum, strict=False):
                if part is not self.v:
                    part.clear_rest(value)
                self.v.add(total, total, value)
        self.v.registers.free(*dict.fromkeys(value for values in found for value in values))

    def results(self, vectors: Vectors) -> None:
        sums, element = [self.scalar(place, vectors) for place in self.places], self.spec.stored
        values = self.apply(self.spec.of_types(self.spec.result, element.stored_as), [*self.inputs(vectors), *sums])
        self.store(element, values, vectors.places(self.dst, element.name))


Body = Callable[[Vectors, RowPointers], None]


class DownLanes(Computation):
    """Some vectors at a time, twice down all rows."""

    def __init__(self, spec: RowGradientSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.walk, self.left = spec, Walk(v, spec.elements, spec.unit), v.asm.gp.take("rows left")
        self.places = [[v.asm.stack(v.bytes) for _ in range(AT_ONCE)] for _ in spec.sums.results]

    def emit(self) -> None:
        self.walk.each(AT_ONCE, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        v, asm = self.v, self.v.asm
        asm.role("sums")
        totals = v.registers.take("sums", len(self.places), vectors.count)
        v.zeros(totals)

        def add(vectors: Vectors, pointers: RowPointers) -> None:
            found = several(self, self.spec.of_types(self.spec.sums, "f32"), self.inputs(vectors, pointers))
            for values, of_sum in zip(found, totals, strict=True):
                for value, total in zip(values, of_sum, strict=True):
                    v.add(total, total, value)
            v.registers.free(*dict.fromkeys(value for values in found for value in values))

        self.down(vectors, "sums", (SRC,), add)
        for of_sum, places in zip(totals, self.places, strict=True):
            for total, place in zip(of_sum, places, strict=False):
                v.store(place, total)
        v.registers.free(totals)
        asm.role("results")
        self.down(vectors, "results", (SRC, DST), self.results)

    def down(self, vectors: Vectors, name: str, used: Sequence[int], body: Body) -> None:
        """`body` in every row, with pointers to the operands, and to what else it uses."""
        spec, asm = self.spec, self.v.asm
        own = {SRC: spec.src_row_bytes, DST: spec.dst_row_bytes}
        steps = {argument: own[argument] for argument in used} | steps_of(spec.operands)
        pointers = RowPointers(asm, steps, spec.rows, OTHER_REGISTERS)
        with pointers.each_row(self.left, spec.rows, name):
            body(vectors, pointers)
        pointers.release()

    def inputs(self, vectors: Vectors, pointers: RowPointers) -> list[list[Source]]:
        def of(operand: Operand) -> list[Source]:
            kind = self.spec.type_of(operand.argument)
            return vectors.sources(lambda: pointers.register(operand.argument), operand.element, kind=kind)

        src = vectors.sources(lambda: pointers.register(SRC), kind=self.spec.type_of(SRC))
        return [src, *map(of, self.spec.operands)]

    def results(self, vectors: Vectors, pointers: RowPointers) -> None:
        sums, element = [self.kept(places, vectors) for places in self.places], self.spec.stored
        program = self.spec.of_types(self.spec.result, element.stored_as)
        values = self.apply(program, [*self.inputs(vectors, pointers), *sums])
        self.store(element, values, vectors.places(pointers.register(DST), element.name))

    def kept(self, places: Sequence[Pointer], vectors: Vectors) -> list[Source]:
        return [Source(lambda place=place: place, self.v) for place in places[: vectors.count]]  # type: ignore[misc]
