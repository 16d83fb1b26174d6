"""Operands, arguments and blocks of tiles of a time step, for planners and generators; see tile.py."""

from collections.abc import Mapping

from asmdnn.isa.dot import F32, Types, dot_class
from asmdnn.isa.vectors import vector_class
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

SRC, WEIGHTS = range(2)
# By the registers of a level, as the blocks of dots.
BLOCKS = {16: {1: 12, 2: 6, 3: 4, 4: 3}, 32: {1: 24, 2: 14, 3: 8, 4: 6}}


def blocks_of(isa: str, types: Types = F32) -> Mapping[int, int]:
    """The most rows for each number of vectors of a row, which are gates times vectors of units: accumulators, and
    beside them a row of weights and an element of src, or an element of each row and a vector of weights; where a dot
    takes several registers of these, or one all the time, a row of weights and all of them."""
    count, dot = vector_class(isa).count, dot_class(types, isa)
    if dot.row_registers == 1 and not dot.shift:
        return BLOCKS[count]
    taken = dot.spare_registers + (1 if dot.shift else 0)
    return {n: max(1, (count - taken) // n - dot.row_registers) for n in BLOCKS[count]}


@dataclass(frozen=True, slots=True)
class CellOperand:
    """What a cell reads or writes.  Row r, part p, vector u of units lies at r * row_bytes + p * part_bytes +
    u * vector_bytes.  whole: there are whole vectors of units, with padding after the last."""

    name: str
    row_bytes: int
    part_bytes: int
    vector_bytes: int
    whole: bool = False
    dtype: DataType = f32
