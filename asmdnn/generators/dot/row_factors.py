"""How vectors of rows are multiplied element by element, by their type: from memory, widened, or two rows in pairs."""

from collections.abc import Sequence
from typing import ClassVar

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dot import Types
from asmdnn.isa.elements import element_of
from asmdnn.isa.rows_in_lanes import RowsInLanes, rows_in_lanes
from asmdnn.isa.vector import Vector
from asmdnn.types import DataType, f32


class RowFactors:
    """f32.  Emits with the registers of `v`, of which it takes `registers`.

    reads_memory: whether a factor may be memory.
    """

    registers: ClassVar[int] = 0
    reads_memory: ClassVar[bool] = True

    def __init__(self, v: Vector) -> None:
        self.v = v

    def load(self, x: Register, rows: Sequence[Pointer]) -> None:
        """x = a vector of a row, or of the rows that a lane takes."""
        self.v.load(x, rows[0])

    def multiply(self, acc: Register, a: Register, b: Register | Pointer) -> None:
        """acc += a * b, summed over the rows of a lane."""
        self.v.fma(acc, a, b)


class WidenedFactors(RowFactors):
    """Rows that become f32 as they are loaded."""

    reads_memory: ClassVar[bool] = False

    def __init__(self, v: Vector, dtype: DataType) -> None:
        super().__init__(v)
        self.element = element_of(dtype)

    def load(self, x: Register, rows: Sequence[Pointer]) -> None:
        self.element.load(self.v, x, rows[0], self.v)


class PairedFactors(RowFactors):
    """Two rows at once; one alone is a pair with zeros."""

    registers: ClassVar[int] = 2  # the second row, and the order of both
    reads_memory: ClassVar[bool] = False

    def __init__(self, v: Vector, terms: RowsInLanes) -> None:
        super().__init__(v)
        self.terms, self.second = terms, v.registers.take("second row")

    def load(self, x: Register, rows: Sequence[Pointer]) -> None:
        first, second = (*rows, None)[:2]
        self.terms.source(x, (first, second), self.v, (self.second,))

    def multiply(self, acc: Register, a: Register, b: Register | Pointer) -> None:
        assert isinstance(b, Register)
        self.terms.multiply(acc, a, b, ())


def row_terms(dtype: DataType, isa: str) -> type[RowsInLanes] | None:
    """How a level multiplies rows of a type in pairs; None if it does not."""
    return rows_in_lanes(Types(dtype, dtype, f32), isa)


def factor_registers(dtype: DataType, isa: str) -> int:
    """That `row_factors` takes."""
    return PairedFactors.registers if row_terms(dtype, isa) else 0


def row_factors(dtype: DataType, isa: str, v: Vector) -> RowFactors:
    """What code of a level does with rows of a type."""
    if dtype == f32:
        return RowFactors(v)
    terms = row_terms(dtype, isa)
    return PairedFactors(v, terms(Types(dtype, dtype, f32), v)) if terms else WidenedFactors(v, dtype)
