"""The plan of a direct convolution: kernel specs for every pattern, tap lists, and the records in their order.

Input channels are summed in one phase, or, where a weights panel would crowd L2, a range of them a phase: the first
starts from the bias, the others continue from dst.
"""

from collections.abc import Mapping
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from asmdnn.generators.dot.conv_shape import ARGUMENTS, PREFETCHED, TAPS, vectors_of_dst
from asmdnn.isa.dot import GROUP_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.cuts import make_depths
from asmdnn.planning.order import TileOrder, choose_order, lay_out
from asmdnn.planning.phase import NOTHING, Int64, Phase, Repeat, View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution.ends import TileEnds
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.offsets import ConvPanels, Offsets
from asmdnn.primitives.convolution.rounds import TileCut, TilePiece, cut_image, rounds_of, rounds_of_cut
from asmdnn.primitives.convolution.starts import Starts
from asmdnn.primitives.convolution.streaming import goes_along_pixels
from asmdnn.primitives.convolution.tap_lists import make_tap_lists
from asmdnn.primitives.convolution.taps import DepthTaps, rows_of_panel, taps_of_ranges
from asmdnn.primitives.convolution.tile_kernels import (
    Table,
    TilePattern,
    TileTypes,
    sizes_of,
    src_prefetch_bytes,
    tables_of,
)
from asmdnn.primitives.convolution.tiles import Tiles, make_tiles
from asmdnn.primitives.convolution.tiling import Tiling, choose_depths, prefetch_lines
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, once, replace

MOST_LISTS = 64  # of tiles, for layers that differ in their number of images
Cycles = npt.NDArray[np.int32]


def schedule_tiles(
    name: str,
    tensors: Mapping[str, MemoryDesc],
    ends: TileEnds,
    g: ConvGeometry,
    tiling: Tiling,
    engine: Engine,
) -> Plan:
    """The plan for resolved tensors, those of the chain among them; `g` may be the flattened geometry."""
    width, tuning = tiling.vectors * lanes_of(engine.isa), engine.tuning
    dst = tensors["dst"].dtype
    of_vectors, bias_channels = vector_pointers(g, tiling, engine), ends.starts.group_columns if ends.starts else g.oc
    offsets = Offsets(g, ends.places, bias_channels, of_vectors, g.dst.channel(lanes_of(engine.isa)))
    row_bytes = g.types.weights_bytes * width
    ranges = choose_depths(g, row_bytes, engine.l2_bytes, tuning) if ends.may_split(g, dst) else [(0, g.steps)]
    panels = panels_of(g, width, ranges[0])
    each, conv_tuning = panels.count * g.groups, tuning.convolution
    cut = cut_image(g, tiling, conv_tuning.written_out // each, conv_tuning.round_records // each)
    images, rounds = rounds_of_cut(g, cut, panels.count, conv_tuning)
    tiles = make_tiles(g, cut.first, cut.size)
    taps, tap_lists, starts = taps_of_tiles(replace(g, mb=1), tiles, tuple(ranges), row_bytes)

    chunks = chunks_of(g, cut, images, panels, engine)
    lines = 0 if chunks.near else prefetch_lines(row_bytes, chunks.chunk, tuning.phases)
    types = TileTypes(dst, ends.types, len(ARGUMENTS) + len(ends.operands) if of_vectors else 0)
    buffers = ends.buffers(tensors)
    depths = tuple(make_depths(ranges, "bias" in buffers, ends.post_ops))
    patterns = patterns_of(g, engine, tiles, ends.starts if depths[0].bias else None)
    sizes = sizes_of(g, tiling, engine, lines, types)
    specs, tables = tables_of(sizes, depths, patterns, taps, panels.count)
    last = {id(table): d for d, table in enumerate(tables)}
    weights = tensors["weights"]
    of_groups = offsets.of_groups(weights.dtype.size_bytes * weights.strides[0])
    layout = RecordLayout(offsets, tiles, panels, of_groups, chunks)
    others = (*ends.operands, *("dst" for _ in of_vectors))
    views = (*(View(buffers[x]) if x in buffers else NOTHING for x in ARGUMENTS), *map(View, others))
    phase_of = partial(Phase, specs, views, flushes=True)
    phases: list[Phase] = []
    for begin, end, repeats in rounds_of(g.mb, images, rounds, offsets.image_steps() if rounds > 1 else ()):
        for piece in cut.pieces:
            again = (*repeats, *inner_repeats(piece, offsets))
            alike = {id(table): layout.records(range(begin, end), piece, table) for table in tables}
            for d, depth in enumerate(depths):
                records, cycles = alike[id(tables[d])]
                own = records if d == last[id(tables[d])] else records.copy()
                of_depth = layout.of_depth(own, starts[d], depth.begin)
                independent = bool(phases) and d == 0
                phases.append(phase_of(of_depth, cycles, continues=d > 0, independent=independent, repeats=again))
    return Plan(name, tuple(phases), tensors, {"taps": tap_lists}, {}, ("dst",))


@lru_cache(MOST_LISTS)
def taps_of_tiles(
    g: ConvGeometry, tiles: Tiles, ranges: tuple[tuple[int, int], ...], row_bytes: int
) -> tuple[tuple[DepthTaps, ...], Int64, Int64]:
    """The taps of all ranges of steps, their lists, and where these start; any number of images has the same."""
    taps = taps_of_ranges(g, tiles.patterns, ranges)
    return taps, *make_tap_lists(g, taps, row_bytes)


def patterns_of(g: ConvGeometry, engine: Engine, tiles: Tiles, starts: Starts | None) -> tuple[TilePattern, ...]:
    """What kernels know of patterns; starts: of the sums of pixels, if not all alike."""
    found = []
    for pattern in tiles.patterns:
        ahead = src_prefetch_bytes(g, engine, len(pattern.src_pixel_bytes))
        found.append(TilePattern(pattern.src_pixel_bytes, ahead, starts.of_pixels(g, pattern) if starts else ()))
    return tuple(found)


def vector_pointers(g: ConvGeometry, tiling: Tiling, engine: Engine) -> tuple[str, ...]:
    """The arguments for vectors of dst, none where they touch: else how far they lie apart depends on the image, which
    kernels are not to know."""
    lanes = lanes_of(engine.isa)
    touch = g.dst.channel(lanes) == g.dst.element_bytes * lanes
    return () if touch else vectors_of_dst(min(tiling.vectors, -(-g.oc_stored // lanes)))


def panels_of(g: ConvGeometry, width: int, first_depth: tuple[int, int]) -> ConvPanels:
    panel_bytes, (begin, end) = rows_of_panel(g) * g.types.weights_bytes * width, first_depth
    depth_share = (end - begin) / g.steps  # ranges are equal but for the last
    return ConvPanels(-(-g.oc_stored // width), width, panel_bytes, int(panel_bytes * depth_share), depth_share)


def chunks_of(g: ConvGeometry, cut: TileCut, images: int, panels: ConvPanels, engine: Engine) -> "Chunks":
    """As it is best for all tiles of some images, also where they come in pieces."""
    tiles = images * cut.tiles
    if goes_along_pixels(g, panels.width, panels.count * panels.panel_bytes, engine.tuning.convolution):
        return Chunks(TileOrder(panels.count, tiles), 1, near=True)
    read = (int(GROUP_BYTES * images * g.steps * g.src_pixels * panels.depth_share), panels.depth_bytes)
    order = choose_order(*read, panels.count, tiles, engine.l2_bytes, engine.tuning.phases)
    return Chunks(order, -(-tiles // order.chunks))


def inner_repeats(piece: TilePiece, offsets: Offsets) -> tuple[Repeat, ...]:
    return (Repeat(piece.times, offsets.steps_along(piece.axis, piece.outputs)),) if piece.times > 1 else ()


@dataclass(frozen=True, slots=True)
class Chunks:
    """The order of tiles and panels, and how many tiles a chunk of it has; near: whether L1 keeps all panels."""

    order: TileOrder
    chunk: int
    near: bool = False


@dataclass(frozen=True)
class RecordLayout:
    """How the records of some images are put together; groups: what each adds."""

    offsets: Offsets
    tiles: Tiles
    panels: ConvPanels
    groups: Int64
    chunks: Chunks

    @once
    def of_panels(self) -> Int64:
        return self.offsets.of_panels(self.panels)

    def records(self, images: range, piece: TilePiece, table: Table) -> tuple[Int64, Cycles]:
        """(records, their cycles) of a piece of images, for `of_depth`: instead of its tap list each has the number of
        its pattern."""
        g, panels, chunk = self.offsets.g, self.panels, self.chunks.chunk
        tiles = self.tiles.some(piece.begin, piece.end)
        pattern = tiles.pattern if len(images) == 1 else np.concatenate([tiles.pattern] * len(images))
        rows = self.offsets.of_tiles(tiles, images)
        rows[:, 1 + TAPS] = pattern
        rows[:, 1 + PREFETCHED] += prefetched_shares(g, panels.depth_bytes, len(pattern), chunk)
        at_once = self.chunks.order.panels_at_once
        records, cycles = lay_out(rows, self.of_panels, pattern, *table, at_once, chunk)
        if len(self.groups) == 1:
            return records, cycles
        return (self.groups[:, None] + records).reshape(-1, records.shape[1]), np.tile(cycles, len(self.groups))

    def of_depth(self, records: Int64, starts: Int64, first_step: int) -> Int64:
        """The records, which are changed, for the steps from one on; starts: of each pattern's tap list."""
        records[:, 1 + TAPS] = starts[records[:, 1 + TAPS]]
        records[:, 1 + PREFETCHED] += self.panels.panel_bytes * first_step // self.offsets.g.steps
        return records


def prefetched_shares(g: ConvGeometry, depth_bytes: int, tiles: int, chunk: int) -> Int64:
    """Where in the next panel's rows each tile begins to prefetch: those of a chunk, and all parts, bring all of it."""
    used, before = (depth_bytes * count // g.packed_positions for count in (g.positions, g.positions_before))
    return before + np.arange(tiles) % chunk * used // chunk
