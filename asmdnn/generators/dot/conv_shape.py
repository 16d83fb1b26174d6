"""Arguments, blocks and groups of taps of convolution tiles, for planners and generators; see conv.py."""

from dataclasses import dataclass

SRC, WEIGHTS, BIAS, DST, TAPS, AHEAD = range(6)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps", "ahead")
# The most pixels for each number of vectors: accumulators, a weights row and a broadcast register must fit the file.
BLOCKS = {"avx2": {1: 12, 2: 6, 3: 4}, "avx512_core": {1: 24, 2: 14, 3: 9, 4: 6}}


@dataclass(frozen=True, slots=True)
class TapGroup:
    """The taps that reach exactly `pixels` (indices into the tile) with `channels` input channels each."""

    pixels: tuple[int, ...]
    channels: int
