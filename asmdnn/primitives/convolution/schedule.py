"""The plan of a direct convolution: kernel specs for every pattern, tap lists, and the records in their order.

Input channels are summed in one phase, or, where a weights panel would crowd L2, a range of them a phase: the first
starts from the bias, the others continue from dst.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import AHEAD, ARGUMENTS, TAPS
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.depths import Depth, make_depths
from asmdnn.planning.order import choose_order, lay_out
from asmdnn.planning.phase import NOTHING, Int64, Phase, Repeat, View, flushing, records_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.tuning import ConvolutionTuning
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.operands import TileOperand
from asmdnn.primitives.convolution.taps import Taps, make_tap_lists, rows_of_panel, taps_of
from asmdnn.primitives.convolution.tiles import Pattern, Tiles, make_tiles
from asmdnn.primitives.convolution.tiling import Tiling, ahead_lines, choose_depths
from asmdnn.primitives.engine import Engine

PREFETCHED = {"ahead": "weights"}  # what the argument points into
OF_WEIGHTS = ("weights", "ahead")  # what moves with the weights of an image
Repeats = tuple[Repeat, ...]
Cycles = npt.NDArray[np.int32]


def schedule_tiles(
    name: str,
    tensors: Mapping[str, MemoryDesc],
    operands: Mapping[str, TileOperand],
    g: ConvGeometry,
    tiling: Tiling,
    chain: Chain,
    engine: Engine,
) -> Plan:
    """The plan for resolved tensors, those of the chain among them; `g` may be the flattened geometry."""
    width, tuning = tiling.vectors * lanes_of(engine.isa), engine.tuning
    bias = "bias" in tensors and not chain.adds_bias
    placed = {f"operand {i}": place for i, place in enumerate(operands.values())}  # a bias may be one, too
    ranges = choose_depths(g, 4 * width, engine.l2_bytes, tuning) if chain.may_split else [(0, g.ic)]
    tiles = make_tiles(g, tiling.pixels, tiling.strip_rows)
    taps, starts = make_tap_lists(g, tiles.patterns, ranges, 4 * width)

    panels, each = -(-g.oc_stored // width), len(tiles.pattern)
    most = each if g.parts == 1 else prod(axis.all_pixels.size for axis in g.axes)  # the same for all parts
    images, rounds = images_of_rounds(g.mb, panels * most * g.groups, tuning.convolution)
    count = images * each
    panel_bytes = rows_of_panel(g) * 4 * width
    depth_share = (ranges[0][1] - ranges[0][0]) / g.ic  # ranges are equal but for the last
    src_bytes = 4 * images * g.ic * g.src_pixels
    read = (int(src_bytes * depth_share), int(panel_bytes * depth_share))
    order = choose_order(*read, panels, count, engine.l2_bytes, tuning.phases)
    panel_offsets = offsets_of_panels(g, panels, width, panel_bytes, int(panel_bytes * depth_share), placed)
    chunk = -(-count // order.chunks)
    share = shares_ahead(g, int(panel_bytes * depth_share), count, chunk)

    groups = offsets_of_groups(g, 4 * tensors["weights"].strides[0], placed)
    kernels = Kernels(g, tiling, engine, ahead_lines(4 * width, chunk, tuning.phases))
    made = []
    post_ops = chain.on_registers({operand: place.operand for operand, place in operands.items()})
    depths = list(make_depths(ranges, bias, post_ops))
    steps = offsets_of_images(g, placed)
    for begin, end, repeats in rounds_of(g.mb, images, rounds, steps):
        for d, depth in enumerate(depths):
            spec_of, cycles = kernels.of(depth, tiles.patterns, panels)
            pattern = np.tile(tiles.pattern, end - begin)
            ahead = share[: len(pattern)] + panel_bytes * depth.begin // g.ic
            rows = offsets_of_tiles(g, tiles, placed, begin, end)
            rows[:, 1 + TAPS] = starts[d, pattern]
            rows[:, 1 + AHEAD] += ahead
            laid_out = lay_out(rows, panel_offsets, pattern, spec_of, cycles, order.panels_at_once, chunk)
            made.append((for_groups(*laid_out, groups), d > 0, begin > 0 and d == 0, repeats))
    buffers = [PREFETCHED.get(name, name) for name in (*ARGUMENTS, *operands)]
    arguments = tuple(View(name) if name in tensors or name == "taps" else NOTHING for name in buffers)
    specs = tuple(kernels.specs)
    phases = (Phase(specs, arguments, *x, continues=goes_on, apart=apart, repeats=r) for x, goes_on, apart, r in made)
    return Plan(name, flushing(phases), tensors, {"taps": taps}, {}, ("dst",))


def shares_ahead(g: ConvGeometry, depth_bytes: int, tiles: int, chunk: int) -> Int64:
    """Where in the next panel's rows each tile begins to prefetch: those of a chunk, and all parts, bring all of it."""
    used, before = (depth_bytes * count // g.packed_positions for count in (g.positions, g.positions_before))
    return before + np.arange(tiles) % chunk * used // chunk


def images_of_rounds(images: int, records: int, tuning: ConvolutionTuning) -> tuple[int, int]:
    """(images of a round, rounds), of so many records an image: one round if they are few."""
    if images * records <= tuning.written_out:
        return images, 1
    together = max(1, tuning.round_records // records)
    return together, images // together


def rounds_of(images: int, together: int, rounds: int, steps: tuple[int, ...]) -> Iterator[tuple[int, int, Repeats]]:
    """(first image, end, repeats) of the rounds, and of the images that are left."""
    repeats = (Repeat(rounds, tuple(together * step for step in steps)),) if rounds > 1 else ()
    yield 0, together, repeats
    if rounds * together < images:
        yield rounds * together, images, ()


def offsets_of_images(g: ConvGeometry, operands: Mapping[str, TileOperand]) -> tuple[int, ...]:
    """How far every argument moves from an image to the next one."""
    moves = {"src": g.src.image_bytes, "dst": g.dst.image_bytes}
    moves |= dict.fromkeys(OF_WEIGHTS, g.weights_image_bytes)
    moves |= {name: place.layout.image_bytes for name, place in operands.items()}
    return tuple(moves.get(name, 0) for name in (*ARGUMENTS, *operands))


def offsets_of_tiles(g: ConvGeometry, tiles: Tiles, operands: Mapping[str, TileOperand], begin: int, end: int) -> Int64:
    """int64[tiles, 1 + arguments]: for every tile of some images, where its source, its first channel in dst, and the
    operands of post-ops begin."""
    image, pixels = np.arange(begin, end)[:, None], g.pixels_of_dst(tiles.first)
    columns = {
        "src": (g.src.start_bytes + image * g.src.image_bytes + tiles.src_bytes).ravel(),
        "dst": (g.dst.start_bytes + image * g.dst.image_bytes + tiles.dst_bytes).ravel(),
        **dict.fromkeys(OF_WEIGHTS, (image * g.weights_image_bytes + 0 * tiles.first).ravel()),
        **{name: place.of_pixels(image, pixels) for name, place in operands.items()},
    }
    return records_of((*ARGUMENTS, *operands), columns)


def offsets_of_panels(
    g: ConvGeometry,
    panels: int,
    width: int,
    panel_bytes: int,
    depth_bytes: int,
    operands: Mapping[str, TileOperand],
) -> Int64:
    """int64[panels, 1 + arguments]: what a panel adds to its tiles' offsets.

    Ahead of each panel lies the next one; of the last, the first one's next range of channels.
    """
    number = np.arange(panels)
    columns = {
        "weights": number * panel_bytes,
        "bias": 4 * width * number,
        "dst": np.array([g.dst.channel(int(c)) for c in width * number], np.int64),
        "ahead": (number + 1) % panels * panel_bytes + (number == panels - 1) * depth_bytes,
        **{name: place.of_channels(width * number) for name, place in operands.items()},
    }
    return records_of((*ARGUMENTS, *operands), columns)


def offsets_of_groups(g: ConvGeometry, group_bytes: int, operands: Mapping[str, TileOperand]) -> Int64:
    """int64[groups, 1 + arguments]: what a group of channels adds to all offsets; it has `group_bytes` of weights."""
    number = np.arange(g.groups)
    columns = {
        "src": np.array([g.src.channel(int(c)) for c in g.ic * number], np.int64),
        "weights": number * group_bytes,
        "bias": 4 * g.oc * number,
        "dst": np.array([g.dst.channel(int(c)) for c in g.oc * number], np.int64),
        "ahead": number * group_bytes,
        **{name: place.of_channels(g.oc * number) for name, place in operands.items()},
    }
    return records_of((*ARGUMENTS, *operands), columns)


def for_groups(records: Int64, cycles: Cycles, groups: Int64) -> tuple[Int64, Cycles]:
    """The records of one group, for all of them."""
    if len(groups) == 1:
        return records, cycles
    return (groups[:, None] + records).reshape(-1, records.shape[1]), np.tile(cycles, len(groups))


class Kernels:
    """The kernels of a tiled convolution, numbered as they come."""

    def __init__(self, g: ConvGeometry, tiling: Tiling, engine: Engine, lines: int) -> None:
        self.g, self.tiling, self.engine, self.lines = g, tiling, engine, lines
        self.lanes = lanes_of(engine.isa)
        self.specs: dict[ConvTileSpec, int] = {}

    def of(self, depth: Depth, patterns: tuple[Pattern, ...], panels: int) -> tuple[Int64, Int64]:
        """int64[panels, patterns]: the number of the spec, and the cycles that a call is expected to take."""
        g, lanes, tuning = self.g, self.lanes, self.engine.tuning.phases
        last = self.tiling.vectors * lanes * (panels - 1)
        numbers, cycles = (np.empty((panels, len(patterns)), np.int64) for _ in range(2))
        variants = [(slice(panels - 1, panels), last)] + [(slice(0, panels - 1), 0)] * (panels > 1)
        for p, pattern in enumerate(patterns):
            groups = taps_of(g, pattern, depth.begin, depth.end)
            for users, first in variants:
                spec = self.spec(depth, pattern, groups, first)
                numbers[users, p] = self.specs.setdefault(spec, len(self.specs))
                steps = (
                    t.count * t.group.channels * step_cycles(len(t.group.pixels), spec.vectors, lanes, tuning)
                    for t in groups
                )
                cycles[users, p] = tuning.call_cycles + sum(steps)
        return numbers, cycles

    def spec(self, depth: Depth, pattern: Pattern, groups: Sequence[Taps], first: int) -> ConvTileSpec:
        """Of the panel whose first channel is `first`."""
        g, lanes = self.g, self.lanes
        vectors = min(self.tiling.vectors, -(-(g.oc_stored - first) // lanes))
        real = min(vectors * lanes, g.oc - first)
        return ConvTileSpec(
            isa=self.engine.isa,
            vectors=vectors,
            channels=real,
            src_pixel_bytes=pattern.src_pixel_bytes,
            src_channel_bytes=g.src.channel_bytes,
            weights_row_bytes=4 * self.tiling.vectors * lanes,
            dst_pixel_bytes=g.dst.pixel_bytes,
            dst_vector_bytes=g.dst.channel(lanes),
            whole_vectors=g.oc_stored % lanes == 0 or real == vectors * lanes,
            groups=tuple(taps.group for taps in groups),
            bias=depth.bias,
            accumulate=depth.accumulate,
            post_ops=depth.post_ops,
            ahead_lines=self.lines,
        )
