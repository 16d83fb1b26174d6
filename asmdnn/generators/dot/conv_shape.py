"""Arguments, blocks and groups of taps of convolution tiles, for planners and generators; see conv.py."""

from collections.abc import Mapping
from functools import cache

from asmdnn.isa.dot import GROUP_BYTES, GroupPart, Types, dot_class
from asmdnn.isa.vectors import vector_class
from asmdnn.records import dataclass

SRC, WEIGHTS, BIAS, DST, TAPS, PREFETCHED = range(6)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps", "prefetched")


def vectors_of_dst(vectors: int) -> tuple[str, ...]:
    """Names of the arguments that point to the vectors of dst after the first one, where their distance is data."""
    return tuple(f"dst{j}" for j in range(1, vectors))


@cache
def blocks_of(types: Types, isa: str) -> Mapping[int, int]:
    """The most pixels for each number of vectors: accumulators, a weights row, and what a dot holds of the source and
    for itself must fit the registers."""
    dot, v = dot_class(types, isa), vector_class(isa)
    room = v.count - dot.spare_registers
    most = {n: min(p, room // n - dot.row_registers) for n, p in v.most_pixels.items()}
    return {n: p for n, p in most.items() if p > 0}


@dataclass(frozen=True, slots=True)
class TapGroup:
    """The taps that reach exactly `pixels` (indices into the tile) with `channels` input channels each.

    first: those before are not there: neither read nor multiplied.
    """

    pixels: tuple[int, ...]
    channels: int
    first: int = 0

    def parts(self, types: Types, is_dense: bool) -> list[GroupPart]:
        """The groups of channels that are multiplied, and which bytes of each exist; is_dense: they touch."""
        sizes, first = types.groups_of(self.channels), self.first * types.src.size_bytes
        cut = [is_dense and c > 0 and size < GROUP_BYTES for c, size in enumerate(sizes)]
        return [GroupPart(size, 0 if c else first, cut[c]) for c, size in enumerate(sizes)]
