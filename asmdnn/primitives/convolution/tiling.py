"""How to cut a convolution: the register block, the strips, ranges of channels, by the model of planning/cost.py."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod

from asmdnn.generators.dot.conv import LINE_BYTES
from asmdnn.generators.dot.conv_shape import blocks_of
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import ranges_of, runs_of
from asmdnn.planning.tuning import PhaseTuning, Tuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.taps import NEAR_BYTES, TAP_CHANNELS

STREAM_BYTES = 32  # that the cycles of a stream from L2 are for


@dataclass(frozen=True, slots=True)
class Tiling:
    """pixels x vectors accumulators, strips of `strip_rows` output rows."""

    pixels: int
    vectors: int
    strip_rows: int


def choose_tiling(g: ConvGeometry, isa: str, widths: Collection[int], tuning: Tuning) -> Tiling:
    """The block, its vectors one of `widths`, and strip height that the model expects to be fastest.

    Depends on shape, ISA and tuning, never on the threads: the order of additions follows from it.
    """
    lanes = lanes_of(isa)
    pixel_bytes = max(g.src.pixel_bytes * g.axes[-1].s, g.dst.pixel_bytes, 1)
    candidates = [
        Tiling(min(pixels, 1 + NEAR_BYTES // pixel_bytes), vectors, rows)
        for vectors, pixels in blocks_of(g.types, isa).items()
        if vectors in widths and (vectors == 1 or g.dst.channel(lanes) <= NEAR_BYTES)
        for rows in strip_heights(g, tuning.convolution.strip_pixels)
    ]
    worth = tuning.convolution.worth_a_kernel
    return min(candidates, key=lambda t: image_cycles(g, t, lanes, tuning) * (worth if t.strip_rows == 1 else 1))


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


def image_cycles(g: ConvGeometry, t: Tiling, lanes: int, tuning: Tuning) -> float:
    """Expected cycles of an image, edges counted as if they were inside."""
    depth, by = g.steps * g.positions, tuning.convolution
    panels, last = divmod(-(-g.oc_stored // lanes), t.vectors)
    strips, rest = divmod(g.rows, t.strip_rows)
    streamed = tuning.phases
    if g.types.weights_bytes * depth * t.vectors * lanes <= by.near_panel_bytes:
        streamed = replace(streamed, weights_stream_cycles=0)
    total = 0.0
    for times, rows in ((strips, t.strip_rows), (1, rest)):
        for pixels, tiles in runs_of(rows * g.width, t.pixels):
            each = streamed.call_cycles + by.source_stream_cycles * source_bytes(g, pixels) / STREAM_BYTES
            for count, vectors in ((panels, t.vectors), (bool(last), last)):
                total += times * tiles * count * (depth * step_cycles(pixels, vectors, lanes, streamed) + each)
    return total


def source_bytes(g: ConvGeometry, pixels: int) -> int:
    """Of the lines that a tile inside the image touches: stretches of columns, or each column's own where a stride
    skips lines, in every row that the kernel reaches."""
    *outer, last = g.axes
    across, down = min(pixels, g.width), -(-pixels // max(g.width, 1))
    size = g.src.element_bytes
    dense = size * min(g.src.block, g.steps) if g.src.is_dense else size  # bytes of a pixel
    stretch = ((across - 1) * last.s + (last.k - 1) * last.d + 1) * dense
    apart = across * last.k * -(-dense // LINE_BYTES) * LINE_BYTES
    rows = prod(axis.k for axis in outer) + (down - 1) * prod(axis.s for axis in outer)
    return min(stretch, apart) * rows * -(-size * g.steps // dense)


def choose_depths(g: ConvGeometry, row_bytes: int, l2_bytes: int, tuning: Tuning) -> list[tuple[int, int]]:
    """Ranges of steps of input channels that are summed at a time: so many that a panel's rows fill its share of L2.

    A panel is read again for every tile.  In a larger share of L2 it loses lines to source, destination and bad luck
    with physical pages; a smaller one makes partial sums travel more often.
    """
    rows = max(l2_bytes // tuning.convolution.panel_share // row_bytes, tuning.phases.least_depth)
    most = max(TAP_CHANNELS, rows // -(-g.packed_positions // g.parts) // TAP_CHANNELS * TAP_CHANNELS)
    return ranges_of(g.steps, most // TAP_CHANNELS, TAP_CHANNELS)


def ahead_lines(row_bytes: int, tiles: int, tuning: PhaseTuning) -> int:
    """Cache lines of the next panel that every tap prefetches, so that `tiles` tiles bring all of it; 0 if many.

    Measured on Zen 3, f32 512 channels at 7x7, 3x3: 72 GFLOP/s without, 104 with (the first tile of a panel reads it
    from L3 otherwise).  With 64 tiles and more the first is a small share, and the instructions cost 1%.
    """
    return -(-TAP_CHANNELS * row_bytes // LINE_BYTES // tiles) if tiles <= tuning.tiles_to_hide else 0
