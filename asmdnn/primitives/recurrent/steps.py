"""The phase of a time step: tiles of rows for every panel of weights, on the thread that has had the panel before."""

from collections.abc import Mapping

import numpy as np

from asmdnn.generators.recurrent.cells import Cell, form_of
from asmdnn.generators.recurrent.tile import UNROLL, RecurrentTileSpec
from asmdnn.generators.recurrent.tile_shape import CellOperand, blocks_of
from asmdnn.isa.dot import F32, Types
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import VECTORS, lanes_of, vector_bytes
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64, Phase, View, records_of, views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.recurrent.rows import BufferRows, Runs, Turn
from asmdnn.records import dataclass, replace

STREAMED_BYTES = 256  # of weights that one row reads at a time
CELL_REGISTERS, KEEPING_REGISTERS = 5, 8  # of a vector's cell, one that keeps more for the way back: ports are filled
UNIT_VECTORS = (1, 2, 4, 8)  # of units in a tile


@dataclass(frozen=True, slots=True)
class RecurrentPanels:
    """Weights of a layer and direction: vectors of units in panels; distances as in tile_shape.py."""

    buffer: str
    start_bytes: int
    row_bytes: int
    gate_bytes: int
    panel_bytes: int
    depth: int  # elements

    @property
    def view(self) -> View:
        return View(self.buffer, self.start_bytes)


@dataclass(frozen=True, slots=True)
class CellField:
    """An operand of a cell: rows, and where parts and vectors of units lie in them.

    pair_bytes: from a pair of vectors to the next; 0: vectors of all pairs are equally far from one another.
    """

    rows: BufferRows
    vector_bytes: int
    part_bytes: int = 0
    whole: bool = False
    pair_bytes: int = 0

    def operand(self, name: str) -> CellOperand:
        return CellOperand(name, self.rows.row_bytes, self.part_bytes, self.vector_bytes, self.whole, self.rows.dtype)

    @property
    def pair(self) -> int:
        return self.pair_bytes or 2 * self.vector_bytes


def vectors_of(rows: BufferRows, lanes: int, part: int = 0) -> CellField:
    """Rows whose vectors of units lie side by side, and whose parts begin every `part` elements."""
    size = rows.dtype.size_bytes
    return CellField(rows, lanes * size, part * size)


@dataclass(frozen=True, slots=True)
class Stage:
    """A product and the cell after it.  units: of a row; depth 0: there is no product.  pairs: of each operand, from a
    pair of vectors to the next."""

    isa: str
    cell: Cell
    units: int
    weights: RecurrentPanels
    src_row_bytes: int
    operands: tuple[CellOperand, ...]
    pairs: tuple[int, ...]
    types: Types = F32

    @property
    def groups(self) -> int:
        """Of k."""
        return -(-self.weights.depth // self.types.group)

    @property
    def weights_vector_bytes(self) -> int:
        return self.lanes * self.types.weights_bytes

    @property
    def lanes(self) -> int:
        return lanes_of(self.isa)

    @property
    def panels(self) -> int:
        return -(-self.units // self.lanes)

    @property
    def known_vectors(self) -> tuple[int, ...]:
        """How many vectors of units a tile may have: those of a pair, or more where all are equally far apart."""
        even = all(pair == 2 * x.vector_bytes for x, pair in zip(self.operands, self.pairs, strict=True))
        return UNIT_VECTORS if even else UNIT_VECTORS[:2]

    @property
    def weights_bytes(self) -> int:
        return self.groups * form_of(self.cell).gates * self.panels * self.weights_vector_bytes


class StagePhases:
    """Phases of stages; steps that differ only in where they read and write share their records."""

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.known: dict[tuple[Stage, Runs, bool], Phase] = {}

    def phase(self, stage: Stage, turn: Turn, places: Mapping[str, View], backwards: bool) -> Phase:
        """The phase of a stage for the rows of a step; places: where its src and its operands lie."""
        key = stage, turn.runs, backwards
        if key not in self.known:
            self.known[key] = template(*key, self.tuning)
        names = {f"{name} of step": view for name, view in places.items()}
        return self.known[key].on({**names, "weights of step": stage.weights.view})


def template(stage: Stage, runs: Runs, backwards: bool, tuning: Tuning) -> Phase:
    """The records of a stage; `backwards` walks every thread's panels from the last one, which the step before has
    left in its L2."""
    vectors, tiles = tiles_of(stage, runs, tuning)
    columns = vectors * form_of(stage.cell).gates
    lines = prefetch_lines(stage, columns, len(tiles)) if stage.weights_bytes >= tuning.recurrent.ahead_bytes else 0
    first = np.arange(0, stage.panels, vectors)
    rest = stage.units - int(first[-1]) * stage.lanes
    sums = -(-tuning.recurrent.latency_sums // columns) if columns < tuning.recurrent.latency_columns else 1
    numbers: dict[RecurrentTileSpec, int] = {}
    kernel = np.empty((len(first), len(tiles)), np.int64)
    for groups, units in ((slice(0, -1), vectors * stage.lanes), (slice(-1, None), rest)):
        for i, (_, rows) in enumerate(tiles if len(first[groups]) else ()):
            kernel[groups, i] = numbers.setdefault(tile(stage, rows, units, lines, sums), len(numbers))
    specs = tuple(numbers)
    names = specs[0].frame
    offsets = offsets_of(stage, first, np.array([at for at, _ in tiles]))
    following = np.clip(np.arange(len(first)) + (-1 if backwards else 1), 0, len(first) - 1)
    share = lines * LINE_BYTES * (stage.groups // UNROLL) * np.arange(len(tiles))
    offsets["prefetched"] = (first[following] * stage.weights.panel_bytes)[:, None] + share
    records = records_of(names, {name: offset.ravel() for name, offset in offsets.items()}, kernel.ravel())
    cycles = np.array([cycles_of(spec, tuning) for spec in specs], np.int32)[kernel.ravel()]
    buffers = [f"{name} of step" for name in names[:-1]] + ["weights of step" if lines else ""]
    if not stage.weights.depth:
        buffers[:2] = ["", ""]
    alone = int(cycles.sum()) < tuning.recurrent.alone_cycles
    return Phase(specs, views(buffers), records, cycles, alone=alone, backwards=backwards)


def offsets_of(stage: Stage, first: Int64, row: Int64) -> dict[str, Int64]:
    """int64[groups of panels, tiles]: where the arguments of each call lie."""
    none = np.zeros((len(first), len(row)), np.int64)
    offsets = {
        "src": none + row * stage.src_row_bytes * bool(stage.weights.depth),
        "weights": none + (first * stage.weights.panel_bytes)[:, None] * bool(stage.weights.depth),
    }
    for x, pair_bytes in zip(stage.operands, stage.pairs, strict=True):
        of_vector = first // 2 * pair_bytes + first % 2 * x.vector_bytes
        offsets[x.name] = of_vector[:, None] + row * x.row_bytes
    return offsets


def tiles_of(stage: Stage, runs: Runs, tuning: Tuning) -> tuple[int, list[tuple[int, int]]]:
    """Vectors of units at a time, and (first row, rows) of tiles: those that are expected to be fastest."""
    gates, known = form_of(stage.cell).gates, stage.known_vectors
    if max(count for _, count in runs) == 1:
        most = min(STREAMED_BYTES // vector_bytes(stage.isa) // gates, stage.panels)
        return max(n for n in known if n == 1 or n <= most), [(at, 1) for at, _ in runs]
    blocks = blocks_of(stage.isa, stage.types)
    cuts = []
    for vectors in (n for n in known if n * gates in blocks and (n == 1 or n <= stage.panels)):
        columns = vectors * gates
        tiles = [x for run in runs for x in in_tiles(*run, blocks[columns])]
        step = sum(step_cycles(rows, columns, stage.lanes, tuning.phases) for _, rows in tiles)
        cuts.append((step * -(-stage.panels // vectors), vectors, tiles))
    _, vectors, tiles = min(cuts)
    return vectors, tiles


def in_tiles(first: int, count: int, rows: int) -> list[tuple[int, int]]:
    """(first row, rows) of nearly equal tiles."""
    found, at = [], first
    for size in balanced(count, rows):
        found.append((at, size))
        at += size
    return found


def tile(stage: Stage, rows: int, units: int, lines: int, sums: int) -> RecurrentTileSpec:
    """sums: of a tile of one row, if it has several."""
    isa, cell = stage.isa, stage.cell
    depth = stage.groups
    return RecurrentTileSpec(
        isa=isa,
        cell=cell,
        rows=rows,
        units=units,
        depth=depth,
        src_row_bytes=stage.src_row_bytes if rows > 1 and depth else 0,
        weights_row_bytes=stage.weights.row_bytes if depth else 0,
        gate_bytes=stage.weights.gate_bytes if depth else 0,
        panel_bytes=stage.weights.panel_bytes if depth and units > stage.lanes else 0,
        operands=stage.operands if rows > 1 else tuple(replace(x, row_bytes=0) for x in stage.operands),
        prefetch_lines=lines,
        sums=sums if rows == 1 and depth > 1 else 1,
        together=VECTORS[isa].count // (KEEPING_REGISTERS if cell.keeps else CELL_REGISTERS),
        types=stage.types,
        missing=depth * stage.types.group - stage.weights.depth,
    )


def prefetch_lines(stage: Stage, columns: int, tiles: int) -> int:
    """A share of the next panel that each of several tiles prefetches, for every UNROLL steps of depth; where gates lie
    apart, of each gate's."""
    if tiles == 1:
        return 0
    width = stage.weights_vector_bytes
    side_by_side = stage.weights.gate_bytes in (0, width)
    streams = 1 if side_by_side else form_of(stage.cell).gates
    return -(-UNROLL * columns * width // LINE_BYTES // (tiles * streams))


def cycles_of(spec: RecurrentTileSpec, tuning: Tuning) -> int:
    """What a call is expected to take."""
    lanes, columns = lanes_of(spec.isa), spec.vectors * spec.form.gates
    functions = tuning.recurrent.function_cycles * spec.rows * columns
    step = step_cycles(spec.rows, columns, lanes, tuning.phases)
    return int(spec.depth * step + functions + tuning.phases.call_cycles)
