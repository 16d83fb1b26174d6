"""Operands, arguments and blocks of tiles of a time step, for planners and generators; see tile.py."""

from dataclasses import dataclass

SRC, WEIGHTS = range(2)
# The most rows for each number of vectors of a row, which are gates times vectors of units: accumulators, and beside
# them a row of weights and an element of src, or an element of each row and a vector of weights.
BLOCKS = {"avx2": {1: 12, 2: 6, 3: 4, 4: 3}, "avx512_core": {1: 24, 2: 14, 3: 8, 4: 6}}


@dataclass(frozen=True, slots=True)
class CellOperand:
    """What a cell reads or writes.  Row r, part p, vector u of units lies at r * row_bytes + p * part_bytes +
    u * vector_bytes.  whole: there are whole vectors of units, with padding behind the last."""

    name: str
    row_bytes: int
    part_bytes: int
    vector_bytes: int
    whole: bool = False
