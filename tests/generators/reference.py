"""What each kernel computes, as loops written from the tables in the generators' docstrings, and nothing else."""

import numpy as np

from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.functions.postops import OLD_DST, Operand
from tests.support import functions
from tests.support.arena import Doubles, Elements

LANES = {"avx2": 8, "avx2_vnni": 8, "avx512_core": 16, "avx512_core_vnni": 16, "avx512_core_bf16": 16}

Memory = dict[str, Elements]
Taps = list[list[tuple[int, int]]]  # for each group, (src, weights) byte offsets


def conv_tile(spec: ConvTileSpec, taps: Taps, memory: Memory) -> None:
    """dst[p, o] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o]).

    Where dst has room for all lanes, those behind the last channel become zero.
    """
    lanes, together = LANES[spec.isa], spec.types.group  # so many channels lie side by side for each output channel
    sums = start(spec, lanes, memory)
    for group, offsets in zip(spec.groups, taps, strict=True):
        for src, weights in offsets:
            for step in range(-(-group.channels // together)):
                count = min(together, group.channels - step * together)
                elements = spec.vectors * lanes * together
                row = memory["weights"].load(weights + step * spec.weights_row_bytes, elements).reshape(-1, together)
                for p in group.pixels:
                    at = spec.src_pixel_bytes[p] + src + step * spec.src_channel_bytes
                    sums[p] += row[:, :count] @ memory["src"].load(at, count)
    for p, pixel in enumerate(sums):
        for j, (at, count) in enumerate(pieces_of_dst(spec, lanes, p)):
            real = max(0, min(count, spec.channels - j * lanes))
            old = memory["dst"].load(at, count) if OLD_DST in operands_read(spec.post_ops) else None
            read = [o for o in operands_read(spec.post_ops) if o is not OLD_DST]
            operands = {o: operand(o, p, j, real, count, memory) for o in read}
            result = functions.apply(spec.post_ops, pixel[j * lanes :][:count], old, operands)
            result[real:] = 0  # padding
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


def operand(o: Operand, row: int, vector: int, real: int, count: int, memory: Memory) -> Doubles:
    """What a post-op reads for a vector of `count` lanes, of which the first `real` exist."""
    at, values = row * o.row_bytes + vector * o.vector_bytes, np.zeros(count)
    if real:
        values[:real] = memory[operand_name(o.argument)].load(at, 1 if o.element else real)
    return values


def operand_name(argument: int) -> str:
    return f"operand {argument}"


def mapped(spec: ElementwiseSpec, memory: Memory) -> None:
    """result[r, c] = chain(src[r, c]) for every result; a sum reads what dst held."""
    read = {o for result in spec.results for o in operands_read(result.chain)}
    for r in range(spec.rows):
        x = np.zeros(spec.elements)
        x[:] = memory["src"].load(r * spec.src.row_bytes, 1 if spec.src.element else spec.elements)
        old = memory["dst"].load(r * spec.dst_row_bytes, spec.elements) if OLD_DST in read else None
        operands = {o: operand(o, r, 0, spec.elements, spec.elements, memory) for o in read if o is not OLD_DST}
        for name, result in zip(spec.frame[1:], spec.results, strict=False):
            memory[name].store(r * result.row_bytes, functions.apply(result.chain, x, old, operands))
