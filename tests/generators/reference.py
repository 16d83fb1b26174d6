"""What each kernel computes, as loops written from the tables in the generators' docstrings, and nothing else."""

from collections.abc import Sequence

import numpy as np

from asmdnn.generators.conv import ConvTileSpec
from asmdnn.generators.postops import PostOp, SumOp
from tests.support.arena import Doubles, Elements

LANES = {"avx2": 8, "avx512_core": 16}

Memory = dict[str, Elements]
Taps = list[list[tuple[int, int]]]  # for each group, (src, weights) byte offsets


def conv_tile(spec: ConvTileSpec, taps: Taps, memory: Memory) -> None:
    """dst[p, o] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o]).

    Where dst has room for all lanes, those behind the last channel become zero.
    """
    lanes = LANES[spec.isa]
    sums = start(spec, lanes, memory)
    for group, offsets in zip(spec.groups, taps, strict=True):
        for src, weights in offsets:
            for c in range(group.channels):
                row = memory["weights"].load(weights + c * spec.weights_row_bytes, spec.vectors * lanes)
                for p in group.pixels:
                    at = spec.src_pixel_bytes[p] + src + c * spec.src_channel_bytes
                    sums[p] += memory["src"].load(at, 1) * row
    for p, pixel in enumerate(sums):
        for j, (at, count) in enumerate(pieces_of_dst(spec, lanes, p)):
            old = memory["dst"].load(at, count) if any(isinstance(op, SumOp) for op in spec.post_ops) else None
            result = post_ops(spec.post_ops, pixel[j * lanes :][:count], old)
            result[max(0, spec.channels - j * lanes) :] = 0  # padding
            memory["dst"].store(at, result)


def start(spec: ConvTileSpec, lanes: int, memory: Memory) -> Doubles:
    """The accumulators before the first tap: dst, bias, or zero; [pixels, vectors * lanes]."""
    sums = np.zeros((len(spec.src_pixel_bytes), spec.vectors * lanes))
    if spec.accumulate:
        for p, pixel in enumerate(sums):
            for j, (at, count) in enumerate(pieces_of_dst(spec, lanes, p)):
                pixel[j * lanes :][:count] = memory["dst"].load(at, count)
    elif spec.bias:
        sums[:, : spec.channels] = memory["bias"].load(0, spec.channels)
    return sums


def pieces_of_dst(spec: ConvTileSpec, lanes: int, p: int) -> list[tuple[int, int]]:
    """(byte offset, elements) of every channel vector of a pixel, as far as dst has them."""
    stored = spec.vectors * lanes if spec.whole_vectors else spec.channels
    return [
        (p * spec.dst_pixel_bytes + j * spec.dst_vector_bytes, min(lanes, stored - j * lanes))
        for j in range(spec.vectors)
        if stored > j * lanes
    ]


def post_ops(chain: Sequence[PostOp], x: Doubles, old: Doubles | None) -> Doubles:
    for op in chain:
        if isinstance(op, SumOp):
            assert old is not None
            x = x + np.float32(op.scale) * old
        else:
            x = np.where(x > 0, x, np.float32(op.alpha) * x)
    return x
