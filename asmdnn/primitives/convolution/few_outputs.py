"""Convolution with few output channels: a heat map, an image, classes of pixels.  dst is planar.

A tile of direct convolution stores a whole vector of output channels, of which most would be padding.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf

import numpy as np

from asmdnn.generators.dot.few_outputs_shape import MOST_OUTPUTS
from asmdnn.isa.dot import f32_dot_level
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
from asmdnn.primitives.convolution.few_outputs_schedule import TAP_VECTORS, cycles_of, scheduled
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout, image_layout
from asmdnn.primitives.convolution.multiplied import check_f32, level_of_rows, types_of
from asmdnn.primitives.convolution.operands import broadcast_layout
from asmdnn.primitives.convolution.refusals import check_weights
from asmdnn.primitives.convolution.reordered import plans_between_reorders
from asmdnn.primitives.convolution.row_refusals import check_types
from asmdnn.primitives.convolution.taps import NEAR_BYTES
from asmdnn.primitives.convolution.tiles import Tiles, all_tiles
from asmdnn.primitives.convolution.tiling import ImageModel, choose_tiling, strip_heights
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import replace

NAME = "few_outputs"
AROUND = (  # the tensors that are copied into formats of the kernels, best first
    ("reorder", ("dst",)),
    ("pack", ("weights",)),
    ("pack+reorder", ("weights", "dst")),
    ("reorder", ("src", "dst")),
    ("pack+reorder", ("weights", "src", "dst")),
)


def plans(desc: ConvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a convolution with few output channels, best first; nothing for one with more."""
    if desc.dst.dims[1] <= MOST_OUTPUTS and not desc.has_groups:
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
    level_of_rows(types_of(desc), engine)  # types that no kernel multiplies are refused by name
    check_f32(desc.tensors())
    engine = at_level(engine, f32_dot_level(engine.isa))
    lanes = lanes_of(engine.isa)
    weights = weights_desc(desc.weights, lanes)
    check_weights(desc, weights)
    wanted = {"src": f"aBx{lanes}b", "bias": "a", "dst": "abx"}
    formats = {n: MemoryDesc(d.dims, d.dtype, wanted[n]) for n, d in desc.tensors().items() if d.is_any and n in wanted}
    desc = desc.with_formats({**formats, "weights": weights})
    if 0 in desc.dst.dims:
        return nothing(desc, attr, engine)
    src, dst = layouts_of(desc, lanes)
    g = whole(desc, src, dst).flattened()
    check_near(g, lanes)
    tiles = choose_tiles(g, lanes, engine.tuning.convolution.strip_pixels)
    check_worth(g, tiles, parts(desc, src, dst), engine)
    chain = chain_of(attr, desc.tensors(), scaled_dims(desc), channels_of_dst(desc))
    others = chain.operands(desc.dst)
    check_f32(others)
    read = {operand: readable(tensor, desc.dst) for operand, tensor in others.items()}
    tensors = {**desc.tensors(), **chain.arguments(read)}
    plan = scheduled(
        name=f"{NAME}:{engine.isa}", tensors=tensors, operands=read, g=g, tiles=tiles, chain=chain, engine=engine
    )
    return between_reorders(plan, chain.arguments(others), engine.tuning, isa=engine.isa)


def weights_desc(weights: MemoryDesc, lanes: int) -> MemoryDesc:
    """A vector of input channels for every output, at every kernel position: Ihwo8i and the like."""
    letters = "abcde"[: weights.ndims]
    return MemoryDesc(weights.dims, weights.dtype, f"B{letters[2:]}a{lanes}b")


def layouts_of(desc: ConvolutionDesc, lanes: int) -> tuple[ImageLayout, ImageLayout]:
    """Raises Refused unless kernels can address the tensors, whose formats are resolved."""
    check_types(desc)
    src, dst = image_layout(desc.src), image_layout(desc.dst)
    if src is None or dst is None:
        raise Refused("src and dst must be plain, or blocked once and by channels")
    if not src.is_dense and desc.src.dims[1] > 1:
        raise Refused(f"src {format_of(desc.src)} has its channels apart")
    if desc.src.inner_blocks and src.block % lanes:
        raise Refused(f"src {format_of(desc.src)} has blocks of {src.block} channels, a vector has {lanes}")
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
    """Of an image."""
    cost = np.array([cycles_of(g, pattern, engine) for pattern in tiles.patterns])
    return float(cost[tiles.pattern].sum())


def direct_cycles(parts: Sequence[ConvGeometry], engine: Engine) -> float:
    """Expected cycles of an image by direct convolutions, with a vector of output channels, if ports count."""
    cost = engine.tuning.convolution.narrow_cost
    narrow = cost * vector_cycles(parts, at_level(engine, NARROWEST)) if cost < 1 else inf
    return min(vector_cycles(parts, engine), narrow)


def vector_cycles(parts: Sequence[ConvGeometry], engine: Engine) -> float:
    """The same by vectors of a level."""
    lanes, tuning, total = lanes_of(engine.isa), engine.tuning, 0.0
    for part in parts:
        padded = replace(part, oc_stored=lanes)
        total += ImageModel(padded, engine.isa, tuning).cycles(choose_tiling(padded, engine.isa, (1,), tuning))
    return total


def check_worth(g: ConvGeometry, tiles: Tiles, parts: Sequence[ConvGeometry], engine: Engine) -> None:
    """Raises Refused where direct convolutions of the parts are expected to be faster."""
    own, other = expected_cycles(g, tiles, engine), direct_cycles(parts, engine)
    if own >= other:
        raise Refused(f"{own:.0f} cycles are expected of an image, {other:.0f} of direct convolution")
