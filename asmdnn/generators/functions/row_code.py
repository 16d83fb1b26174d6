"""Code that works along rows: programs on registers, reductions across lanes, pointers that move from row to row."""

from collections.abc import Mapping, Sequence
from struct import pack

from asmdnn.generators.functions.code import apply_to_each
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.rows import Vectors
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.stores import ROUNDING_REGISTERS, Places, store_results
from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.element import Element
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Broadcast, Vector
from asmdnn.types import F32_BYTES

SRC, DST = range(2)
OTHER_REGISTERS = 3  # general-purpose ones: rows left, the place in a row, a tail's bits
AHEAD_BYTES = 2048


class Computation:
    """Programs on registers, and what is the same in every lane."""

    def __init__(self, v: Vector) -> None:
        self.v, self.slots = v, Slots(v)

    def apply(self, program: Program, inputs: Sequence[Sequence[Source | Register]]) -> list[Register]:
        """The program's result for each vector, in registers that are taken; inputs that are registers are given up."""
        v = self.v
        held = [x for of_input in inputs for x in of_input if isinstance(x, Register)]
        registers = [*v.registers.take("values", v.registers.available), *held]
        (results,) = apply_to_each(program, v, inputs, registers, self.slots)
        v.registers.free(*(register for register in registers if register not in results))
        return list(results)

    def constant(self, dst: Register, number: float) -> None:
        self.v.broadcast(dst, self.v.asm.const(pack("<f", number), 4, size=4))

    def combined(self, dst: Register, values: Sequence[Register], combine: Combine) -> None:
        """dst = every lane of all values combined, the same in every lane."""
        spare = self.v.registers.take("spare")
        if len(values) == 1 and dst is not values[0]:
            self.v.move(dst, values[0])
        elif len(values) > 1:
            combine(dst, values[0], values[1])
        for value in values[2:]:
            combine(dst, dst, value)
        self.v.across(dst, spare, combine)
        self.v.registers.free(spare)

    def inverse(self, x: Register) -> None:
        one = self.v.registers.take("1")
        self.constant(one, 1.0)
        self.v.asm.VDIVPS(x, one, x)
        self.v.registers.free(one)

    def times(self, x: Register, factor: float) -> None:
        """x *= factor."""
        number = self.v.registers.take("factor")
        self.constant(number, factor)
        self.v.mul(x, x, number)
        self.v.registers.free(number)

    def scalar(self, place: Pointer, vectors: Vectors) -> list[Source]:
        """A number on the stack, for each of some vectors."""
        return [Source(lambda: place, None)] * vectors.count

    def store(self, element: Element, values: Sequence[Register], places: Places) -> None:
        """Vectors of what the element is stored as; they are given up."""
        with self.v.registers.taken("rounding", ROUNDING_REGISTERS * element.narrows_pairs) as spare:
            store_results(self.v, element, values, places, spare)
        self.v.registers.free(*values)


class Rows(Computation):
    """`together` rows at a time: src and dst have registers, other arguments move by `steps` bytes from row to row."""

    def __init__(self, v: Vector, rows: int, together: int, src_dst: tuple[int, int], steps: Mapping[int, int]) -> None:
        super().__init__(v)
        asm = v.asm
        self.rows, self.together = rows, together
        self.src_row_bytes, self.dst_row_bytes = src_dst
        self.src, self.dst = (asm.gp.take(name) for name in ("src", "dst"))
        for argument, pointer in ((SRC, self.src), (DST, self.dst)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        moved = {argument: step * together for argument, step in steps.items()}
        self.operands = RowPointers(asm, moved, rows, OTHER_REGISTERS)
        self.left = asm.gp.take("rows left")

    def all_rows(self) -> None:
        asm, groups = self.v.asm, self.rows // self.together
        if groups:
            asm.MOV(self.left, groups)
            with asm.loop(self.left, "rows"):
                self.operands.forget()
                self.some(self.together)
                asm.ADD(self.src, self.together * self.src_row_bytes)
                asm.ADD(self.dst, self.together * self.dst_row_bytes)
                self.operands.next_row()
        if self.rows % self.together:
            self.operands.forget()
            self.some(self.rows % self.together)

    def some(self, rows: int) -> None:
        """So many rows from where the pointers are."""
        raise NotImplementedError

    def operand(self, operand: Operand | None, vectors: Vectors, row: int = 0, kind: str = "f32") -> list[Source]:
        assert operand is not None, "sums of what dst held are refused"
        argument, away = operand.argument, row * operand.row_bytes
        return vectors.sources(lambda: self.operands.register(argument), operand.element, away, kind)

    def of_rows(self, operand: Operand | None, vectors: Vectors, rows: int) -> list[Source]:
        """An operand's vectors of all rows; an element of a row is one of each vector, since rows differ in it."""
        found = [source for r in range(rows) for source in self.operand(operand, vectors, r)]
        return [Source(source.locate, source.lanes or Broadcast(self.v)) for source in found] if rows > 1 else found

    def src_of_rows(self, vectors: Vectors, rows: int, kind: str = "f32") -> list[Source]:
        steps = [r * self.src_row_bytes for r in range(rows)]
        return [x for step in steps for x in vectors.sources(lambda: self.src, further_bytes=step, kind=kind)]

    def prefetch(self, vectors: Vectors, ahead_bytes: int = AHEAD_BYTES, element_bytes: int = F32_BYTES) -> None:
        """What vectors of src further on will be, if they are those of a loop."""
        if vectors.index:
            scale = element_bytes // vectors.unit
            for line in range(0, vectors.count * self.v.lanes * element_bytes, LINE_BYTES):
                self.v.asm.PREFETCHT0(mem(self.src, ahead_bytes + line, index=vectors.index, scale=scale))


def steps_of(operands: Sequence[Operand | None]) -> dict[int, int]:
    """Bytes from row to row of each argument."""
    return {operand.argument: operand.row_bytes for operand in operands if operand}
