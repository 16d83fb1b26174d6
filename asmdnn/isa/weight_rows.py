"""Rows of plain weights, as a dot product takes them: a row holds one element of k of each column.

Where a group is one element, a row is what the dot multiplies.  Else the rows of a group are interleaved in registers,
with as many registers of columns as a group has elements: a register of bytes from each of 4 rows becomes 4 of groups.
Interleaving works within 16 bytes, so lanes are brought into an order first with which columns end up in their
own.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from struct import pack

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.dense import QUARTER_BYTES, dense_of
from asmdnn.isa.dot_base import GROUP_BYTES, Dot
from asmdnn.isa.vector import Lanes, Row

Vectors = Sequence[Row | Sequence[Pointer]]  # of weights, arranged


class WeightRows:
    """Emits loads.  spare: a register for the dot to overwrite, between them."""

    spare: Register

    def __init__(self, dot: Dot) -> None:
        self.dot, self.v = dot, dot.v

    @contextmanager
    def ready(self, held: int = 0) -> Iterator[None]:
        """Around loads.  held: how many vectors are there at a time, because each is used often; 0 if it is not."""
        yield

    def vectors(self, places: Sequence[Pointer], parts: Sequence[Lanes], columns: int) -> Iterator[tuple[int, Vectors]]:
        """(first, some vectors) of the rows of a group that begin at these places, all but the last group as many as
        it has elements.  Each is to be used before the next."""
        raise NotImplementedError


class SingleRows(WeightRows):
    """Of groups of one element."""

    @contextmanager
    def ready(self, held: int = 0) -> Iterator[None]:
        self.held, each = held, self.dot.row_registers
        registers = self.v.registers.take("weights row" if held else "weights", each * max(1, held))
        products = self.v.registers.take("product", self.dot.product_registers)
        self.rows = [registers[i : i + each] for i in range(0, len(registers), each)]
        self.spare = [*products, registers[0]][0]
        yield
        self.v.registers.free(*registers, *products)

    def vectors(self, places: Sequence[Pointer], parts: Sequence[Lanes], columns: int) -> Iterator[tuple[int, Vectors]]:
        (start,), dot = places, self.dot
        at = [start.shifted(j * dot.row_bytes).sized(dot.row_bytes) for j in range(len(parts))]
        if not self.held:
            for j, (part, place) in enumerate(zip(parts, at, strict=True)):
                yield j, [dot.read(self.rows[0], part, place)]
            return
        for row, part, place in zip(self.rows, parts, at, strict=False):
            dot.load(row, part, place)
        yield 0, self.rows[: len(parts)]


class JoinedRows(WeightRows):
    """Of groups of 2 or 4 elements; it keeps its registers.  free: two of them, between loads."""

    free: tuple[Register, Register]

    def __init__(self, dot: Dot) -> None:
        super().__init__(dot)
        v, group = dot.v, dot.types.group
        self.rows = v.registers.take("rows of weights", group)
        self.joined = v.registers.take("rows joined", group // 2)
        self.order = v.registers.take("order of columns")
        quarters, each = v.bytes // QUARTER_BYTES, QUARTER_BYTES // GROUP_BYTES // group
        places = product(range(quarters), range(group), range(each))
        order = [each * (quarters * j + quarter) + i for quarter, j, i in places]
        v.load(self.order, v.asm.const(pack(f"<{v.lanes}I", *order), v.bytes, size=v.bytes))
        self.dense = dense_of(v, self.joined[0])

    def vectors(self, places: Sequence[Pointer], parts: Sequence[Lanes], columns: int) -> Iterator[tuple[int, Vectors]]:
        assert self.vectors_of_register == 1, f"joined rows of {self.dot.types} are not widened"
        for first, found in self.unarranged(places, len(parts), columns):
            even, self.spare = self.free
            if self.dot.row_registers == 1:
                yield first, [(x,) for x in found]
                continue
            for j, x in enumerate(found):
                self.dot.arrange((even, x))
                yield first + j, [(even, x)]

    def unarranged(
        self, places: Sequence[Pointer], vectors: int, columns: int
    ) -> Iterator[tuple[int, Sequence[Register]]]:
        """The same in registers as groups lie in panels: of small ones a register has several vectors."""
        lanes, size, each = self.v.lanes, self.dot.types.weights.size_bytes, self.vectors_of_register
        at_once = self.dot.types.group * each
        for first in range(0, vectors, at_once):
            count = min(at_once * lanes, columns - first * lanes)
            self.load([x.shifted(first * lanes * size) for x in places], count * size)
            found, self.free = self.interleaved()
            yield first, found[: -(-(vectors - first) // each)]

    @property
    def vectors_of_register(self) -> int:
        return GROUP_BYTES // self.dot.types.weights_bytes

    def load(self, places: Sequence[Pointer], count: int) -> None:
        """`count` bytes of each row, in the order; zeros for rows that there are not."""
        for i, row in enumerate(self.rows):
            if i >= len(places):
                self.dense.zero(row)
            elif count == self.v.bytes:
                self.v.asm.VPERMD(row, self.order, places[i].sized(count))
            else:
                self.dense.load_run(row, places[i], count)
                self.v.asm.VPERMD(row, self.order, row)

    def interleaved(self) -> tuple[list[Register], tuple[Register, Register]]:
        """The vectors in the order of their columns, and two registers that are free then."""
        asm = self.v.asm
        if len(self.rows) == 2:
            (first, second), (joined,) = self.rows, self.joined
            of_bytes = self.dot.types.weights.size_bytes == 1
            (asm.VPUNPCKLBW if of_bytes else asm.VPUNPCKLWD)(joined, first, second)
            (asm.VPUNPCKHBW if of_bytes else asm.VPUNPCKHWD)(first, first, second)
            return [joined, first], (second, second)
        (first, second, third, fourth), (low, other) = self.rows, self.joined
        asm.VPUNPCKLBW(low, first, second)
        asm.VPUNPCKHBW(first, first, second)
        asm.VPUNPCKLBW(other, third, fourth)
        asm.VPUNPCKHBW(third, third, fourth)
        asm.VPUNPCKLWD(second, low, other)
        asm.VPUNPCKHWD(low, low, other)
        asm.VPUNPCKLWD(fourth, first, third)
        asm.VPUNPCKHWD(first, first, third)
        return [second, low, fourth, first], (other, third)


def weight_rows(dot: Dot) -> WeightRows:
    """For the groups of a dot."""
    return SingleRows(dot) if dot.types.group == 1 else JoinedRows(dot)
