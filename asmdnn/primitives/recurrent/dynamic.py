"""LSTMs of s8 weights whose rows are rounded to bytes as they come: scales and zero points are of the data.

x of a layer is rounded once, by the range of all steps; h by that of every step, in a phase in front of it that one
thread runs, as it needs all of h.  These phases also make what sums start from and stand for, see dynamic_rows.py.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.generators.recurrent.dynamic_rows import ARGUMENTS, DynamicRowsSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, View, records_of
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.recurrent.bytes import SUMMED, add_sums_of
from asmdnn.primitives.recurrent.rows import BufferRows
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import dataclass
from asmdnn.types import f32, s32, u8

ROUNDING_CYCLES = 24  # of a vector of a row: two passes and a division


def add_numbers(assembly: Assembly, tensors: Mapping[str, MemoryDesc], of_gates: MemoryDesc) -> None:
    """The sums and the scales of both weights in the format `of_gates`."""
    for name in SUMMED:
        sums = assembly.room(sums_of(name), of_gates.size_bytes)
        add_sums_of(assembly, name, tensors[name], sums, MemoryDesc(of_gates.dims, s32, of_gates.tag))
        scales = assembly.room(f"packed {scales_of(name)}", of_gates.size_bytes)
        add_reorder(assembly, Reordering(scales_of(name), tensors[scales_of(name)], scales, of_gates))


def sums_of(weights: str) -> str:
    return f"sums of {weights}"


def scales_of(weights: str) -> str:
    return f"{weights}_scales"


@dataclass(frozen=True, slots=True, eq=False)
class RoundedRows:
    """Rows as bytes, and what their products with `weights` start from and stand for, in scratch of this `name`.

    count: rows that are rounded together, of so many elements.  at: where the columns of the gates begin in packed sums
    and scales, in elements, and how many there are.
    """

    name: str
    weights: str
    isa: str
    count: int
    elements: int
    at: tuple[int, int]

    @property
    def rows(self) -> BufferRows:
        """The bytes, one step after another if those of several are rounded together."""
        return BufferRows(f"bytes of {self.name}", (0,), self.elements, u8)

    def starts(self, column: int = 0) -> BufferRows:
        """From a column on; the same for all rows."""
        return BufferRows(f"starts of {self.name}", (column * s32.size_bytes,), 0, s32)

    def factors(self, column: int = 0) -> BufferRows:
        return BufferRows(f"factors of {self.name}", (column * f32.size_bytes,), 0, f32)

    @property
    def scratch(self) -> dict[str, int]:
        """The sizes of the three, in bytes."""
        columns = self.at[1] * f32.size_bytes
        sizes = {self.starts().buffer: columns, self.factors().buffer: columns}
        return {self.rows.buffer: self.count * self.elements, **sizes}

    def phase(self, src: View, row_bytes: int, tuning: Tuning) -> Phase:
        """What rounds the rows at `src`, so many bytes apart."""
        first, columns = self.at
        dense = row_bytes == self.elements * f32.size_bytes
        rows, elements = (1, self.count * self.elements) if dense else (self.count, self.elements)
        spec = DynamicRowsSpec(
            isa=self.isa, rows=rows, elements=elements, src_row_bytes=0 if dense else row_bytes, columns=columns
        )
        numbers = [
            View(name, first * f32.size_bytes) for name in (sums_of(self.weights), f"packed {scales_of(self.weights)}")
        ]
        places = (src, self.rows.view(0), *numbers, self.starts().view(0), self.factors().view(0))
        vectors = -(-(self.count * self.elements + columns) // lanes_of(self.isa))
        cycles = np.array([tuning.phases.call_cycles + ROUNDING_CYCLES * vectors], np.int32)
        return Phase((spec,), places, records_of(ARGUMENTS, {}), cycles, alone=True)
