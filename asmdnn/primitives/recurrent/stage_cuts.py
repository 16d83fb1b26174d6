"""How a stage of a time step is cut into calls: vectors of units, tiles of rows, and whether tiles of AMX multiply."""

from asmdnn.generators.recurrent.amx_step import MOST_ROWS, AmxStepSpec
from asmdnn.generators.recurrent.cells import form_of
from asmdnn.generators.recurrent.tile import RecurrentTileSpec
from asmdnn.generators.recurrent.tile_shape import blocks_of
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_class
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.products.amx import call_cycles
from asmdnn.primitives.recurrent.rows import Runs
from asmdnn.primitives.recurrent.stage import Stage
from asmdnn.records import dataclass, replace
from asmdnn.types import HALF_FLOATS

STREAMED_BYTES = 256  # of weights that one row reads at a time
CELL_REGISTERS, KEEPING_REGISTERS = 5, 8  # of a vector's cell, one that keeps more for the way back: ports are filled
MOST_COLUMNS = 4  # vectors of gates of a call of tiles of AMX: its sums wait in L1
StepKernel = RecurrentTileSpec | AmxStepSpec


@dataclass(frozen=True, slots=True)
class StageCut:
    """vectors: of units at a time.  tiles: (first row, rows)."""

    vectors: int
    tiles: tuple[tuple[int, int], ...]
    is_tiled: bool = False


def cut_of(stage: Stage, runs: Runs, tuning: Tuning) -> StageCut:
    """The cut that is expected to be fastest."""
    cut = of_vectors(stage, runs, tuning)
    least = expected_cycles(stage, cut, tuning)
    if stage.types.src in HALF_FLOATS:
        least *= tuning.products.bf16_cycles
    for vectors in tiled_vectors(stage, runs, tuning):
        tiles = (x for run in runs for x in in_tiles(*run, MOST_ROWS))
        other = StageCut(vectors, tuple(tiles), is_tiled=True)
        if (cycles := expected_cycles(stage, other, tuning)) < least:
            cut, least = other, cycles
    return cut


def tiled_vectors(stage: Stage, runs: Runs, tuning: Tuning) -> list[int]:
    """How many vectors of units a call may have, if tiles of AMX may multiply: none of few rows."""
    is_few = min(count for _, count in runs) < max(2, tuning.products.amx_rows)
    if stage.amx_level is None or not stage.weights.depth or is_few:
        return []
    gates = form_of(stage.cell).gates
    return [n for n in stage.known_vectors if n == 1 or (n <= stage.panels and n * gates <= MOST_COLUMNS)]


def expected_cycles(stage: Stage, cut: StageCut, tuning: Tuning) -> float:
    """Of all calls."""
    units = min(stage.units, cut.vectors * stage.lanes)
    kernels = [kernel_of(stage, cut, rows, units) for _, rows in cut.tiles]
    return -(-stage.panels // cut.vectors) * sum(cycles_of(kernel, tuning) for kernel in kernels)


def of_vectors(stage: Stage, runs: Runs, tuning: Tuning) -> StageCut:
    """Of those that vectors multiply."""
    gates, known = form_of(stage.cell).gates, stage.known_vectors
    if max(count for _, count in runs) == 1:
        most = min(STREAMED_BYTES // vector_bytes(stage.isa) // gates, stage.panels)
        return StageCut(max(n for n in known if n == 1 or n <= most), tuple((at, 1) for at, _ in runs))
    blocks = blocks_of(stage.isa, stage.types)
    cuts = []
    for vectors in (n for n in known if n * gates in blocks and (n == 1 or n <= stage.panels)):
        columns = vectors * gates
        tiles = [x for run in runs for x in in_tiles(*run, blocks[columns])]
        step = sum(step_cycles(rows, columns, stage.lanes, tuning.phases) for _, rows in tiles)
        cuts.append((step * -(-stage.panels // vectors), vectors, tiles))
    _, vectors, tiles = min(cuts)
    return StageCut(vectors, tuple(tiles))


def in_tiles(first: int, count: int, rows: int) -> list[tuple[int, int]]:
    """(first row, rows) of nearly equal tiles."""
    found, at = [], first
    for size in balanced(count, rows):
        found.append((at, size))
        at += size
    return found


def kernel_of(stage: Stage, cut: StageCut, rows: int, units: int, lines: int = 0, sums: int = 1) -> StepKernel:
    """Of a call.  lines, sums: of what vectors multiply; sums: of one row, if it has several."""
    if cut.is_tiled:
        assert stage.amx_level is not None
        return AmxStepSpec(tile=tile(replace(stage, isa=stage.amx_level), rows, units, 0, 1))
    return tile(stage, rows, units, lines, sums)


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
        together=vector_class(isa).count // (KEEPING_REGISTERS if cell.keeps else CELL_REGISTERS),
        types=stage.types,
        missing=depth * stage.types.group - stage.weights.depth,
    )


def cycles_of(kernel: StepKernel, tuning: Tuning) -> int:
    """What a call is expected to take."""
    spec = kernel.tile if isinstance(kernel, AmxStepSpec) else kernel
    lanes, columns = lanes_of(spec.isa), spec.vectors * spec.form.gates
    functions = tuning.recurrent.function_cycles * spec.rows * columns
    if isinstance(kernel, AmxStepSpec):
        products = call_cycles(spec.rows, columns * lanes, spec.depth, tuning.products)
        return int(products + functions + tuning.phases.call_cycles)
    step = step_cycles(spec.rows, columns, lanes, tuning.phases)
    return int(spec.depth * step + functions + tuning.phases.call_cycles)
