"""The phase of a time step: tiles of rows for every panel of weights, on the thread that has had the panel before."""

from collections.abc import Mapping

import numpy as np

from asmdnn.generators.recurrent.cells import form_of
from asmdnn.generators.recurrent.tile import UNROLL, RecurrentTileSpec
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.phase import Int64, Phase, View, records_of, views
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.recurrent.rows import Runs, Turn
from asmdnn.primitives.recurrent.stage import Stage
from asmdnn.primitives.recurrent.stage_cuts import StageCut, StepKernel, cut_of, cycles_of, kernel_of
from asmdnn.records import replace


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
    cut = cut_of(stage, runs, tuning)
    vectors, tiles, columns = cut.vectors, cut.tiles, cut.vectors * form_of(stage.cell).gates
    lines = prefetch_lines(stage, cut) if stage.weights_bytes >= tuning.recurrent.ahead_bytes else 0
    first = np.arange(0, stage.panels, vectors)
    rest = stage.units - int(first[-1]) * stage.lanes
    sums = -(-tuning.recurrent.latency_sums // columns) if columns < tuning.recurrent.latency_columns else 1
    numbers: dict[StepKernel, int] = {}
    kernel = np.empty((len(first), len(tiles)), np.int64)
    for groups, units in ((slice(0, -1), vectors * stage.lanes), (slice(-1, None), rest)):
        for i, (_, rows) in enumerate(tiles if len(first[groups]) else ()):
            spec = kernel_of(stage, cut, rows, units, lines, sums)
            if isinstance(spec, RecurrentTileSpec):
                spec = replace(spec, starts_last=tuning.recurrent.starts_last and stage.groups > 0)
            kernel[groups, i] = numbers.setdefault(spec, len(numbers))
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


def prefetch_lines(stage: Stage, cut: StageCut) -> int:
    """A share of the next panel that each of several tiles prefetches, for every UNROLL steps of depth; where gates lie
    apart, of each gate's."""
    tiles, gates, width = len(cut.tiles), form_of(stage.cell).gates, stage.weights_vector_bytes
    if tiles == 1 or cut.is_tiled:
        return 0
    columns = cut.vectors * gates
    side_by_side = stage.weights.gate_bytes in (0, width)
    streams = 1 if side_by_side else gates
    return -(-UNROLL * columns * width // LINE_BYTES // (tiles * streams))
