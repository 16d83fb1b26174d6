"""The spec of a convolution tile, and its footprint; conv.py has the kernel."""

from collections.abc import Sequence

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.conv_shape import ARGUMENTS, BIAS, DST, SRC, TAPS, WEIGHTS, TapGroup, vectors_of_dst
from asmdnn.generators.dot.epilogue_shape import WithEpilogue, operand_ranges
from asmdnn.generators.functions.chain import chain_words, names_of_operands, operands_read
from asmdnn.generators.functions.postops import OLD_DST, PostOp, has_floats
from asmdnn.isa.assembler import Register
from asmdnn.isa.dot import F32, GROUP_BYTES, Types
from asmdnn.isa.dot_runs import ends_of_walk
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass, replace
from asmdnn.types import DataType, f32


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTile(WithEpilogue):
    """Everything that the code of a tile kernel depends on; sizes are elements unless they end in _bytes.

    src_channel_bytes and weights_row_bytes are the distances of groups of input channels, single ones in f32 only.
    """

    FIXED = ARGUMENTS
    isa: str
    vectors: int  # of output channels
    channels: int  # real ones among them, the rest is zero padding; bias has only these
    src_pixel_bytes: tuple[int, ...]
    src_channel_bytes: int
    weights_row_bytes: int
    dst_pixel_bytes: int
    dst_vector_bytes: int
    whole_vectors: bool  # dst has room for all lanes; padding is zero
    groups: tuple[TapGroup, ...]
    bias: bool = False
    accumulate: bool = False  # start from dst, not from zero or bias
    post_ops: tuple[PostOp, ...] = ()
    prefetch_lines: int = 0  # cache lines to prefetch for every tap
    types: Types = F32
    src_prefetch_bytes: int = 0  # prefetch the source so far ahead: that of the next tile, or of the one below
    prefetches_dst: bool = False  # ask for its lines before the sums are there
    streams: bool = False  # its whole vectors go past the caches if it begins with one; pixels are whole vectors apart
    dst: DataType | None = None  # that of the sums, or f32 where something is computed from them
    operand_types: tuple[DataType, ...] = ()  # of what post-ops read, argument by argument; () if all are f32
    starts: tuple[int, ...] = ()  # of every pixel, in bias
    weights_vector_bytes: int = 0  # between vectors of a weights row; 0: they are contiguous
    half_last: bool = False  # of the last vector the low half is multiplied, the others are padding
    dst_argument: int = 0  # the pointer to dst's vector 1, others follow; 0: they lie dst_vector_bytes apart
    row_sums: bool = False  # f32: bias gets the sums of the weights' rows; with accumulate they are added to it

    @property
    def dst_type(self) -> DataType:
        return self.dst or (f32 if has_floats(self.post_ops) else self.types.sums)

    @property
    def name(self) -> str:
        """The block, the start and end of the sum, and a checksum of the whole spec for the geometry."""
        words = [f"{len(self.src_pixel_bytes)}x{self.channels}"]
        words += ["bias"] * self.bias + ["acc"] * self.accumulate + chain_words(self.post_ops)
        words += ["rows"] * self.row_sums + ["prefetch"] * bool(self.prefetch_lines) + [checksum(self)]
        return f"conv_{self.types}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """The names of the frame's pointers, in order."""
        found = (*ARGUMENTS, *names_of_operands(self.post_ops))
        if not self.dst_argument:
            return found
        others = (f"other{i}" for i in range(len(found), self.dst_argument))  # that this kernel does not read
        return (*found, *others, *vectors_of_dst(self.vectors))

    def place_in_dst(self, vector: int) -> tuple[int, int]:
        """The argument that points to a vector of the first pixel, and how far after it lies."""
        if self.dst_argument and vector:
            return self.dst_argument + vector - 1, 0
        return DST, vector * self.dst_vector_bytes

    def footprint(self) -> Footprint:
        """The bytes that a call touches."""
        lanes = lanes_of(self.isa)
        stored = self.vectors * lanes if self.whole_vectors else self.channels
        pixels = range(len(self.src_pixel_bytes))
        dst: list[Range] = []
        for j in range(self.vectors):
            argument, begin = self.place_in_dst(j)
            end = begin + self.dst_type.size_bytes * min(lanes, stored - j * lanes)
            steps = [p * self.dst_pixel_bytes for p in pixels]
            dst += [Range(argument, begin + step, end + step) for step in steps]
        operands = operands_read(self.post_ops)
        reads_dst = self.accumulate or OLD_DST in operands
        taps = TapList(TAPS, (SRC, WEIGHTS), tuple(self.tap_ranges(group, lanes) for group in self.groups))
        tensors = (operand for operand in operands if operand is not OLD_DST)
        types = self.epilogue_types
        others = tuple(r for x in tensors for r in operand_ranges(x, len(pixels), self.channels, lanes, types.of(x)))
        bias = self.bias_ranges(lanes)
        read = bias * (self.bias or self.accumulate)
        return Footprint((*read, *dst * reads_dst, *others), (*dst, *bias * self.row_sums), taps)

    def bias_ranges(self, lanes: int) -> tuple[Range, ...]:
        size, room = self.types.sums.size_bytes, self.vectors * lanes
        places = sorted({(x, size * room) for x in self.starts}) or [(0, size * self.channels)]
        return tuple(Range(BIAS, begin, begin + width) for begin, width in places) * (self.bias or self.row_sums)

    def tap_ranges(self, group: TapGroup, lanes: int) -> tuple[Range, ...]:
        """The bytes that one tap of a group reads, from its source pixel and its weights row."""
        sizes, first = self.types.groups_of(group.channels), group.first * self.types.src.size_bytes
        places = [(c * self.src_channel_bytes, size) for c, size in enumerate(sizes)]
        if self.src_channel_bytes == GROUP_BYTES:  # a pixel's channels are one range
            places = [(first, sum(sizes) - first)]
        src = [(self.src_pixel_bytes[p] + at, size) for p in group.pixels for at, size in places]
        rows = [
            (c * self.weights_row_bytes + at, size) for c in range(len(sizes)) for at, size in self.row_ranges(lanes)
        ]
        return (*(Range(SRC, b, b + width) for b, width in src), *(Range(WEIGHTS, b, b + size) for b, size in rows))

    def run_ends(self, taps: Sequence[int]) -> list[int]:
        """How many runs of k end in each group of a list with so many taps; none where sums have no runs."""
        if self.types.run is None:
            return []
        steps = [len(self.types.groups_of(group.channels)) for group in self.groups]
        return ends_of_walk(zip(taps, steps, strict=True))

    def row_ranges(self, lanes: int) -> list[tuple[int, int]]:
        """(first byte, bytes) of what a step reads of a row of weights."""
        size = self.types.weights_bytes * lanes
        apart, missing = self.weights_vector_bytes or size, size // 2 * self.half_last
        if apart == size:  # one range
            return [(0, size * self.vectors - missing)]
        last = self.vectors - 1
        return [(j * apart, size - missing * (j == last)) for j in range(self.vectors)]

    def multiplied(self, row: Sequence[Register]) -> Sequence[Register]:
        """Of a register for each vector, what is multiplied."""
        return [*row[:-1], row[-1].ymm] if self.half_last else row

    def of_taps(self) -> "ConvTile":
        """The same spec without the fields that do not matter to the multiplies of a tap."""
        spec = replace(self, channels=0, dst_pixel_bytes=0, dst_vector_bytes=0, whole_vectors=False, groups=())
        spec = replace(spec, dst_argument=0, prefetches_dst=False, streams=False)
        return replace(spec, bias=False, accumulate=False, post_ops=(), dst=None, operand_types=(), starts=())
