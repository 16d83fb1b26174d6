"""The kernels of a tiled convolution, one for every pattern, range of channels and kind of panel; and their cycles.

They know no image: what they depend on is written down in `KernelSizes` and `TilePattern`, and images that have these
in common, as most shapes of a network do, have the same tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.isa.dot import Types, dot_class
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import Depth
from asmdnn.planning.phase import Int64
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.primitives.convolution.geometry import ConvGeometry
from asmdnn.primitives.convolution.streaming import is_past_caches, writes_lines
from asmdnn.primitives.convolution.taps import ConvTaps, DepthTaps
from asmdnn.primitives.convolution.tiling import Tiling
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

HELD_SHARE = 0.75  # of L2, for weights that stay there while src passes,
HELD_BLOCKS = 8  # of its channels, so that its lines come from many places
MOST_TABLES: Final = 256  # that are known
Table = tuple[Int64, Int64]  # int64[panels, patterns]: numbers of kernels, and their cycles


@dataclass(frozen=True, slots=True)
class TileTypes:
    """Of dst, and of the operands of post-ops, () if all are f32; and the argument for dst's second vector, 0 if its
    vectors touch."""

    dst: DataType
    operands: tuple[DataType, ...]
    dst_argument: int


@dataclass(frozen=True, slots=True)
class KernelSizes:
    """What all kernels of a convolution depend on.

    vectors: of a panel; lines: to prefetch for every tap.  streams: whether tiles that end a sum may store past the
    caches; halves: whether half a vector is multiplied, which takes less time than a whole one.
    """

    isa: str
    vectors: int
    lines: int
    oc: int
    oc_stored: int
    steps: int
    src_channel_bytes: int
    dst_pixel_bytes: int
    dst_element_bytes: int
    multiplied: Types
    types: TileTypes
    streams: bool
    prefetches_dst: bool
    halves: bool
    tuning: PhaseTuning


class TilePattern(NamedTuple):
    """What the kernels of a pattern depend on.

    prefetch_bytes: how far after a tile the source lies that is prefetched with it.  starts: where the sums of pixels
    start, () if all alike.
    """

    src_pixel_bytes: tuple[int, ...]
    prefetch_bytes: int
    starts: tuple[int, ...]


def sizes_of(g: ConvGeometry, tiling: Tiling, engine: Engine, lines: int, types: TileTypes) -> KernelSizes:
    return KernelSizes(
        isa=engine.isa,
        vectors=tiling.vectors,
        lines=lines,
        oc=g.oc,
        oc_stored=g.oc_stored,
        steps=g.steps,
        src_channel_bytes=g.src.channel_bytes,
        dst_pixel_bytes=g.dst.pixel_bytes,
        dst_element_bytes=g.dst.element_bytes,
        multiplied=g.types,
        types=types,
        streams=is_past_caches(g, engine.tuning.convolution) and writes_lines(g, tiling.vectors, types.dst, engine.isa),
        prefetches_dst=prefetches_dst(g, engine),
        halves=dot_class(g.types, engine.isa).has_halves and engine.tuning.convolution.narrow_cost < 1,
        tuning=engine.tuning.phases,
    )


@lru_cache(MOST_TABLES)
def tables_of(
    sizes: KernelSizes,
    depths: tuple[Depth, ...],
    patterns: tuple[TilePattern, ...],
    taps: tuple[DepthTaps, ...],
    panels: int,
) -> tuple[tuple[ConvTileSpec, ...], Sequence[Table]]:
    """The kernels, and a table for each depth, whose taps are given; the same object where depths differ by their
    channels' places alone, as most of many do."""
    kernels = TileKernels(sizes)
    found: dict[tuple[object, ...], Table] = {}
    tables = []
    for depth, of_depth in zip(depths, taps, strict=True):
        key = depth.bias, depth.accumulate, depth.post_ops, kernels.result(depth), id(of_depth.patterns)
        if key not in found:
            found[key] = kernels.of(depth, patterns, of_depth.patterns, panels)
        tables.append(found[key])
    return tuple(kernels.specs), tables


class TileKernels:
    """The kernels of a tiled convolution, numbered as they come."""

    def __init__(self, sizes: KernelSizes) -> None:
        self.sizes, self.lanes = sizes, lanes_of(sizes.isa)
        self.dot = dot_class(sizes.multiplied, sizes.isa)
        self.specs: dict[ConvTileSpec, int] = {}
        self.cycles: dict[tuple[int, int], float] = {}  # of a step of so many pixels and vectors

    def of(
        self, depth: Depth, patterns: Sequence[TilePattern], taps: Sequence[Sequence[ConvTaps]], panels: int
    ) -> Table:
        """For every panel and pattern, whose taps are given: the number of the spec, and the cycles that a call is
        expected to take."""
        numbers, cycles = (np.empty((panels, len(patterns)), np.int64) for _ in range(2))
        last = self.sizes.vectors * self.lanes * (panels - 1)
        variants = {self.channels_from(last): slice(panels - 1, panels)}
        if panels > 1:
            others = self.channels_from(0)
            variants[others] = slice(0, panels if others in variants else panels - 1)
        call_cycles = self.sizes.tuning.call_cycles
        for p, (pattern, groups) in enumerate(zip(patterns, taps, strict=True)):
            own = of_pattern(depth, pattern, groups)
            for (vectors, channels), users in variants.items():
                spec = self.spec(depth, own, vectors, channels)
                numbers[users, p] = self.specs.setdefault(spec, len(self.specs))
                sums = sum(self.steps_of(groups, vectors)) + self.ends_of(pattern, groups, vectors)
                cycles[users, p] = call_cycles + sums
        for table in (numbers, cycles):
            table.setflags(write=False)
        return numbers, cycles

    def channels_from(self, first: int) -> tuple[int, int]:
        """Of the panel whose first channel is `first`: vectors, and real channels."""
        vectors = min(self.sizes.vectors, -(-(self.sizes.oc_stored - first) // self.lanes))
        return vectors, min(vectors * self.lanes, self.sizes.oc - first)

    def steps_of(self, groups: Sequence[ConvTaps], vectors: int) -> Iterator[float]:
        """The cycles that the taps of each group are expected to take."""
        tuning, types = self.sizes.tuning, self.sizes.multiplied
        for taps in groups:
            pixels, steps = len(taps.group.pixels), taps.count * -(-taps.group.channels // types.group)
            if (pixels, vectors) not in self.cycles:
                self.cycles[pixels, vectors] = step_cycles(pixels, vectors, self.lanes, tuning, self.dot)
            yield steps * self.cycles[pixels, vectors]

    def ends_of(self, pattern: TilePattern, groups: Sequence[ConvTaps], vectors: int) -> float:
        """The cycles that ends of runs are expected to take."""
        types = self.sizes.multiplied
        if types.run is None:
            return 0
        steps = sum(taps.count * -(-taps.group.channels // types.group) for taps in groups)
        return self.dot.end_cycles(len(pattern.src_pixel_bytes), vectors, steps)

    def spec(self, depth: Depth, pattern: Mapping[str, Any], vectors: int, channels: int) -> ConvTileSpec:
        """Of so many vectors, with so many real channels."""
        sizes, lanes = self.sizes, self.lanes
        reads_dst = depth.accumulate or OLD_DST in operands_read(depth.post_ops)
        apart = sizes.types.dst_argument if vectors > 1 else 0  # one vector serves at any distance
        return ConvTileSpec(
            isa=sizes.isa,
            vectors=vectors,
            channels=channels,
            src_channel_bytes=sizes.src_channel_bytes,
            weights_row_bytes=sizes.multiplied.weights_bytes * sizes.vectors * lanes,
            dst_pixel_bytes=sizes.dst_pixel_bytes,
            dst_vector_bytes=sizes.dst_element_bytes * lanes if vectors > 1 and not apart else 0,
            whole_vectors=sizes.oc_stored % lanes == 0 or channels == vectors * lanes,
            bias=depth.bias,
            accumulate=depth.accumulate,
            post_ops=depth.post_ops,
            prefetch_lines=sizes.lines,
            prefetches_dst=sizes.prefetches_dst,
            streams=sizes.streams and depth.end == sizes.steps and not reads_dst,
            types=sizes.multiplied,
            dst=self.result(depth),
            operand_types=sizes.types.operands if depth.post_ops else (),
            dst_argument=apart,
            half_last=sizes.halves and 0 < channels - (vectors - 1) * lanes <= lanes // 2,
            **pattern,
        )

    def result(self, depth: Depth) -> DataType | None:
        """What a tile stores, where that is not its sums, which partial sums are, nor f32 after post-ops."""
        sizes = self.sizes
        plain = f32 if depth.post_ops else sizes.multiplied.sums
        return sizes.types.dst if depth.end == sizes.steps and sizes.types.dst != plain else None


def of_pattern(depth: Depth, pattern: TilePattern, groups: Sequence[ConvTaps]) -> dict[str, Any]:
    """The fields of specs that depend on it."""
    return {
        "src_pixel_bytes": pattern.src_pixel_bytes,
        "groups": tuple([taps.group for taps in groups]),
        "src_prefetch_bytes": pattern.prefetch_bytes,
        "starts": pattern.starts if depth.bias else (),
    }


def prefetches_dst(g: ConvGeometry, engine: Engine) -> bool:
    """Whether dst comes from so far that stores would wait for its lines: tiles write a few of each pixel, so that the
    CPU makes no stream of them."""
    far = engine.tuning.convolution.dst_ahead_l2 * engine.l2_bytes
    return g.dst.pixel_bytes > 2 * LINE_BYTES and g.mb * g.dst.image_bytes >= far


def src_prefetch_bytes(g: ConvGeometry, engine: Engine, pixels: int) -> int:
    """How far after a tile of so many pixels the source lies that is worth to be prefetched with it: where channels are
    in blocks, a tile reads a few lines here and there, of which the CPU makes no stream.

    It is that of the next tile; with strides that of the tile below, as a row's end is followed by unused rows.  Where
    all channels of a pixel follow one another, each pixel is a stream, which the CPU has too few of: then it is a
    little further in each.
    """
    tuning, lanes = engine.tuning.convolution, lanes_of(engine.isa)
    src_bytes, weights_bytes = g.mb * g.src.image_bytes, g.types.weights_bytes * g.ic * g.oc_stored
    sampled = all(axis.is_sampled for axis in g.axes)
    skips = not sampled and any(axis.s > 1 for axis in g.axes) and src_bytes > tuning.windows_ahead_bytes
    if g.src.block > lanes and g.src.pixel_bytes > tuning.pixel_ahead_bytes:
        is_far = src_bytes >= tuning.far_pixels_l2 * engine.l2_bytes
        return tuning.pixel_ahead_bytes if skips or (sampled and is_far) else 0
    few = g.src.block == lanes < g.steps
    if not few or g.src.pixel_bytes != g.src.element_bytes * g.src.block:
        return 0
    is_held = g.steps >= HELD_BLOCKS * lanes and weights_bytes <= HELD_SHARE * engine.l2_bytes
    if all(axis.is_pointwise for axis in g.axes):
        least = min(tuning.src_ahead_bytes, tuning.held_ahead_bytes) if is_held else tuning.src_ahead_bytes
        return pixels * g.src.pixel_bytes if src_bytes > least else 0
    least = min(tuning.strided_ahead_bytes, tuning.held_strided_bytes) if is_held else tuning.strided_ahead_bytes
    if len(g.axes) < 2 or not (skips or (sampled and src_bytes > least)):
        return 0
    return g.axes[-2].s * g.src.axis_bytes[-2]
