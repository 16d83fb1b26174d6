"""The plan of a direct convolution: kernel specs for every pattern, tap lists, and the records in their order.

Input channels are summed in one phase, or, where a weights panel would crowd L2, a range of them a phase: the first
starts from the bias, the others continue from dst.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asmdnn.generators.conv import ARGUMENTS, ConvTileSpec
from asmdnn.generators.postops import PostOp, SumOp
from asmdnn.isa.vector import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attr import Attr
from asmdnn.primitives.conv_geometry import ConvGeometry
from asmdnn.primitives.conv_taps import make_tap_lists, panel_rows, tap_groups
from asmdnn.primitives.conv_tiles import Int64, Pattern, Tiles, make_tiles
from asmdnn.primitives.conv_tiling import CALL_CYCLES, Tiling, ahead_lines, choose_depths, choose_order, step_cycles
from asmdnn.primitives.engine import Engine
from asmdnn.runtime.plan import Phase, Plan

BUFFERS = (*ARGUMENTS[:-1], "weights")  # what is prefetched ahead is weights


@dataclass(frozen=True, slots=True)
class Depth:
    """A range of input channels, and what its kernels do before and after summing it."""

    begin: int
    end: int
    bias: bool
    accumulate: bool
    post_ops: tuple[PostOp, ...]


def schedule_tiles(
    name: str, tensors: Mapping[str, MemoryDesc], g: ConvGeometry, tiling: Tiling, attr: Attr, engine: Engine
) -> Plan:
    """The plan for resolved tensors; `g` may be the flattened geometry."""
    row_bytes = 4 * lanes_of(engine.isa) * tiling.vectors
    ranges = choose_depths(g, row_bytes, engine.l2_bytes) if may_split(attr.on_registers()) else [(0, g.ic)]
    depths = list(make_depths(ranges, "bias" in tensors, attr.on_registers()))
    tiles = make_tiles(g, tiling.pixels, tiling.strip_rows)
    taps, starts = make_tap_lists(g, tiles.patterns, ranges, row_bytes)
    specs: dict[ConvTileSpec, int] = {}
    phases = [make_phase(g, tiling, tiles, depth, starts[d], specs, engine) for d, depth in enumerate(depths)]
    return Plan(name, tuple(specs), tuple(phases), tensors, {"taps": taps}, {}, ("dst",))


def may_split(chain: tuple[PostOp, ...]) -> bool:
    """Whether dst may hold partial sums: not if a post-op behind the first one reads what it held before."""
    return not any(isinstance(op, SumOp) for op in chain[1:])


def make_depths(ranges: list[tuple[int, int]], bias: bool, chain: tuple[PostOp, ...]) -> Iterator[Depth]:
    """A leading sum is added with the first range, before dst is overwritten; all else happens to the whole sum."""
    first = 1 if len(ranges) > 1 and chain and isinstance(chain[0], SumOp) else 0
    for i, (begin, end) in enumerate(ranges):
        is_first, is_last = i == 0, i == len(ranges) - 1
        post_ops = chain if is_first and is_last else chain[:first] if is_first else chain[first:] if is_last else ()
        yield Depth(begin, end, bias and is_first, not is_first, post_ops)


def make_phase(
    g: ConvGeometry,
    tiling: Tiling,
    tiles: Tiles,
    depth: Depth,
    taps_bytes: Int64,
    specs: dict[ConvTileSpec, int],
    engine: Engine,
) -> Phase:
    """All tiles of all images and panels for a range of input channels; new kernels are added to `specs`."""
    width = tiling.vectors * lanes_of(engine.isa)
    panels, count = -(-g.oc_stored // width), g.mb * len(tiles.pattern)
    panel_bytes = panel_rows(g) * 4 * width
    depth_bytes = panel_bytes * (depth.end - depth.begin) // g.ic
    order = choose_order(
        4 * g.mb * g.ih * g.iw * (depth.end - depth.begin), depth_bytes, panels, count, engine.l2_bytes
    )
    lines = ahead_lines(4 * width, count // order.chunks)
    spec_of, cycles = make_specs(g, tiles.patterns, tiling, panels, depth, lines, engine.isa, specs)

    image = np.arange(g.mb)[:, None]
    pattern = np.broadcast_to(tiles.pattern, (g.mb, len(tiles.pattern))).ravel()
    src = (g.src.start_bytes + image * g.src.image_bytes + tiles.src_bytes).ravel()
    dst = (g.dst.start_bytes + image * g.dst.image_bytes + tiles.dst_bytes).ravel()
    channel = width * np.arange(panels)[:, None]
    weights = panel_bytes * np.arange(panels)[:, None]
    dst_channel = np.array([[g.dst.channel(int(c))] for c in channel[:, 0]])
    ahead = np.roll(weights, -1) + panel_bytes * depth.begin // g.ic + depth_bytes * (channel == channel[-1])

    records = np.empty((panels * count, 1 + len(ARGUMENTS)), np.int64)
    cost = np.empty(panels * count, np.int64)
    for rows, p, t in blocks(panels, count, order.panels_at_once, order.chunks):
        block = records[rows].reshape(p.stop - p.start, t.stop - t.start, -1)
        share = depth_bytes * np.arange(t.stop - t.start) // (t.stop - t.start)
        for column, values in enumerate(
            (
                spec_of[p][:, pattern[t]],
                src[t],
                weights[p],
                4 * channel[p],
                dst_channel[p] + dst[t],
                taps_bytes[pattern[t]],
                ahead[p] + share,
            )
        ):
            block[..., column] = values
        cost[rows].reshape(block.shape[:2])[:] = cycles[p][:, pattern[t]]
    return Phase(BUFFERS, records, cost)


def blocks(panels: int, tiles: int, panels_at_once: int, chunks: int) -> Iterator[tuple[slice, slice, slice]]:
    """Slices of records, of panels and of tiles: a chunk of tiles for a group of panels after the other."""
    at = 0
    bounds = [tiles * i // chunks for i in range(chunks + 1)]
    for first in range(0, panels, panels_at_once):
        p = slice(first, min(panels, first + panels_at_once))
        for begin, end in pairwise(bounds):
            size = (p.stop - p.start) * (end - begin)
            yield slice(at, at + size), p, slice(begin, end)
            at += size


def make_specs(
    g: ConvGeometry,
    patterns: tuple[Pattern, ...],
    tiling: Tiling,
    panels: int,
    depth: Depth,
    lines: int,
    isa: str,
    specs: dict[ConvTileSpec, int],
) -> tuple[Int64, Int64]:
    """int64[panels, patterns]: the number of the spec in `specs`, and the cycles that a call is expected to take."""
    lanes = lanes_of(isa)
    width = tiling.vectors * lanes
    spec_of, cycles = (np.empty((panels, len(patterns)), np.int64) for _ in range(2))
    variants = [(slice(panels - 1, panels), width * (panels - 1))] + [(slice(0, panels - 1), 0)] * (panels > 1)
    for p, pattern in enumerate(patterns):
        groups = [(group, len(taps)) for group, taps in tap_groups(g, pattern, depth.begin, depth.end)]
        for users, first in variants:
            vectors = min(tiling.vectors, -(-(g.oc_stored - first) // lanes))
            real = min(vectors * lanes, g.oc - first)
            whole = g.oc_stored % lanes == 0
            spec = ConvTileSpec(
                isa,
                vectors,
                real if depth.bias or not whole else vectors * lanes,
                pattern.src_pixel_bytes,
                g.src.channel_bytes,
                4 * width,
                g.dst.pixel_bytes,
                g.dst.channel(lanes),
                whole or real == vectors * lanes,
                tuple(group for group, _ in groups),
                depth.bias,
                depth.accumulate,
                depth.post_ops,
                lines,
            )
            spec_of[users, p] = specs.setdefault(spec, len(specs))
            cycles[users, p] = CALL_CYCLES + sum(
                n * group.channels * step_cycles(len(group.pixels), vectors) for group, n in groups
            )
    return spec_of, cycles
