"""Convolution tiles: a few output pixels by a few vectors of output channels, accumulated in registers.

    dst[p, o] = post_ops(bias[o] + sum over taps t, channels c of src[p, t.src + c] * weights[t.weights + c, o])

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src[...]                | pixel p's source starts src_pixel_bytes[p] behind the pointer; never written |
| weights | weights[.., vectors] | a panel: a row for each tap and group of channels, zero padded; 4-byte aligned |
| bias    | sums[channels]          | the panel's channels; nothing past them is read |
|         | sums[.., vectors]       | with `starts`: whole vectors, pixel p's at starts[p] bytes |
| dst     | dst[...]                | pixel p at p * dst_pixel_bytes, channel vector j at j * dst_vector_bytes; or |
|         |                         | with `dst_argument`, vector j has a pointer, argument dst_argument + j - 1 |
| taps    | int64[...]              | for each group a count, then (src, weights) byte offsets, one pair a tap |
| ahead   | bytes                   | weights that will be needed soon; only prefetched |
| 6, 7 .. | operand_types, f32      | operands of post-ops, laid out as each Operand says; of the real channels |

The types of src, weights and sums are the spec's `types`; input channels go in groups (isa/dot.py), single ones in f32.
Of a last group that is not whole src is read as far as the channels, weights are zero there.  dst has the type of the
sums, but f32 if there are post-ops, unless it is said; a start from dst takes sums.

A tap is one kernel position and a run of input channels.  Taps are grouped by the pixels that they reach: a pixel for
which a tap lies in the padding is not in that tap's group, so padding costs no instruction and is never read.
The register block is the outer product of Goto and van de Geijn's GEBP kernel ("Anatomy of high-performance matrix
multiplication", 2008); the batch of taps is the batch-reduce of Georganas et al. (2019).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.generators.dot.conv_shape import (
    ARGUMENTS,
    BIAS,
    DST,
    SRC,
    TAPS,
    WEIGHTS,
    TapGroup,
    vectors_of_dst,
)
from asmdnn.generators.dot.conv_taps import TapCode
from asmdnn.generators.dot.epilogue import EndingTypes, TileEpilogue, operand_ranges
from asmdnn.generators.dot.matmul_shape import Bias
from asmdnn.generators.dot.prologue import load_bias, load_starts, start_tile
from asmdnn.generators.functions.chain import names_of_operands, operands_read, words_of
from asmdnn.generators.functions.postops import OLD_DST, PostOp
from asmdnn.isa.assembler import Assembler, Pointer, mem
from asmdnn.isa.dot import F32, GROUP_BYTES, Dot, Types, dot_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.types import DataType, f32

ONE_ROW = Bias(0, True)  # of a channel for all pixels


@dataclass(frozen=True, slots=True)
class ConvTileSpec:
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
    src_ahead_bytes: int = 0  # prefetch the source so far ahead: that of the next tile, or of the one below
    dst: DataType | None = None  # that of the sums, or f32 where something is computed from them
    operand_types: tuple[DataType, ...] = ()  # of what post-ops read, argument by argument; () if all are f32
    starts: tuple[int, ...] = ()  # of every pixel, in bias
    weights_vector_bytes: int = 0  # from a vector of a weights row to the next one; 0: they touch
    dst_argument: int = 0  # the pointer to dst's vector 1, others follow; 0: they lie dst_vector_bytes apart

    @property
    def dst_type(self) -> DataType:
        """Post-ops leave f32."""
        return self.dst or (f32 if self.post_ops else self.types.sums)

    @property
    def works_in_f32(self) -> bool:
        """Whether something is computed from the sums: post-ops and other types of dst take f32."""
        return bool(self.post_ops) or self.dst not in (None, self.types.sums)

    @property
    def has_halves(self) -> bool:
        """Whether half a register may hold the last vector of dst and of what post-ops read beside it."""
        return all(x.size_bytes == f32.size_bytes for x in (self.dst_type, *self.operand_types))

    def ending_types(self) -> EndingTypes:
        dst = self.dst_type if self.works_in_f32 else f32  # sums are stored as they are
        return EndingTypes(dst, tuple(enumerate(self.operand_types, len(ARGUMENTS))), self.isa)

    @property
    def name(self) -> str:
        """Block, what happens before and after the sum, and a checksum of the whole spec for the geometry."""
        words = [f"{len(self.src_pixel_bytes)}x{self.channels}"]
        words += ["bias"] * self.bias + ["acc"] * self.accumulate + words_of(self.post_ops)
        words += ["ahead"] * bool(self.ahead_lines) + [checksum(self)]
        return f"conv_{self.types}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        found = (*ARGUMENTS, *names_of_operands(self.post_ops))
        if not self.dst_argument:
            return found
        others = (f"other{i}" for i in range(len(found), self.dst_argument))  # that this kernel does not read
        return (*found, *others, *vectors_of_dst(self.vectors))

    def place_in_dst(self, vector: int) -> tuple[int, int]:
        """The argument that points to a vector of the first pixel, and how far behind it lies."""
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
        types = self.ending_types()
        others = tuple(r for x in tensors for r in operand_ranges(x, len(pixels), self.channels, lanes, types.of(x)))
        return Footprint((*self.bias_ranges(lanes), *dst * reads_dst, *others), tuple(dst), taps)

    def bias_ranges(self, lanes: int) -> tuple[Range, ...]:
        size, room = self.types.sums.size_bytes, self.vectors * lanes
        places = sorted({(x, size * room) for x in self.starts}) or [(0, size * self.channels)]
        return tuple(Range(BIAS, begin, begin + width) for begin, width in places) * self.bias

    def tap_ranges(self, group: TapGroup, lanes: int) -> tuple[Range, ...]:
        """What one tap of a group reads, from its source pixel and its weights row."""
        sizes = self.types.groups_of(group.channels)
        places = [(c * self.src_channel_bytes, size) for c, size in enumerate(sizes)]
        if self.src_channel_bytes == GROUP_BYTES:  # a pixel's channels are one range
            places = [(0, sum(sizes))]
        src = [(self.src_pixel_bytes[p] + at, size) for p in group.pixels for at, size in places]
        size = self.types.weights_bytes * lanes
        apart = self.weights_vector_bytes or size
        rows = [c * self.weights_row_bytes + j * apart for c in range(len(sizes)) for j in range(self.vectors)]
        if apart == size:  # a row is one range
            rows, size = rows[:: self.vectors], size * self.vectors
        return (*(Range(SRC, b, b + width) for b, width in src), *(Range(WEIGHTS, b, b + size) for b in rows))

    def of_taps(self) -> "ConvTileSpec":
        """The same without what the multiplies of a tap do not depend on."""
        spec = replace(self, channels=0, dst_pixel_bytes=0, dst_vector_bytes=0, whole_vectors=False, groups=())
        spec = replace(spec, dst_argument=0)
        return replace(spec, bias=False, accumulate=False, post_ops=(), dst=None, operand_types=(), starts=())

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 6 arguments and one for each operand of post-ops."""
        v = vector_of(self.isa, asm)
        acc = v.registers.take("acc", len(self.src_pixel_bytes), self.vectors)
        start_accumulators(self, v, acc)
        dot = dot_of(self.types, self.isa, v)
        with dot.ready():
            TapCode(self, dot, acc).multiply()
        finish_tile(self, dot, acc)
        asm.ret()


def start_accumulators(spec: ConvTileSpec, v: Vector, acc: list[list[Any]]) -> None:
    """acc[p][j] = dst[p, j], bias vector j, or zero."""

    def load_dst() -> None:
        walk_dst(spec, v, lambda p, j, at, stored, real: stored.load(acc[p][j], at), "start")

    def load_channels() -> None:
        bias = v.asm.gp.take("bias")
        v.asm.MOV(bias, mem(v.asm.frame, 8 * BIAS))
        if spec.starts:
            load_starts(v, acc, spec.starts, bias)
        else:
            load_bias(v, acc, ONE_ROW, bias, spec.channels, spec.types.sums.size_bytes)
        v.asm.gp.free(bias)

    start_tile(v, acc, load_dst if spec.accumulate else None, load_channels if spec.bias else None)


Visit = Callable[[int, int, Pointer, Lanes, Lanes], None]


def walk_dst(spec: ConvTileSpec, v: Vector, visit: Visit, key: Hashable) -> None:
    """visit(pixel, vector, memory, stored lanes, real lanes) for the whole tile, vector of channels by vector; what it
    emits depends on `key` and on dst."""
    asm = v.asm
    dst = asm.gp.take("dst")
    asm.MOV(dst, mem(asm.frame, 8 * DST))
    # Real lanes are output channels; `part` has those of a vector: all lanes (v itself), the first few (TailLanes), or,
    # in vectors that are padding alone, none (Nothing: a load is zeros, a store is none).  Stored lanes are those
    # that dst has room for: with whole vectors all of them, so that zeros of the padding are written too.
    vector_bytes = v.lanes * spec.dst_type.size_bytes
    key = (key, spec.isa, spec.types, spec.dst, spec.dst_pixel_bytes, spec.whole_vectors, spec.operand_types)
    with v.parts(spec.vectors, spec.channels, halves=spec.has_halves) as parts:
        for j, part in enumerate(parts):

            def of_vector(j: int = j, part: Lanes = part) -> None:
                for p in range(len(spec.src_pixel_bytes)):
                    at = mem(dst, p * spec.dst_pixel_bytes, size=vector_bytes)
                    asm.call_it(at, f"dst[{p}, {j}]")
                    visit(p, j, at, v if spec.whole_vectors else part, part)

            real = min(v.lanes, spec.channels - j * v.lanes)
            asm.stretch((key, len(spec.src_pixel_bytes), j, real), of_vector)
            if j + 1 < spec.vectors and spec.dst_argument:
                asm.MOV(dst, mem(asm.frame, 8 * spec.place_in_dst(j + 1)[0]))
            elif j + 1 < spec.vectors:
                asm.ADD(dst, spec.dst_vector_bytes)
    asm.gp.free(dst)


def finish_tile(spec: ConvTileSpec, dot: Dot, acc: list[list[Any]]) -> None:
    """Post-ops and stores."""
    dot.asm.role("finish")
    ending = TileEpilogue(dot.v, spec.post_ops, types=spec.ending_types())

    def finish(p: int, j: int, at: Pointer, stored: Lanes, real: Lanes) -> None:
        if spec.works_in_f32:
            dot.to_f32(acc[p][j])
        ending.finish(acc[p][j], p, j, at, stored, real)

    walk_dst(spec, dot.v, finish, ending.key)
