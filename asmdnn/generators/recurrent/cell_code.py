"""The code of a cell: from accumulators and operands of any type to results, of some vectors of units in turn."""

from collections.abc import Callable, Sequence
from typing import Any

from asmdnn.generators.dot.epilogue_shape import EpilogueTypes
from asmdnn.generators.functions.code import ProgramCode, alike, side_by_side
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Slots, Source, Values
from asmdnn.generators.recurrent.cells import CellForm, Place
from asmdnn.generators.recurrent.tile_shape import CellOperand
from asmdnn.isa.assembler import Pointer
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.types import DataType

Where = tuple[int, int]  # a row, and a vector of units
Locate = Callable[[Place, Where], tuple[Pointer, CellOperand]]


class CellCode:
    """isa: the level whose stores round.  sums: the type of accumulators.  locate: where a part of an operand lies for
    a vector of a row.  parts: of the vectors of units."""

    def __init__(
        self, v: Vector, isa: str, form: CellForm, sums: DataType, locate: Locate, parts: Sequence[Lanes]
    ) -> None:
        self.v, self.isa, self.form, self.sums, self.locate, self.parts = v, isa, form, sums, locate, parts
        self.slots = Slots(v)

    def emit(self, some: Sequence[Where], gates: Sequence[Sequence[Any]]) -> None:
        """The cells of some vectors; gives their accumulators, `gates` by gate and vector, back."""
        v, form = self.v, self.form
        program = self.program()
        steps, number = side_by_side(program, len(some), alike(program, ()))
        results = [[number[result, j] for j in range(len(some))] for result in program.results]
        inputs = [*gates, *([self.source(place, where) for where in some] for place in form.inputs)]
        own = [x for of_gate in gates for x in of_gate]
        spare = v.registers.take("cell", v.registers.available)
        together = [result for of_vectors in results for result in of_vectors]
        flat = [x for of_input in inputs for x in of_input]
        values = Values(steps, together, flat, [*spare, *own], self.slots, keeps=len(some) > 1)
        ProgramCode(steps, v, values).emit()
        for place, of_vectors in zip(form.results, results, strict=True):
            for where, result in zip(some, of_vectors, strict=True):
                self.store(place, where, values.in_register(result))
                together.remove(result)
                values.release((result,), kept=together)
        v.registers.free(*spare, *own)

    def program(self) -> Program:
        """The cell's, of lanes as memory has them; results that a store rounds stay f32."""
        form = self.form
        kinds = [self.sums.name] * form.gates + [self.operand(place).dtype.name for place in form.inputs]
        results = [self.result_types(self.operand(place)) for place in form.results]
        return of_lanes(form.program, tuple(kinds), tuple("f32" if x.rounds else x.dst.name for x in results))

    def operand(self, place: Place) -> CellOperand:
        return self.locate(place, (0, 0))[1]

    def result_types(self, operand: CellOperand) -> EpilogueTypes:
        return EpilogueTypes(operand.dtype, isa=self.isa)

    def store(self, place: Place, where: Where, x: Any) -> None:
        """A result of one vector; of another type than f32 it is overwritten."""
        at, operand = self.locate(place, where)
        types, part = self.result_types(operand), self.part(operand, where)
        if types.rounds:
            types.stored.store(self.v, at, x, part, ())
        else:
            types.stored.lanes(self.v, part).store(at, x)

    def source(self, place: Place, where: Where) -> Source:
        at, operand = self.locate(place, where)
        return Source(lambda: at, element_of(operand.dtype).lanes(self.v, self.part(operand, where)))

    def part(self, operand: CellOperand, where: Where) -> Lanes:
        return self.v if operand.whole else self.parts[where[1]]
