"""Arguments, blocks and groups of taps of convolution tiles, for planners and generators; see conv.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from asmdnn.isa.dot import DOTS, Types, dot_level
from asmdnn.isa.levels import AVX2, AVX512_CORE, isa_of
from asmdnn.isa.vectors import VECTORS

SRC, WEIGHTS, BIAS, DST, TAPS, AHEAD = range(6)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps", "ahead")
# The most pixels for each number of vectors, if registers allow.
BLOCKS = {AVX2.vector_bytes: {1: 12, 2: 6, 3: 4}, AVX512_CORE.vector_bytes: {1: 24, 2: 14, 3: 9, 4: 6}}


def vectors_of_dst(vectors: int) -> tuple[str, ...]:
    """Names of the arguments that point to the vectors of dst behind the first one, where their distance is data."""
    return tuple(f"dst{j}" for j in range(1, vectors))


@cache
def blocks_of(types: Types, isa: str) -> Mapping[int, int]:
    """The most pixels for each number of vectors: accumulators, a weights row, and what a dot holds of the source and
    for itself must fit the registers."""
    dot, v = DOTS[types, isa_of(dot_level(types, isa))], VECTORS[isa]
    room = v.count - dot.spare_registers
    most = {n: min(p, room // n - dot.row_registers) for n, p in BLOCKS[v.bytes].items()}
    return {n: p for n, p in most.items() if p > 0}


@dataclass(frozen=True, slots=True)
class TapGroup:
    """The taps that reach exactly `pixels` (indices into the tile) with `channels` input channels each."""

    pixels: tuple[int, ...]
    channels: int
