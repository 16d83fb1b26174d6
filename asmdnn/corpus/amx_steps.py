"""The specs of time steps by tiles of AMX: every cell of a type, cuts of rows, units and depth."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from asmdnn.corpus.recurrent import (
    BYTE_CELLS,
    BYTE_LSTM,
    CANDIDATE,
    GATES,
    LBR,
    LSTM,
    PROJECTION,
    VANILLA,
    tile,
)
from asmdnn.corpus.recurrent import CELLS as FLOAT_CELLS
from asmdnn.generators.recurrent.amx_step import AmxStepSpec
from asmdnn.generators.recurrent.cells import Cell
from asmdnn.isa.dot import OFFERED, U8S8, Types
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.isa.tiles import TILE_GROUPS, tile_product
from asmdnn.types import s8

ISA = AVX512_CORE_AMX.name
ROWS = (2, 15, 16, 17, 31, 32, 33, 48, 49, 64)  # one tile, two, an odd one, a loop of pairs; rows computed again
DEPTHS = (1, TILE_GROUPS - 1, TILE_GROUPS, TILE_GROUPS + 3, 3 * TILE_GROUPS)  # groups


def step(types: Types, cell: Cell, rows: int, units: int, depth: int, **fields: Any) -> AmxStepSpec:
    return AmxStepSpec(tile=tile(ISA, cell, rows, units, depth, types, **{"together": 6, **fields}))


def cells(types: Types) -> Iterator[AmxStepSpec]:
    """Every cell, with a tail of units; those of training, too."""
    several = (
        VANILLA,
        LSTM,
        Cell("lstm", peephole=True),
        GATES,
        CANDIDATE,
        LBR,
        Cell("lbr_gru", has_bias=True),
        PROJECTION,
    )
    for cell in BYTE_CELLS if types == U8S8 else (*several, *(cell for cell in FLOAT_CELLS if cell.keeps)):
        yield step(types, cell, 18, 13, 5)


def cuts(types: Types) -> Iterator[AmxStepSpec]:
    """Rows and depths; depths that end within a group, of rows that lie apart; several vectors of units."""
    lstm, one = (BYTE_LSTM, BYTE_CELLS[-1]) if types == U8S8 else (LSTM, CANDIDATE)
    for number, rows in enumerate(ROWS):
        yield step(types, lstm, rows, 16 - number % 2, DEPTHS[number % len(DEPTHS)])
    for depth, missing in product((1, TILE_GROUPS, TILE_GROUPS + 1, 2 * TILE_GROUPS + 2), range(1, types.group)):
        odd = {"missing": missing, "src_row_bytes": 4 * depth + types.src.size_bytes}
        yield step(types, one, 19, 16, depth, **odd)
    for number, vectors in enumerate((2, 3, 4)):
        yield step(types, one, 17 + 16 * number, 16 * vectors - number, 7)


TYPES = tuple(types for types in OFFERED if tile_product(types) and types.src != s8)
FAMILIES = {
    f"amx_steps-{family.__name__}-{types}": partial(family, types) for types in TYPES for family in (cells, cuts)
}
