"""Convolution with few output channels: a heat map, an image, classes of pixels.  dst is planar.

A tile of direct convolution stores a whole vector of output channels, of which most would be padding.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf

import numpy as np

from asmdnn.generators.dot.few_outputs_shape import MOST_OUTPUTS
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import F32, dot_level, types_of_words, unshifted_level
from asmdnn.isa.vectors import NARROWEST, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import chain_of
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, Desc
from asmdnn.primitives.convolution.direct import (
    Parts,
    channels_of_dst,
    make_geometry,
    nothing,
    one_part,
    scaled_dims,
)
from asmdnn.primitives.convolution.ends import TileEnds
from asmdnn.primitives.convolution.few_outputs_schedule import TAP_VECTORS, cycles_of, places_of, scheduled
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout, image_layout
from asmdnn.primitives.convolution.multiplied import types_of, types_of_rows
from asmdnn.primitives.convolution.operands import broadcast_layout
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.reordered import plans_between_reorders
from asmdnn.primitives.convolution.row_refusals import check_types
from asmdnn.primitives.convolution.taps import NEAR_BYTES
from asmdnn.primitives.convolution.tiles import Tiles, all_tiles
from asmdnn.primitives.convolution.tiling import ImageModel, choose_tiling, strip_heights
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import replace

NAME = "few_outputs"
FAR_BYTES = 8 << 20  # of an image of src, which comes from memory
MANY_BLOCKS = 16  # of channels, whose lines a tile reads one after the other: 512 to 8 channels at 112x112 took a Zen 5
FAR_LINE_CYCLES = 25  # 4.1 ms an image so, and 1.1 by direct tiles
AROUND = (  # the tensors that are copied into formats of the kernels, best first
    ("reorder", ("dst",)),
    ("pack", ("weights",)),
    ("pack+reorder", ("weights", "dst")),
    ("reorder", ("src", "dst")),
    ("pack+reorder", ("weights", "src", "dst")),
)


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a convolution with few output channels, best first; nothing for one with more."""
    yield from plans_as(desc, attr, engine, planned)


def plans_as(
    desc: Desc, attr: Attr, engine: Engine, planned: Callable[[Desc, Attr, Engine], Plan]
) -> Iterator[Plan | Refusal]:
    """The same of a convolution or a deconvolution.  Types and attributes that no format helps are refused once."""
    if desc.dst.dims[1] > MOST_OUTPUTS or desc.has_groups:
        return
    try:
        sums = types_of_rows(types_of(desc), engine).sums
        chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc), sums)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))
    else:
        yield from plans_between_reorders(NAME, desc, attr, engine, planned, AROUND)


def planned(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    return planned_as(desc, attr, engine, make_geometry, one_part)


def planned_as(
    desc: Desc,
    attr: Attr,
    engine: Engine,
    whole: Callable[[Desc, ImageLayout, ImageLayout], ConvGeometry],
    parts: Parts[Desc],
) -> Plan:
    """The same of a convolution or a deconvolution; `parts` are the direct convolutions that it is compared with."""
    types = types_of_rows(types_of(desc), engine)
    of_direct = at_level(engine, dot_level(types, engine.isa))
    engine = at_level(engine, unshifted_level(types, engine.isa))
    channels = lanes_of(engine.isa) * types.group
    weights = weights_desc(desc.weights, channels)
    check_weights(desc, weights)
    wanted = {"src": f"aBx{channels}b" if types_of(desc).group == 1 else "axb", "bias": "a", "dst": "abx"}
    formats = {n: MemoryDesc(d.dims, d.dtype, wanted[n]) for n, d in desc.tensors().items() if d.is_any and n in wanted}
    desc = desc.with_formats({**formats, "weights": weights})
    if 0 in desc.dst.dims:
        return nothing(desc, attr, engine)
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc), types.sums)
    src, dst = layouts_of(desc, channels)
    factors = desc.with_formats({"src": of_type(desc.src, types.src)})  # as it is multiplied, where it lies
    g = whole(factors, src, dst).flattened()
    lanes = lanes_of(engine.isa)
    check_near(g, lanes)
    tiles = choose_tiles(g, lanes, engine.tuning.convolution.strip_pixels)
    check_worth(expected_cycles(g, tiles, engine), direct_cycles(parts(factors, src, dst), of_direct))
    passed = chain.operands(desc.dst, RESULTS)
    read = {operand: readable(tensor, desc.dst) for operand, tensor in passed.items()}
    ends = TileEnds(chain, passed, read, places_of(read, desc.dst))
    plan = scheduled(f"{NAME}:{engine.isa}", {**desc.tensors(), **ends.arguments}, ends, g, tiles, engine)
    return ends.around(plan, engine)


def weights_desc(weights: MemoryDesc, channels: int) -> MemoryDesc:
    """A vector of so many input channels for every output, at every kernel position: Ihwo8i and the like."""
    letters = "abcde"[: weights.ndims]
    return MemoryDesc(weights.dims, weights.dtype, f"B{letters[2:]}a{channels}b")


def layouts_of(desc: ConvolutionDesc, channels: int) -> tuple[ImageLayout, ImageLayout]:
    """Raises Refused unless kernels can address the tensors, whose formats are resolved; of src vectors of channels."""
    check_types(desc)
    src, dst = image_layout(desc.src), image_layout(desc.dst)
    if src is None or dst is None:
        raise Refused("src and dst must be plain, or blocked once and by channels")
    if not src.is_dense and desc.src.dims[1] > 1:
        raise Refused(f"src {format_of(desc.src)} has its channels apart")
    if desc.src.inner_blocks and src.block % channels:
        raise Refused(f"src {format_of(desc.src)} has blocks of {src.block} channels, a vector has {channels}")
    if desc.dst.inner_blocks or (dst.pixel_bytes != dst.element_bytes and max(desc.dst.dims[2:]) > 1):
        raise Refused(f"dst {format_of(desc.dst)} has its pixels apart")
    return src, dst


def check_near(g: ConvGeometry, lanes: int) -> None:
    """Raises Refused."""
    far = g.src.channel(TAP_VECTORS * lanes), MOST_OUTPUTS * g.dst.channel(1), lanes * g.axes[-1].s * g.src.pixel_bytes
    if max(far) > NEAR_BYTES:
        raise Refused("pixels or channels lie too far apart for a tile")


def choose_tiles(g: ConvGeometry, lanes: int, most_pixels: int) -> Tiles:
    """Rows one at a time, or in strips as tall as may be: the fewest tiles."""
    heights = strip_heights(g, most_pixels)
    return min((all_tiles(g, lanes, rows) for rows in {1, heights[-1]}), key=lambda tiles: len(tiles.first))


def readable(desc: MemoryDesc, dst: MemoryDesc) -> MemoryDesc:
    """`desc`, or the format of a copy that tiles can address: dense pixels, or one element for all."""
    layout = broadcast_layout(desc, dst.dims[2:])
    if layout is not None and not desc.inner_blocks and layout.rows_touch(dst.dims[2:]):
        near = MOST_OUTPUTS * layout.channel_bytes <= NEAR_BYTES
        if near and layout.pixel_bytes in (0, layout.element_bytes):
            return desc
    images, channels, *pixels = desc.dims
    return MemoryDesc((images, channels, *(dst.dims[2:] if max(pixels) > 1 else pixels)), desc.dtype, "abx")


def expected_cycles(g: ConvGeometry, tiles: Tiles, engine: Engine) -> float:
    """Of an image; at least those of its lines, where these are in memory and more streams than a CPU follows."""
    cost = np.array([cycles_of(g, pattern, engine) for pattern in tiles.patterns])
    blocks = -(-g.ic // g.src.block)
    far = g.src.image_bytes >= FAR_BYTES and blocks >= MANY_BLOCKS
    return max(float(cost[tiles.pattern].sum()), far * FAR_LINE_CYCLES * blocks * g.src_pixels)


def direct_cycles(parts: Sequence[ConvGeometry], engine: Engine) -> float:
    """Expected cycles of an image by direct convolutions, with a vector of output channels, if ports count."""
    cost = engine.tuning.convolution.narrow_cost
    may_be_narrow = cost < 1 and parts[0].types == F32
    narrow = cost * vector_cycles(parts, at_level(engine, NARROWEST)) if may_be_narrow else inf
    return min(vector_cycles(parts, engine), narrow)


def vector_cycles(parts: Sequence[ConvGeometry], engine: Engine) -> float:
    """The same by vectors of a level."""
    lanes, tuning, total = lanes_of(engine.isa), engine.tuning, 0.0
    for part in parts:
        padded = replace(part, oc_stored=lanes, types=types_of_words(part.types, engine.isa) or part.types)
        model = ImageModel(padded, engine.isa, tuning.convolution, tuning.phases)
        total += model.cycles(choose_tiling(padded, engine.isa, (1,), tuning))
    return total


def check_worth(own: float, other: float) -> None:
    """Raises Refused where direct convolutions are expected to take fewer cycles of an image."""
    if own >= other:
        raise Refused(f"{own:.0f} cycles are expected of an image, {other:.0f} of direct convolution")
