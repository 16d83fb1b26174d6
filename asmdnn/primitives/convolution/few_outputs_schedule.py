"""The plan of tiles of few output channels: taps of vectors of channels, records."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.dot.few_outputs import FewTileSpec
from asmdnn.generators.dot.few_outputs_shape import ARGUMENTS, most_at_once
from asmdnn.generators.functions.postops import Operand
from asmdnn.isa.dot import GROUP_BYTES, dot_class
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64, flushing, records_of, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.rounds import in_loops
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.convolution.ends import TileEnds
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.operands import TileOperand, broadcast_layout
from asmdnn.primitives.convolution.tap_lists import TapOffsets
from asmdnn.primitives.convolution.taps import ConvTaps
from asmdnn.primitives.convolution.tiles import Pattern, Tiles
from asmdnn.primitives.convolution.tiling import STREAM_BYTES
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import replace

TAP_VECTORS = 4  # of channels, unrolled in a tap: of 12 sums, code of 1 KiB


def scheduled(
    name: str,
    tensors: Mapping[str, MemoryDesc],
    ends: TileEnds,
    g: ConvGeometry,
    tiles: Tiles,
    engine: Engine,
) -> Plan:
    """The plan for resolved tensors, those of the chain among them, which are readable."""
    placed, whole = ends.places, tensors["src"].padded_dims[1]
    groups = [taps_of(g, pattern, whole, engine.isa) for pattern in tiles.patterns]
    offsets = TapOffsets(g, g.types.weights_bytes * g.oc, lanes_of(engine.isa))
    lists = [tap_list(offsets, taps) for taps in groups]
    starts = 8 * np.cumsum([0, *map(len, lists)])
    shapes = [spec_of(g, *of, engine.isa) for of in zip(tiles.patterns, groups, strict=True)]
    more: dict[str, Any] = {
        "bias": ends.starts_from_bias(tensors), "post_ops": ends.post_ops, "operand_types": ends.types,
        "src_type": tensors["src"].dtype, "dst_type": tensors["dst"].dtype,
    }  # fmt: skip
    specs = [replace(shape, **more) for shape in shapes]
    kernels = {spec: number for number, spec in enumerate(dict.fromkeys(specs))}
    kernel = np.array([kernels[spec] for spec in specs])
    image = np.zeros(1, np.int64)
    columns = {
        "src": g.src.start_bytes + tiles.src_bytes,
        "dst": g.dst.start_bytes + tiles.dst_bytes,
        "taps": starts[tiles.pattern],
        **{operand: place.of_pixels(image, tiles.first) for operand, place in placed.items()},
    }
    records = records_of((*ARGUMENTS, *placed), columns, kernel[tiles.pattern])
    moves = {"src": g.src.image_bytes, "dst": g.dst.image_bytes}
    moves |= {operand: place.layout.image_bytes for operand, place in placed.items()}
    images = (g.mb, tuple(moves.get(argument, 0) for argument in (*ARGUMENTS, *placed)))
    has = {*tensors, "taps"}
    arguments = views([argument if argument in has else "" for argument in (*ARGUMENTS, *ends.operands)])
    cost = np.array([cycles_of(g, pattern, engine) for pattern in tiles.patterns]).astype(np.int32)
    cycles = cost[tiles.pattern]
    phases = in_loops(tuple(kernels), arguments, records, cycles, [images], engine.tuning.phases)
    taps = np.concatenate([*lists, np.zeros(0, np.int64)])
    return Plan(name, flushing(phases), tensors, {"taps": taps}, {}, ("dst",))


def spec_of(g: ConvGeometry, pattern: Pattern, taps: Sequence[ConvTaps], isa: str) -> FewTileSpec:
    """The kernel of a pattern's tiles, without its epilogue."""
    lanes = lanes_of(isa)
    return FewTileSpec(
        isa=isa,
        outputs=g.oc,
        src_pixel_bytes=pattern.src_pixel_bytes,
        src_vector_bytes=g.src.block_bytes if g.src.block == lanes else g.src.element_bytes * lanes,
        weights_vector_bytes=g.types.weights_bytes * lanes * g.oc * g.positions,
        dst_output_bytes=g.dst.channel(1),
        groups=tuple(of_group.group for of_group in taps),
        types=g.types,
    )


def places_of(tensors: Mapping[str, MemoryDesc], dst: MemoryDesc) -> dict[str, TileOperand]:
    """The operands of a tile's post-ops: for every output a vector of pixels, or one element for all."""
    found = {}
    for argument, (name, desc) in enumerate(tensors.items(), len(ARGUMENTS)):
        layout = broadcast_layout(desc, dst.dims[2:])
        assert layout is not None
        step = layout.channel_bytes if desc.dims[1] > 1 else 0
        found[name] = TileOperand(Operand(argument, step, 0, element=layout.pixel_bytes == 0), layout)
    return found


def taps_of(g: ConvGeometry, pattern: Pattern, whole: int, isa: str) -> list[ConvTaps]:
    """The tap groups of a pattern's kernel; src has `whole` channels with its zero padding."""
    lanes, together = lanes_of(isa), g.types.group
    vector = lanes * together
    channels = g.ic if whole % vector else -(-g.ic // vector) * vector
    sizes: dict[int, list[int]] = {}
    for first, count in runs_of_steps(-(-channels // together), lanes, g.src):
        sizes.setdefault(min(count * together, channels - first * together), []).append(first)
    return [
        ConvTaps(TapGroup(pixels, size), tuple(first), positions)
        for pixels, positions in pattern.positions
        for size, first in sizes.items()
    ]


def runs_of_steps(steps: int, lanes: int, src: ImageLayout) -> list[tuple[int, int]]:
    """(first, count) of the groups of channels that one tap takes: some vectors at one distance."""
    blocks = range(0, steps, src.block) if lanes < src.block < steps else (0,)
    found = []
    for begin, end in pairwise((*blocks, steps)):
        for vectors in balanced(-(-(end - begin) // lanes), TAP_VECTORS):
            found.append((begin, min(vectors * lanes, end - begin)))
            begin += vectors * lanes
    return found


def tap_list(offsets: TapOffsets, groups: Sequence[ConvTaps]) -> Int64:
    """The tap list, as kernels walk it."""
    parts = [(np.array((taps.count,)), offsets.of(taps)) for taps in groups]
    return np.concatenate([np.zeros(0, np.int64), *(part for both in parts for part in both)])


def cycles_of(g: ConvGeometry, pattern: Pattern, engine: Engine) -> float:
    """Expected cycles of a tile: its multiplies, two instructions to widen a vector, the tree that adds lanes, three
    instructions for a sum, and what L1 does not hold, which some pixels after the other read."""
    tuning, pixels = engine.tuning, len(pattern.src_pixel_bytes)
    at_once, dot = most_at_once(engine.isa, g.oc, g.types), dot_class(g.types, engine.isa)
    vectors = -(-g.steps // lanes_of(engine.isa)) * g.positions_of_pixel
    apart = min(at_once, g.places)
    step = apart * step_cycles(at_once // apart, g.oc, 0, tuning.phases, dot)
    step += at_once * (g.src.element_bytes < GROUP_BYTES) + apart * g.oc * (g.types.weights_bytes < GROUP_BYTES)
    turns = -(-pixels // at_once)
    added = tuning.convolution.few_sum_cycles * at_once * g.oc
    return tuning.phases.call_cycles + turns * (vectors * step + added + streamed_cycles(g, at_once, tuning))


def streamed_cycles(g: ConvGeometry, pixels: int, tuning: Tuning) -> float:
    """Of so many pixels: all weights, and of src the next columns of every row, if the kernel reaches several; each
    unless L1 holds it from pixel to pixel, or from row to row."""
    conv_tuning, last, rows = tuning.convolution, g.axes[-1], prod(axis.positions_of_pixel for axis in g.axes[:-1])
    weights_bytes = g.steps * g.types.weights_bytes * g.oc * g.positions_of_pixel
    column_bytes = g.steps * g.src.element_bytes * rows
    weights = weights_bytes if weights_bytes > conv_tuning.near_panel_bytes else 0
    src = column_bytes * pixels * last.step if rows > 1 and column_bytes * last.i > conv_tuning.near_panel_bytes else 0
    return (conv_tuning.few_weights_stream_cycles * weights + conv_tuning.few_src_stream_cycles * src) / STREAM_BYTES
