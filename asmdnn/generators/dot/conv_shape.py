"""The shape of a convolution tile: what its code depends on, its name, and the bytes that it touches; see conv.py."""

from dataclasses import dataclass
from zlib import crc32

from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.typed import text_of
from asmdnn.generators.functions.chain import names_of_operands, operands_read, words_of
from asmdnn.generators.functions.postops import OLD_DST, Operand, PostOp
from asmdnn.isa.dot import F32, GROUP_BYTES, Types
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import DataType, f32

SRC, WEIGHTS, BIAS, DST, TAPS, AHEAD = range(6)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps", "ahead")
# The most pixels for each number of vectors: accumulators, a weights row and a broadcast register must fit the file.
BLOCKS = {"avx2": {1: 12, 2: 6, 3: 4}, "avx512_core": {1: 24, 2: 14, 3: 9, 4: 6}}


@dataclass(frozen=True, slots=True)
class TapGroup:
    """The taps that reach exactly `pixels` (indices into the tile) with `channels` input channels each."""

    pixels: tuple[int, ...]
    channels: int


@dataclass(frozen=True, slots=True, repr=False)
class ConvTile:
    """Everything that the bytes of a tile kernel depend on; sizes in bytes where they say so.

    src_channel_bytes and weights_row_bytes are the distances of groups of input channels, single ones in f32 only.
    """

    isa: str
    vectors: int  # of output channels
    channels: int  # real ones among them, the others are zero padding; bias has no more
    src_pixel_bytes: tuple[int, ...]
    src_channel_bytes: int
    weights_row_bytes: int
    dst_pixel_bytes: int
    dst_vector_bytes: int
    whole_vectors: bool  # dst has room, zero padding, for all lanes
    groups: tuple[TapGroup, ...]
    bias: bool = False
    accumulate: bool = False  # start from dst, not from zero or bias
    post_ops: tuple[PostOp, ...] = ()
    ahead_lines: int = 0  # cache lines to prefetch for every tap
    types: Types = F32

    def __repr__(self) -> str:
        return text_of(self)

    @property
    def dst_type(self) -> DataType:
        """Post-ops take f32, and leave it."""
        return f32 if self.post_ops else self.types.sums

    @property
    def name(self) -> str:
        """Block, what happens before and after the sum, and a checksum of the whole spec for the geometry."""
        words = [f"{len(self.src_pixel_bytes)}x{self.channels}"]
        words += ["bias"] * self.bias + ["acc"] * self.accumulate + words_of(self.post_ops)
        words += ["ahead"] * bool(self.ahead_lines) + [f"{crc32(repr(self).encode()):08x}"]
        return f"conv_{self.types}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return (*ARGUMENTS, *names_of_operands(self.post_ops))

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        lanes = lanes_of(self.isa)
        stored = self.vectors * lanes if self.whole_vectors else self.channels
        pixels = range(len(self.src_pixel_bytes))
        starts = [
            (j, p * self.dst_pixel_bytes + j * self.dst_vector_bytes) for j in range(self.vectors) for p in pixels
        ]
        dst = tuple(
            Range(DST, begin, begin + self.dst_type.size_bytes * min(lanes, stored - j * lanes)) for j, begin in starts
        )
        operands = operands_read(self.post_ops)
        reads_dst = self.accumulate or OLD_DST in operands
        bias = Range(BIAS, 0, self.types.sums.size_bytes * self.channels)
        taps = TapList(TAPS, (SRC, WEIGHTS), tuple(self.tap_ranges(group, lanes) for group in self.groups))
        others = tuple(r for operand in operands if operand is not OLD_DST for r in self.operand_ranges(operand, lanes))
        return Footprint((bias,) * self.bias + dst * reads_dst + others, dst, taps)

    def operand_ranges(self, operand: Operand, lanes: int) -> tuple[Range, ...]:
        """What post-ops read of a tensor: nothing for vectors of padding only, unless one element serves all."""
        found: dict[Range, None] = {}
        for j in range(self.vectors):
            width = f32.size_bytes * (1 if operand.element else min(lanes, self.channels - j * lanes))
            for p in range(len(self.src_pixel_bytes)) if width > 0 else ():
                begin = p * operand.row_bytes + j * operand.vector_bytes
                found[Range(operand.argument, begin, begin + width)] = None
        return tuple(found)

    def tap_ranges(self, group: TapGroup, lanes: int) -> tuple[Range, ...]:
        """What one tap of a group reads, from its source pixel and its weights row."""
        sizes = self.types.groups_of(group.channels)
        places = [(c * self.src_channel_bytes, size) for c, size in enumerate(sizes)]
        if self.src_channel_bytes == GROUP_BYTES:  # a pixel's channels are one range
            places = [(0, sum(sizes))]
        src = [(self.src_pixel_bytes[p] + at, size) for p in group.pixels for at, size in places]
        rows = [c * self.weights_row_bytes for c in range(len(sizes))]
        row_bytes = GROUP_BYTES * lanes * self.vectors
        return (*(Range(SRC, b, b + size) for b, size in src), *(Range(WEIGHTS, b, b + row_bytes) for b in rows))
