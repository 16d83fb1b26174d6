"""The specs of time steps: every cell, and what it may lack; blocks, tails, depths, single rows, prefetch."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.recurrent.cells import Cell, form_of
from asmdnn.generators.recurrent.dynamic_rows import DynamicRowsSpec
from asmdnn.generators.recurrent.tile import RecurrentTileSpec
from asmdnn.generators.recurrent.tile_shape import CellOperand, blocks_of
from asmdnn.isa.dot import BF16, DOTS, F32, F32_BF16, F32_F16, U8S8, Types
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import replace
from asmdnn.types import f32

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
GATES, CANDIDATE = Cell("gru_gates"), Cell("gru_candidate")
BYTES = (60.0, 100.0)  # scale and shift
BYTE_LSTM = Cell("lstm", has_bias=True, data=BYTES)
BYTE_GATES = Cell("gru_gates", has_bias=True, data=BYTES)
BYTE_CELLS = (
    BYTE_LSTM,
    Cell("lstm", has_state=False, peephole=True, data=BYTES),
    Cell("lstm", has_bias=True, dynamic=True),
    Cell("lstm", has_state=False, peephole=True, dynamic=True),
    BYTE_GATES,
    Cell("gru_candidate", has_bias=True, data=BYTES),
    Cell("gru_candidate", data=BYTES),
)
HANDED = ("dst", "reset")  # what products multiply
OF_ALL_ROWS = ("bias", "peephole", "scales", "offsets", "starts", "layer_scales")
# How many parts operands have here; gates are whole vectors of them.
PARTS = {"gates": 4, "workspace": 4, "scales": 4, "offsets": 4, "starts": 4, "layer_scales": 4}


def operand(name: str, isa: str, units: int, types: Types, cell: Cell) -> CellOperand:
    """Rows with gaps after them; the parts of a vector of units side by side, or rows of units."""
    lanes, parts = lanes_of(isa), PARTS.get(name, 1)
    width = 4 * lanes
    if name == "gates":
        row = -(-units // lanes) * parts * width + 64
        return CellOperand(name, row, width, parts * width, whole=True, dtype=types.sums)
    handed = name in HANDED or (name == "state" and cell.algorithm != "lstm")
    dtype = types.sums if name == "starts" else types.src if handed and not cell.dynamic else f32
    part = dtype.size_bytes * (units + 2)
    row = 0 if name in OF_ALL_ROWS else parts * part + dtype.size_bytes
    return CellOperand(name, row, part, dtype.size_bytes * lanes, dtype=dtype)


def tile(
    isa: str, cell: Cell, rows: int, units: int, depth: int = 3, types: Types = F32, **fields: Any
) -> RecurrentTileSpec:
    """Weights with all gates side by side."""
    form, width = form_of(cell), types.weights_bytes * lanes_of(isa)
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
        operands=tuple(operand(name, isa, units, types, cell) for name in form.names),
        together=2,
        types=types,
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
    lanes, most = LANES[isa], blocks_of(isa)
    for cell, vectors in ((LSTM, 1), (LBR, 1), (Cell("gru_gates"), 1), (VANILLA, 2), (PROJECTION, 4), (VANILLA, 1)):
        rows = most[vectors * form_of(cell).gates]
        yield tile(isa, cell, rows, vectors * lanes, 8, together=6)
        yield tile(isa, cell, rows - 1, vectors * lanes - 1, 2)
    width = 4 * lanes  # gates that lie apart, as a GRU's
    apart: dict[str, Any] = {"weights_row_bytes": width, "gate_bytes": 20 * width, "panel_bytes": 7 * width}
    yield tile(isa, Cell("gru_gates", keeps=True), 2, 2 * lanes, 9, **apart, prefetch_lines=2)


def depths(isa: str) -> Iterator[RecurrentTileSpec]:
    """Around the loop; with prefetch."""
    lanes = LANES[isa]
    for depth in (1, 7, 9, 15, 16, 17):
        yield tile(isa, LSTM, 2, lanes, depth)
    for lines, depth in ((1, 5), (3, 16), (11, 25)):
        yield tile(isa, LSTM, 3, lanes, depth, prefetch_lines=lines, together=3)


def starts_last(isa: str) -> Iterator[RecurrentTileSpec]:
    """Every cell that multiplies, with a tail of units; several vectors, one row, several sums."""
    lanes = LANES[isa]
    for cell in CELLS:
        if cell.algorithm != "gru_first":
            yield tile(isa, cell, 3, lanes - 3, together=3, starts_last=True)
    yield tile(isa, VANILLA, 2, 2 * lanes - 1, 9, starts_last=True)
    yield tile(isa, LSTM, 1, lanes, 17, sums=2, starts_last=True)


def single_rows(isa: str) -> Iterator[RecurrentTileSpec]:
    """Independent sums, and several vectors of units at a time."""
    lanes = LANES[isa]
    for cell, vectors, sums in ((LSTM, 2, 1), (LSTM, 1, 2), (LBR, 1, 3), (VANILLA, 4, 2), (PROJECTION, 8, 1)):
        yield tile(isa, cell, 1, vectors * lanes, 17, sums=sums, together=3)
        yield tile(isa, cell, 1, vectors * lanes - 2, 2, sums=sums)


def typed(isa: str, types: Types) -> Iterator[RecurrentTileSpec]:
    """Of other types: every cell, full blocks, single rows, and every cut of the last group around the loop."""
    lanes, most, of_bytes = lanes_of(isa), blocks_of(isa, types), types == U8S8
    cells = BYTE_CELLS if of_bytes else (VANILLA, LSTM, Cell("lstm", peephole=True), GATES, CANDIDATE, LBR, PROJECTION)
    lstm, gates_cell = (BYTE_LSTM, BYTE_GATES) if of_bytes else (LSTM, GATES)
    for cell in cells:
        gates = form_of(cell).gates
        yield tile(isa, cell, min(3, most[gates]), lanes - 3, types=types, together=3)
        yield tile(isa, cell, most[gates], lanes, 8, types, together=6)
    if not of_bytes:
        yield tile(isa, Cell("gru_first"), 2, lanes - 1, 0, types)
    for depth, missing in product((1, 2, 16, 17), range(types.group)):
        odd: dict[str, Any] = {"missing": missing, "src_row_bytes": 4 * depth + types.src.size_bytes}
        yield tile(isa, lstm, most[4], lanes, depth, types, **odd)
    for cell, vectors, sums in ((lstm, 2, 1), (lstm, 1, 2), (gates_cell, 1, 3)):
        yield tile(isa, cell, 1, vectors * lanes - 2, 17, types, missing=types.group - 1, sums=sums, together=3)
    yield tile(isa, lstm, most[4], lanes, 25, types, prefetch_lines=3)
    yield tile(isa, lstm, most[4], lanes - 1, 3, types, starts_last=True)


def dynamic_rows(isa: str) -> Iterator[DynamicRowsSpec]:
    """One row and several, whole vectors, tails and both; rows that touch and rows apart."""
    lanes = LANES[isa]
    for rows, elements, columns in ((1, lanes, 1), (3, 2 * lanes + 3, 3 * lanes), (2, lanes - 1, 2 * lanes - 1)):
        for gap in (0, 5) if rows > 1 else (0,):
            row = 4 * (elements + gap)
            yield DynamicRowsSpec(isa=isa, rows=rows, elements=elements, src_row_bytes=row, columns=columns)


TYPES = tuple((types, level.name) for types, level in DOTS if types in (F32_BF16, F32_F16, BF16, U8S8))
FAMILIES: dict[str, Callable[[], Iterator[KernelSpec]]] = {
    **of_levels(
        "recurrent",
        cells=cells,
        blocks=blocks,
        depths=depths,
        starts_last=starts_last,
        single_rows=single_rows,
        dynamic_rows=dynamic_rows,
    ),
    **{f"recurrent-{types}-{isa}": partial(typed, isa, types) for types, isa in TYPES},
}
