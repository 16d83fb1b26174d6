"""Gradients of depthwise weights: rows of the image, of one vector of channels, at the positions of a kernel's row.

    weights[k, c] (+)= sum over taps t, columns x that position k reaches of src[t, x, k, c] * diff_dst[t, x, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src      | f32[..., lanes] | column x of position k is x * src_step + positions[k] bytes behind a tap's place |
| diff_dst | f32[..., lanes] | column x is x * dst_step bytes behind a tap's place |
| weights  | f32[positions, lanes] | weights_step bytes apart; read if the sums go on |
| taps     | int64[...] | a count, then (src, diff_dst) byte offsets, one pair for every row of the image |

Lanes are channels, all real.  A segment is a run of columns with the positions that lie inside src, so that padding is
never read.  Every diff_dst vector is loaded once, and multiplied by the source at each position from memory.  Where
positions are few, columns take turns in several sets of sums, for a multiply waits four cycles for the one before; the
sets are added in the end, in their order.
"""

from dataclasses import dataclass
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList, joined
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import VECTORS, lanes_of, vector_of
from asmdnn.types import f32

ARGUMENTS = ("src", "diff_dst", "weights", "taps")
SRC, DIFF_DST, WEIGHTS, TAPS = range(len(ARGUMENTS))
SUMS = 8  # that wait for one another less than they are computed
UNROLLED = 16  # columns of a segment without a loop
SPARE = 1  # registers beside the sums: a vector of diff_dst


def most_positions(isa: str) -> int:
    """Of a kernel: as many as registers hold sums of."""
    return VECTORS[isa].count - SPARE


@dataclass(frozen=True, slots=True)
class Segment:
    """Columns [first, first + count) of a row, and the numbers of the positions that they reach."""

    positions: tuple[int, ...]
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class DepthwiseWeightsSpec:
    """Everything that the bytes of the kernel depend on; distances in bytes."""

    isa: str
    positions: tuple[int, ...]
    segments: tuple[Segment, ...]
    src_step: int
    dst_step: int
    weights_step: int
    accumulate: bool = False

    @property
    def name(self) -> str:
        words = [str(len(self.positions)), *["acc"] * self.accumulate, checksum(self)]
        return f"depthwise_weights_f32_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ARGUMENTS

    @property
    def sets(self) -> int:
        """Of sums: columns take turns."""
        return max(1, min(-(-SUMS // len(self.positions)), most_positions(self.isa) // len(self.positions)))

    def footprint(self) -> Footprint:
        size = f32.size_bytes * lanes_of(self.isa)
        columns = [(x, s) for s in self.segments for x in range(s.first, s.first + s.count)]
        read = {Range(DIFF_DST, x * self.dst_step, x * self.dst_step + size) for x, _ in columns}
        places = {x * self.src_step + self.positions[k] for x, s in columns for k in s.positions}
        read |= {Range(SRC, at, at + size) for at in places}
        sums = tuple(Range(WEIGHTS, k * self.weights_step, k * self.weights_step + size) for k in range(self.count))
        return Footprint(sums * self.accumulate, sums, TapList(TAPS, (SRC, DIFF_DST), (joined(read),)))

    @property
    def count(self) -> int:
        return len(self.positions)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame)."""
        RowsCode(self, asm).emit()
        asm.ret()


class RowsCode:
    """The emission: pointers to a tap's row, which move on behind a loop over columns."""

    def __init__(self, spec: DepthwiseWeightsSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.v: Vector = vector_of(spec.isa, asm)
        self.sums: list[list[Any]] = self.v.registers.take("sums", spec.sets, spec.count)
        self.factor: Register = self.v.registers.take("diff_dst")
        self.bases = [asm.gp.take(name) for name in ("src", "diff_dst")]
        self.row = [asm.gp.take(name) for name in ("row of src", "row of diff_dst")]
        self.taps, self.left, self.columns = (asm.gp.take(name) for name in ("taps", "rows left", "columns left"))
        self.moved = 0  # columns that the pointers to the row have moved

    def emit(self) -> None:
        asm = self.asm
        for of_set in self.sums:
            for total in of_set:
                self.v.zero(total)
        for pointer, argument in zip((*self.bases, self.taps), (SRC, DIFF_DST, TAPS), strict=True):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        nothing = asm.new_label("no rows")
        asm.MOV(self.left, mem(self.taps))
        asm.TEST(self.left, self.left)
        asm.JZ(nothing)
        asm.role("rows")
        with asm.loop(self.left, "rows"):
            for number, pointer in enumerate(self.row):
                asm.MOV(pointer, mem(self.taps, 8 + 8 * number))
                asm.ADD(pointer, self.bases[number])
            asm.ADD(self.taps, 16)
            self.moved = 0
            for segment in self.spec.segments:
                self.segment(segment)
        asm.bind(nothing)
        self.finish()

    def segment(self, segment: Segment) -> None:
        sets, whole = self.spec.sets, 0
        if segment.count > UNROLLED:
            rounds, whole = segment.count // sets, segment.count // sets * sets
            self.asm.MOV(self.columns, rounds)
            with self.asm.loop(self.columns, "columns"):
                self.some(segment, segment.first, sets)
                for pointer, step in zip(self.row, (self.spec.src_step, self.spec.dst_step), strict=True):
                    self.asm.ADD(pointer, sets * step)
            self.moved += whole
        self.some(segment, segment.first + whole, segment.count - whole)

    def some(self, segment: Segment, first: int, count: int) -> None:
        """sums += src * diff_dst for some columns, unrolled."""
        spec, (src, dst) = self.spec, self.row
        for x in range(count):
            at = first + x - self.moved
            self.v.load(self.factor, mem(dst, at * spec.dst_step, size=self.v.bytes))
            for k in segment.positions:
                place = mem(src, at * spec.src_step + spec.positions[k], size=self.v.bytes)
                self.v.fma(self.sums[x % spec.sets][k], self.factor, place)

    def finish(self) -> None:
        """The sets together, on top of what weights held, and stored."""
        asm, weights = self.asm, self.bases[0]
        asm.role("finish")
        asm.MOV(weights, mem(asm.frame, 8 * WEIGHTS))
        first, *others = self.sums
        for k, total in enumerate(first):
            for other in others:
                self.v.add(total, total, other[k])
            at = mem(weights, k * self.spec.weights_step, size=self.v.bytes)
            if self.spec.accumulate:
                self.v.add(total, total, at)
            self.v.store(at, total)
