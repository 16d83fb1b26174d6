"""How to cut a convolution: the register block, the strips, ranges of channels, by the model of planning/cost.py."""

from collections.abc import Collection
from functools import lru_cache
from math import prod

from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.dot import dot_class
from asmdnn.isa.lines import LINE_BYTES, lines_that_stay
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import ranges_of, runs_of, share_of_lines
from asmdnn.planning.tuning import ConvolutionTuning, PhaseTuning, Tuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.taps import NEAR_BYTES, TAP_CHANNELS
from asmdnn.records import dataclass, replace

MOST_IMAGES = 512  # whose tilings are known: batches have them in common, and so have layers of a network
STREAM_BYTES = 32  # that the cycles of a stream from L2 are for


@dataclass(frozen=True, slots=True)
class Tiling:
    """pixels x vectors accumulators, strips of `strip_rows` output rows."""

    pixels: int
    vectors: int
    strip_rows: int


def choose_tiling(g: ConvGeometry, isa: str, widths: Collection[int], tuning: Tuning) -> Tiling:
    """The block, its vectors one of `widths`, and strip height that the model expects to be fastest.

    Depends on the shape of an image, ISA and tuning, never on the threads: the order of additions follows from it.
    """
    image = replace(g, mb=1) if g.mb != 1 else g
    return tiling_of_image(image, isa, (*widths,), tuning.convolution, tuning.phases, tuning.products.set_lines)


@lru_cache(MOST_IMAGES)
def tiling_of_image(
    g: ConvGeometry, isa: str, widths: Collection[int], tuning: ConvolutionTuning, phases: PhaseTuning, set_lines: int
) -> Tiling:
    """The same, which any number of images have in common.  set_lines: of L1."""
    lanes, apart = lanes_of(isa), g.src.pixel_bytes * g.axes[-1].s
    # Of channels that are innermost, a line a pixel.  1024 channels at 14x14 on Zen 4, to 256: 1.8x, 3x3 to 64: 2.1x.
    most = min(lines_that_stay(apart, set_lines), 1 + NEAR_BYTES // max(apart, g.dst.pixel_bytes, 1))
    heights = strip_heights(g, tuning.strip_pixels)
    candidates = [
        Tiling(min(pixels, most), vectors, rows)
        for vectors, pixels in blocks_of(g.types, isa).items()
        if vectors in widths and (vectors == 1 or g.dst.channel(lanes) <= NEAR_BYTES)
        for rows in heights
    ]
    if len(candidates) == 1:
        return candidates[0]
    image, worth = ImageModel(g, isa, tuning, phases), tuning.worth_a_kernel
    return min(candidates, key=lambda t: image.cycles(t) * (worth if t.strip_rows == 1 else 1))


def strip_heights(g: ConvGeometry, most_pixels: int) -> list[int]:
    """Heights to consider: one row, and if rows of dst touch, as many as keep the number of kernels small."""
    if not g.dst.rows_touch(tuple(axis.o for axis in g.axes)):
        return [1]
    heights = range(2, min(g.rows, most_pixels // g.width if g.width else 1) + 1)
    return [1, *(rows for rows in heights if reach_bytes(g, rows) <= NEAR_BYTES)]


def reach_bytes(g: ConvGeometry, rows: int) -> int:
    """How far apart the source pixels of a strip may lie."""
    *outer, last = (axis.s * step for axis, step in zip(g.axes, g.src.axis_bytes, strict=True))
    across = sum(min(rows, axis.o) * step for axis, step in zip(g.axes, outer, strict=False))
    return across + g.width * last


class ImageModel:
    """Expected cycles of an image, whatever its tiling; what tilings have in common is found once."""

    def __init__(self, g: ConvGeometry, isa: str, tuning: ConvolutionTuning, phases: PhaseTuning) -> None:
        self.g, self.lanes, self.conv_tuning = g, lanes_of(isa), tuning
        self.dot = dot_class(g.types, isa)
        self.steps, self.depth = g.steps, g.steps * g.positions
        self.pixels, self.vectors = (g.rows, g.width), -(-g.oc_stored // self.lanes)
        self.streamed = phases
        self.near = without_stream(self.streamed)
        size, (*outer, _) = g.src.element_bytes, g.axes
        self.dense_bytes = size * min(g.src.block, g.steps) if g.src.is_dense else size  # of a pixel
        self.kernel_rows, self.row_steps = prod(axis.k for axis in outer), prod(axis.s for axis in outer)
        self.run_cycles = tuning.dst_run_cycles if g.dst.image_bytes >= tuning.dst_runs_bytes else 0.0
        self.read: dict[int, float] = {}
        self.sums: dict[tuple[int, int, bool], float] = {}

    def cycles(self, t: Tiling) -> float:
        """Edges counted as if they were inside."""
        rows, width = self.pixels
        panels, last = divmod(self.vectors, t.vectors)
        strips, rest = divmod(rows, t.strip_rows)
        panel_bytes = self.g.types.weights_bytes * self.depth * t.vectors * self.lanes
        streamed = self.near if panel_bytes <= self.conv_tuning.near_panel_bytes else self.streamed
        kinds = [(count, vectors) for count, vectors in ((panels, t.vectors), (1, last)) if count and vectors]
        total = 0.0
        for times, height in ((strips, t.strip_rows), (1, rest)):
            for pixels, tiles in runs_of(height * width, t.pixels) if times else ():
                each = streamed.call_cycles + self.stream_cycles(pixels)
                for count, vectors in kinds:
                    sums = self.multiplied(pixels, vectors, streamed) + self.written(pixels, vectors)
                    total += times * tiles * count * (sums + each)
        return total

    def multiplied(self, pixels: int, vectors: int, tuning: PhaseTuning) -> float:
        """Cycles of a tile's sums."""
        key = pixels, vectors, tuning is self.near
        if key not in self.sums:
            steps = self.depth * step_cycles(pixels, vectors, self.lanes, tuning, self.dot)
            self.sums[key] = steps + self.dot.end_cycles(pixels, vectors, self.depth)
        return self.sums[key]

    def written(self, pixels: int, vectors: int) -> float:
        """Cycles of the runs in which a tile writes a dst that no L2 keeps: all pixels, or what it has of each; that
        counts twice where another tile writes a part of its last line."""
        dst, channels = self.g.dst, vectors * self.lanes
        if not dst.is_dense or channels >= dst.block:
            return self.run_cycles
        return self.run_cycles * pixels * (1 + (channels * dst.element_bytes % LINE_BYTES > 0))

    def stream_cycles(self, pixels: int) -> float:
        """Of the lines that a tile inside the image touches; tilings have many sizes of tiles in common."""
        if pixels not in self.read:
            read = self.source_bytes(pixels)
            self.read[pixels] = self.conv_tuning.source_stream_cycles * read / STREAM_BYTES
        return self.read[pixels]

    def source_bytes(self, pixels: int) -> int:
        """Of the lines that a tile inside the image touches: stretches of columns, or each column's own where a stride
        skips lines, in every row that the kernel reaches."""
        g, last, dense = self.g, self.g.axes[-1], self.dense_bytes
        across, down = min(pixels, g.width), -(-pixels // max(g.width, 1))
        stretch = ((across - 1) * last.s + (last.k - 1) * last.d + 1) * dense
        apart = across * last.k * -(-dense // LINE_BYTES) * LINE_BYTES
        rows = self.kernel_rows + (down - 1) * self.row_steps
        return min(stretch, apart) * rows * -(-g.src.element_bytes * self.steps // dense)


@lru_cache
def without_stream(tuning: PhaseTuning) -> PhaseTuning:
    """Of weights that are near."""
    return replace(tuning, weights_stream_cycles=0)


def choose_depths(g: ConvGeometry, row_bytes: int, l2_bytes: int, tuning: Tuning) -> list[tuple[int, int]]:
    """Ranges of steps of input channels that are summed at a time: so many that a panel's rows fill its share of L2.

    A panel is read again for every tile.  In a larger share of L2 it loses lines to source, destination and bad luck
    with physical pages; a smaller one makes partial sums travel more often.
    """
    rows = max(l2_bytes // tuning.convolution.panel_share // row_bytes, tuning.phases.least_depth)
    most = max(TAP_CHANNELS, rows // -(-g.packed_positions // g.parts) // TAP_CHANNELS * TAP_CHANNELS)
    return ranges_of(g.steps, most // TAP_CHANNELS, TAP_CHANNELS)


def prefetch_lines(row_bytes: int, tiles: int, tuning: PhaseTuning) -> int:
    """Cache lines of the next panel that every tap prefetches, so that `tiles` tiles bring all of it; 0 if many.

    A part of the lines that a tap has, or all.  Some more than needed cost nothing, twice as many 2.6% where all
    weights come from L3 (1024 to 2048 channels at 7x7, Emerald Rapids).
    Measured on Zen 3, f32 512 channels at 7x7, 3x3: 72 GFLOP/s without, 104 with (the first tile of a panel reads it
    from L3 otherwise).  With 64 tiles and more the first is a small share, and the instructions cost 1%.
    """
    if tiles > tuning.tiles_to_hide:
        return 0
    return share_of_lines(-(-TAP_CHANNELS * row_bytes // LINE_BYTES), tiles)
