"""Sums of what a program makes of several tensors, some at a time: what gradients of norms and of slopes are made of.

    rows:  result[i][r] = sum over all e of program(src[r, e], operands)[i]
    lanes: result[i][e] = sum over all r of program(src[r, e], operands)[i]

| argument | dtype[shape] | what it is |
|---|---|---|
| src         | kind[rows, elements]  | rows src_row_bytes apart, elements dense |
| 1, 2 ..     | kind                  | operands: rows row_bytes apart, elements dense, or an element a row |
| then        | kind[rows, elements]  | if there is a place: the program's first result, which is not summed |
| after these | f32[rows or elements] | sums: of rows result_row_bytes apart; those of lanes dense |

kind is f32, or what `types` says of each argument.  Each tensor is read once, whatever the number of results.  Their
order depends on the spec alone.
"""

from collections.abc import Sequence

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import OTHER_REGISTERS, SRC, Computation, steps_of
from asmdnn.generators.functions.rows import TypedRows, Vectors, Walk, rows_touched, words_of_types
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.vector import Broadcast, Vector
from asmdnn.isa.vectors import vector_class, vector_of
from asmdnn.records import dataclass

LEAST_AT_ONCE, MOST_AT_ONCE, MANY_REGISTERS = 2, 4, 24  # vectors, of which programs of several inputs hold the values
TOTALS_BYTES = 512  # of a row, at most, in sums of lanes: columns beside one another share what is prefetched


def most_totals(isa: str) -> int:
    """Sums of lanes that registers hold, beside what is added to them."""
    return vector_class(isa).count // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSumsSpec(TypedRows):
    """Everything that the bytes of such a kernel depend on.

    along: "rows" or "lanes", see above.  what: a word for its name.  program: of src and the operands, a result for
    what is stored, if there is a `place`, and one for each sum.  types: of src, operands and place, if not all are f32.
    row_by_row: of lanes, the sums are on the stack, so that rows from beyond the caches come one after the other.
    """

    isa: str
    what: str
    along: str
    rows: int
    elements: int
    src_row_bytes: int
    result_row_bytes: int
    operands: tuple[Operand, ...]
    program: Program
    place: Operand | None = None
    types: tuple[str, ...] = ()
    row_by_row: bool = False

    @property
    def name(self) -> str:
        types = words_of_types(self.types or ("f32",))
        return f"{self.what}_sums_{types}_{self.along}{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"

    @property
    def moving(self) -> tuple[Operand, ...]:
        """What lies in rows beside src: operands, and the place."""
        return (*self.operands, self.place) if self.place else self.operands

    @property
    def unit(self) -> int:
        """Bytes of the smallest elements."""
        return min(self.size_of(argument) for argument in range(1 + len(self.moving)))

    @property
    def of_types(self) -> Program:
        """The program of lanes as they are loaded and stored."""
        read = (SRC, *(operand.argument for operand in self.operands))
        stored = (self.type_of(self.place.argument),) if self.place else ()
        results = (*stored, *["f32"] * len(self.sums))
        return of_lanes(self.program, tuple(map(self.type_of, read)), results)

    @property
    def sums(self) -> range:
        """The numbers of their arguments."""
        first = 1 + len(self.moving)
        return range(first, first + len(self.program.results) - bool(self.place))

    @property
    def frame(self) -> tuple[str, ...]:
        operands = (f"operand{operand.argument}" for operand in self.operands)
        return ("src", *operands, *["dst"] * bool(self.place), *(f"sum{i}" for i in range(len(self.sums))))

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements, self.size_of(SRC))
        size = (self.rows, self.result_row_bytes, 1) if self.along == "rows" else (1, 0, self.elements)
        written = [found for result in self.sums for found in rows_touched(result, *size)]
        if self.place:
            argument, step = self.place.argument, self.place.row_bytes
            written += rows_touched(argument, self.rows, step, self.elements, self.size_of(argument))
        return Footprint(tuple(dict.fromkeys((*src, *self.operands_read()))), tuple(written))

    def generate(self, asm: Assembler) -> None:
        code = SumsCode(self, vector_of(self.isa, asm))
        if self.along == "rows":
            code.rows()
        elif self.row_by_row:
            code.row_by_row()
        else:
            code.all_lanes()
        asm.ret()


Totals = Sequence[Sequence[Register]]


class SumsCode(Computation):
    """Rows one after the other; or some vectors at a time down all rows, of few vectors several rows at once."""

    def __init__(self, spec: RowSumsSpec, v: Vector) -> None:
        super().__init__(v)
        self.spec, self.walk, self.left = spec, Walk(v, spec.elements, spec.unit), v.asm.gp.take("rows left")
        self.moving = {SRC: spec.src_row_bytes, **steps_of(spec.moving)}
        self.at_once = MOST_AT_ONCE if v.registers.available >= MANY_REGISTERS else LEAST_AT_ONCE

    def rows(self) -> None:
        spec, asm = self.spec, self.v.asm
        steps = self.moving | dict.fromkeys(spec.sums, spec.result_row_bytes)
        pointers = RowPointers(asm, steps, spec.rows, OTHER_REGISTERS)
        with pointers.each_row(self.left, spec.rows, "rows"):
            totals = self.zeros(min(self.at_once, len(self.walk.parts)))
            self.walk.each(self.at_once, "vectors", lambda vectors: self.add(vectors, pointers, totals))
            for result, of_sum in zip(spec.sums, totals, strict=True):
                self.combined(of_sum[0], of_sum, self.v.add)
                asm.VMOVSS(mem(pointers.register(result), size=4), of_sum[0].xmm)
            self.v.registers.free(totals)

    def all_lanes(self) -> None:
        totals = min(most_totals(self.spec.isa) // len(self.spec.sums), TOTALS_BYTES // self.v.bytes)
        self.walk.each(max(self.at_once, totals), "lanes", self.lanes)

    def row_by_row(self) -> None:
        """With the sums on the stack, from where they are copied at the end; all of a row is written out."""
        spec, asm, v = self.spec, self.v.asm, self.v
        vectors = Vectors(v, self.walk.parts, 0, None, self.walk.unit)
        kept = [[asm.stack(v.bytes) for _ in vectors.parts] for _ in spec.sums]
        with v.registers.taken("zero or sum", 1) as (x,):
            v.zero(x)
            for place in (place for of_sum in kept for place in of_sum):
                v.store(place, x)
            pointers = RowPointers(asm, self.moving, spec.rows, OTHER_REGISTERS)
        with pointers.each_row(self.left, spec.rows, "rows"):
            for first in range(0, vectors.count, self.at_once):
                self.add_in_memory(vectors.some(first, self.at_once), pointers, [x[first:] for x in kept])
        pointers.release()
        pointers = RowPointers(asm, dict.fromkeys(spec.sums, 0), 1, OTHER_REGISTERS)
        with v.registers.taken("zero or sum", 1) as (x,):
            for result, of_sum in zip(spec.sums, kept, strict=True):
                for j, place in enumerate(of_sum):
                    v.load(x, place)
                    vectors.store_last(pointers.register(result), j, x)

    def add_in_memory(self, vectors: Vectors, pointers: RowPointers, kept: Sequence[Sequence[Pointer]]) -> None:
        totals = self.v.registers.take("sums", len(kept), vectors.count)
        pairs = [x for of_sum in zip(totals, kept, strict=True) for x in zip(*of_sum, strict=False)]
        for total, place in pairs:
            self.v.load(total, place)
        self.add_some(vectors, pointers, totals, 1)
        for total, place in pairs:
            self.v.store(place, total)
        self.v.registers.free(totals)

    def lanes(self, vectors: Vectors) -> None:
        spec, asm, v = self.spec, self.v.asm, self.v
        together = min(max(1, self.at_once // vectors.count), spec.rows)
        totals = self.zeros(together * vectors.count)
        groups, rest = divmod(spec.rows, together)
        moved = {argument: together * step for argument, step in self.moving.items()}
        pointers = RowPointers(asm, moved, groups + (rest > 0), OTHER_REGISTERS)
        with pointers.each_row(self.left, groups, "rows"):
            self.add(vectors, pointers, totals, together)
        if rest:
            pointers.forget()
            self.add(vectors, pointers, totals, rest)
        pointers.release()
        pointers = RowPointers(asm, dict.fromkeys(spec.sums, 0), 1, OTHER_REGISTERS)
        for result, of_sum in zip(spec.sums, totals, strict=True):
            for j, total in enumerate(of_sum[: vectors.count]):
                for more in of_sum[j + vectors.count :: vectors.count]:
                    v.add(total, total, more)
                vectors.store_last(pointers.register(result), j, total)
        pointers.release()
        self.v.registers.free(totals)

    def zeros(self, count: int) -> Totals:
        totals = self.v.registers.take("sums", len(self.spec.sums), count)
        self.v.zeros(totals)
        return list(totals)

    def add(self, vectors: Vectors, pointers: RowPointers, totals: Totals, rows: int = 1) -> None:
        """Store and add what the program makes of these vectors of some rows, as many at a time as registers allow."""
        for first in range(0, vectors.count, self.at_once):
            self.add_some(vectors.some(first, self.at_once), pointers, [of_sum[first:] for of_sum in totals], rows)

    def add_some(self, vectors: Vectors, pointers: RowPointers, totals: Totals, rows: int) -> None:
        """Lanes beyond a row add nothing."""
        v, spec = self.v, self.spec
        read = [(SRC, False), *((operand.argument, operand.element) for operand in spec.operands)]
        inputs = [self.of_rows(argument, element, vectors, pointers, rows) for argument, element in read]
        registers = v.registers.take("values", v.registers.available)
        found = apply_to_each(spec.of_types, v, inputs, registers, self.slots)
        for values, of_sum in zip(found[bool(spec.place) :], totals, strict=True):
            for part, value, total in zip([*vectors.parts] * rows, values, of_sum, strict=False):
                if part is not v and spec.along == "rows":
                    part.clear_rest(value)
                v.add(total, total, value)
        if spec.place:
            for i, value in enumerate(found[0]):
                r, j = divmod(i, vectors.count)
                place, kind = pointers.register(spec.place.argument), spec.type_of(spec.place.argument)
                vectors.store_last(place, j, value, r * spec.place.row_bytes, kind)
        v.registers.free(*registers)

    def of_rows(self, argument: int, element: bool, vectors: Vectors, pointers: RowPointers, rows: int) -> list[Source]:
        """An argument's vectors of some rows; what does not move is the same in all of them."""
        step, kind = self.moving[argument], self.spec.type_of(argument)

        def pointer() -> Register:
            return pointers.register(argument)

        if not step:
            return vectors.sources(pointer, element, kind=kind) * rows
        found = [source for r in range(rows) for source in vectors.sources(pointer, element, r * step, kind)]
        return [Source(x.locate, x.lanes or Broadcast(self.v)) for x in found] if rows > 1 else found
