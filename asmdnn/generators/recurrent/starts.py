"""What the gates of a step's tile start from: loaded before the products, or asked for there and added after them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from asmdnn.generators.recurrent.cell_code import Where
from asmdnn.generators.recurrent.cells import CellForm, Place
from asmdnn.generators.recurrent.tile_shape import CellOperand
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.types import DataType

Locate = Callable[[Place, Where], tuple[Pointer, CellOperand]]


class GateStarts:
    """Of rows by vectors of so many units; accumulators are acc[r][u * gates + g], of the type `sums`."""

    def __init__(self, v: Vector, form: CellForm, locate: Locate, shape: tuple[int, int, int], sums: DataType) -> None:
        self.v, self.form, self.locate, self.sums = v, form, locate, sums
        self.rows, self.vectors, self.units = shape

    def load(self, acc: Sequence[Sequence[Register]]) -> None:
        """Into accumulators; zeros where a gate starts from nothing."""
        with self.v.parts(self.vectors, self.units) as parts:
            for x, place, where in self.each(acc):
                if place is None:
                    self.v.zero(x)
                else:
                    self.load_one(x, place, where, parts)

    def ask_ahead(self) -> None:
        """Prefetch what gates start from, and what the cell reads: from beyond L2 it comes while products run."""
        places = dict.fromkeys(place for place in (*self.form.starts, *self.form.inputs) if place is not None)
        for place, r, u in product(places, range(self.rows), range(self.vectors)):
            at, _ = self.locate(place, (r, u))
            self.v.asm.PREFETCHT0(mem(at.form.base, at.displacement))

    def add(self, acc: Sequence[Sequence[Register]]) -> None:
        """To accumulators."""
        start, addition = self.v.registers.take("start"), element_of(self.sums).addition(self.v)
        with self.v.parts(self.vectors, self.units) as parts:
            for x, place, where in self.each(acc):
                if place is not None:
                    self.load_one(start, place, where, parts)
                    addition(x, x, start)
        self.v.registers.free(start)

    def each(self, acc: Sequence[Sequence[Register]]) -> Iterator[tuple[Register, Place | None, Where]]:
        gates = len(self.form.starts)
        for r, row in enumerate(acc):
            for c, x in enumerate(row):
                u, g = divmod(c, gates)
                yield x, self.form.starts[g], (r, u)

    def load_one(self, x: Register, place: Place, where: Where, parts: Sequence[Lanes]) -> None:
        at, operand = self.locate(place, where)
        (self.v if operand.whole else parts[where[1]]).load(x, at)
