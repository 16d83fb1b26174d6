"""The specs of time steps: every cell, and what it may lack; blocks, tails, depths, single rows, prefetch."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.recurrent.cells import Cell, form_of
from asmdnn.generators.recurrent.tile import RecurrentTileSpec
from asmdnn.generators.recurrent.tile_shape import BLOCKS, CellOperand

LSTM, VANILLA, LBR, PROJECTION = Cell("lstm"), Cell("vanilla", activation="tanh"), Cell("lbr_gru"), Cell("projection")
CELLS = (
    Cell("vanilla", activation="logistic"),
    Cell("vanilla", activation="relu"),
    Cell("vanilla", activation="relu", alpha=0.25),
    Cell("lstm", has_state=False),
    Cell("lstm", peephole=True),
    Cell("lstm", has_state=False, peephole=True),
    Cell("lstm", keeps=True),
    Cell("lstm", peephole=True, keeps=True),
    Cell("gru_gates"),
    Cell("gru_gates", keeps=True),
    Cell("gru_candidate"),
    Cell("gru_candidate", keeps=True),
    Cell("lbr_gru", has_bias=True),
    Cell("lbr_gru", has_state=False, has_bias=True),
    Cell("lbr_gru", has_bias=True, keeps=True),
)
FIRST = (Cell("gru_first"), Cell("gru_first", keeps=True), Cell("lstm", has_state=False, keeps=True))
OF_ALL_ROWS = ("bias", "peephole")
PARTS = {"gates": 4, "workspace": 4}  # how many parts operands have here; gates are whole vectors of them


def operand(name: str, isa: str, units: int) -> CellOperand:
    """Rows with gaps behind them; the parts of a vector of units side by side, or rows of units."""
    width, parts = 4 * LANES[isa], PARTS.get(name, 1)
    if name == "gates":
        return CellOperand(name, -(-units // LANES[isa]) * parts * width + 64, width, parts * width, whole=True)
    return CellOperand(name, 0 if name in OF_ALL_ROWS else parts * (4 * units + 8) + 4, 4 * units + 8, width)


def tile(isa: str, cell: Cell, rows: int, units: int, depth: int = 3, **fields: Any) -> RecurrentTileSpec:
    """Weights with all gates side by side."""
    form, width = form_of(cell), 4 * LANES[isa]
    spec = RecurrentTileSpec(
        isa=isa,
        cell=cell,
        rows=rows,
        units=units,
        depth=depth,
        src_row_bytes=4 * depth + 20 if depth else 0,
        weights_row_bytes=form.gates * width,
        gate_bytes=width,
        panel_bytes=(depth + 2) * form.gates * width,
        operands=tuple(operand(name, isa, units) for name in form.names),
        together=2,
    )
    return replace(spec, **fields)


def cells(isa: str) -> Iterator[RecurrentTileSpec]:
    """Every cell, with a tail of units; one vector after the other, and several in turn."""
    lanes = LANES[isa]
    for cell in CELLS:
        yield tile(isa, cell, 3, lanes - 3, together=3)
    for cell in FIRST:
        yield tile(isa, cell, 2, lanes - 1, 0)
    yield tile(isa, LSTM, 1, lanes, 0, together=1)
    yield tile(isa, VANILLA, 2, 2 * lanes - 1, 0)


def blocks(isa: str) -> Iterator[RecurrentTileSpec]:
    """Every full block, of one vector of units and of several, with whole vectors and with a tail."""
    lanes, most = LANES[isa], BLOCKS[isa]
    for cell, vectors in ((LSTM, 1), (LBR, 1), (Cell("gru_gates"), 1), (VANILLA, 2), (PROJECTION, 4), (VANILLA, 1)):
        rows = most[vectors * form_of(cell).gates]
        yield tile(isa, cell, rows, vectors * lanes, 8, together=6)
        yield tile(isa, cell, rows - 1, vectors * lanes - 1, 2)
    width = 4 * lanes  # gates that lie apart, as a GRU's
    apart = {"weights_row_bytes": width, "gate_bytes": 20 * width, "panel_bytes": 7 * width}
    yield tile(isa, Cell("gru_gates", keeps=True), 2, 2 * lanes, 9, **apart, ahead_lines=2)


def depths(isa: str) -> Iterator[RecurrentTileSpec]:
    """Around the loop; with prefetch."""
    lanes = LANES[isa]
    for depth in (1, 7, 9, 15, 16, 17):
        yield tile(isa, LSTM, 2, lanes, depth)
    for lines, depth in ((1, 5), (3, 16), (11, 25)):
        yield tile(isa, LSTM, 3, lanes, depth, ahead_lines=lines, together=3)


def single_rows(isa: str) -> Iterator[RecurrentTileSpec]:
    """Independent sums, and several vectors of units at a time."""
    lanes = LANES[isa]
    for cell, vectors, sums in ((LSTM, 2, 1), (LSTM, 1, 2), (LBR, 1, 3), (VANILLA, 4, 2), (PROJECTION, 8, 1)):
        yield tile(isa, cell, 1, vectors * lanes, 17, sums=sums, together=3)
        yield tile(isa, cell, 1, vectors * lanes - 2, 2, sums=sums)


FAMILIES = of_levels("recurrent", cells=cells, blocks=blocks, depths=depths, single_rows=single_rows)
