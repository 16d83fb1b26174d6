"""Which cut of a Winograd gradient of weights is expected to be the fastest, and whether direct tiles are faster."""

from collections.abc import Iterator
from math import prod

from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import runs_of
from asmdnn.planning.machine import machine_of
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.winograd.cut import rows_of
from asmdnn.primitives.convolution_backward.weights_units import FEW_CHANNELS, GradientPanels, reached
from asmdnn.primitives.convolution_backward.winograd.cut import ChunkSizes, GradientCut, chunks_of, sizes_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import Algorithm, f32

RESULTS = 4  # along an axis of a tile: tiles of 2 would not be faster
SHARES = 4  # of threads: so many units at least, if diff_weights has them
FEWEST_TILES = 32  # of a chunk: fewer are transformed into gradients too often


def choose(g: ConvGeometry, panels: GradientPanels, algorithm: Algorithm, engine: Engine) -> GradientCut:
    """The best cut; with `auto` Refused if direct tiles are expected to be faster.

    Depends on shapes and caches alone, never on the threads.
    """
    tuning = engine.tuning
    cut = cut_of(g, panels, engine)
    if algorithm == Algorithm.convolution_auto:
        if g.ic <= FEW_CHANNELS:
            raise Refused(f"{g.ic} input channels leave most of a vector empty, which transforms compute all the same")
        expected = cycles_of(g, cut, panels, engine.isa, tuning)
        other = direct_cycles(g, panels.lanes, tuning)
        if other <= expected:
            raise Refused(f"{cut} is expected to take {expected:.0f} cycles, direct tiles {other:.0f}")
    return cut


def cut_of(g: ConvGeometry, panels: GradientPanels, engine: Engine) -> GradientCut:
    """Chunks that stay in L3, and of units whose sums stay in L2 those that read the fewest transformed tiles."""
    own = engine.tuning.winograd_gradient
    tile = sizes_of(g, GradientCut(RESULTS, 1, panels.rows, 1), panels)
    tile_bytes = tile.frequencies * (tile.source_row_bytes + tile.result_row_bytes)
    held = int(own.chunk_share * machine_of(engine.machine).caches.l3_bytes) // tile_bytes
    tiles = min(own.chunk_tiles, max(held, FEWEST_TILES))
    width = panels.vectors * panels.lanes

    def cost(cut: GradientCut) -> tuple[bool, bool, float]:
        units = g.groups * -(-g.ic // cut.rows) * -(-tile.panel_count // cut.panels)
        sums_bytes = tile.frequencies * f32.size_bytes * cut.rows * cut.panels * width
        return units < SHARES, sums_bytes > own.sums_share * engine.l2_bytes, 1 / cut.rows + 1 / (cut.panels * width)

    return min((GradientCut(RESULTS, tiles, *unit) for unit in units_of(g, panels, tile)), key=cost)


def units_of(g: ConvGeometry, panels: GradientPanels, sizes: ChunkSizes) -> Iterator[tuple[int, int]]:
    """(input channels, panels) of units to consider: nearly equal shares, of whole blocks of a panel."""
    blocks = -(-g.ic // panels.rows)
    rows = dict.fromkeys(min(g.ic, -(-blocks // n) * panels.rows) for n in range(1, blocks + 1))
    together = dict.fromkeys(-(-sizes.panel_count // n) for n in range(1, sizes.panel_count + 1))
    yield from ((i, o) for i in rows for o in together)


def cycles_of(g: ConvGeometry, cut: GradientCut, panels: GradientPanels, isa: str, tuning: Tuning) -> float:
    """The whole gradient."""
    own, of_sums, sizes, lanes = tuning.winograd_gradient, tuning.winograd, sizes_of(g, cut, panels), lanes_of(isa)
    turns, call = of_sums.turns(lanes), tuning.phases.call_cycles
    source = call + of_sums.source_cycles(cut.m, lanes) * sizes.source_vectors
    result = call + own.diff_dst_cycles * turns * sizes.result_vectors
    blocks = -(-g.ic // panels.rows)
    taps = blocks * call + g.ic * panels.vectors * own.taps_cycles * turns
    total = 0.0
    for chunk in chunks_of(g, cut):
        multiplied = 0.0
        for first in range(0, g.ic, cut.rows):
            for rows, times in runs_of(min(cut.rows, g.ic - first), rows_of(isa)[panels.vectors]):
                step = step_cycles(rows, panels.vectors, lanes, tuning.phases) / own.busy
                multiplied += call + times * (own.block_cycles + chunk.tiles * step)
        total += chunk.tiles * (source + result)
        total += g.groups * sizes.panel_count * (sizes.frequencies * multiplied + taps)
    return total


def direct_cycles(g: ConvGeometry, lanes: int, tuning: Tuning) -> float:
    """The same by direct tiles, which multiply no padding."""
    pixels = g.mb * prod(sum(high - low for low, high in (reached(axis, k) for k in range(axis.k))) for axis in g.axes)
    return pixels * g.groups * g.ic * -(-g.oc // lanes) / 2 / tuning.winograd.direct_busy
