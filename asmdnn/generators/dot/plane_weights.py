"""Gradients of weights whose lanes are pixels of a row: of some planes of diff_dst, at some positions in planes of src.

    weights[o, k, lane] (+)= sum over taps t, vectors v of src[t, v, k, lane] * diff_dst[t, o, v, lane]

| argument | dtype[shape] | what it is |
|---|---|---|
| src      | f32[..., columns] | of position k from positions[k] on after a tap's place |
| diff_dst | f32[..., columns] | plane o is o * plane_step bytes after a tap's place |
| weights  | f32[outputs, positions, lanes] | rows are output_step bytes apart, dense; read if the sums go on |
| taps     | int64[...] | a count, then (src, diff_dst) byte offsets, one pair for every row of an image |

A row is cut into vectors, of which the last one has the lanes that are left.  Few output channels leave lanes empty
that are channels; lanes that are pixels are full.  The sum over lanes is for others to make.  What is less, planes or
positions, waits in registers for each vector of the other.  Where sums are few, vectors take turns in several sets of
them, for a multiply waits four cycles for the one before; the sets are added in the end, in their order.
"""

from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList, joined
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_class, vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

ARGUMENTS = ("src", "diff_dst", "weights", "taps")
SRC, DIFF_DST, WEIGHTS, TAPS = range(len(ARGUMENTS))
SUMS = 8  # that wait for one another less than they are computed
UNROLLED = 4  # vectors of a row without a loop
SPARE = 2  # registers beside sums and what waits: the vector that is multiplied, and a mask of AVX2


def fits(isa: str, outputs: int, positions: int) -> bool:
    """Whether registers hold the sums of so many planes and positions, and what waits."""
    return outputs * positions + min(outputs, positions) + SPARE <= vector_class(isa).count


def sets_of(isa: str, outputs: int, positions: int) -> int:
    """Of sums: vectors take turns."""
    sums, room = outputs * positions, vector_class(isa).count - min(outputs, positions) - SPARE
    return max(1, min(-(-SUMS // sums), room // sums, UNROLLED))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneWeightsSpec:
    """Everything that the bytes of the kernel depend on; distances in bytes.  columns: elements of a row."""

    isa: str
    outputs: int
    plane_step: int
    positions: tuple[int, ...]
    columns: int
    output_step: int
    accumulate: bool = False
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        words = [f"{self.outputs}x{len(self.positions)}", *["acc"] * self.accumulate, checksum(self)]
        return f"plane_weights_f32_{'_'.join(words)}__{self.isa}"

    def places(self) -> list[int]:
        """Where weights hold the sums, in order."""
        vector = f32.size_bytes * lanes_of(self.isa)
        return [o * self.output_step + k * vector for o in range(self.outputs) for k in range(len(self.positions))]

    def footprint(self) -> Footprint:
        row, vector = f32.size_bytes * self.columns, f32.size_bytes * lanes_of(self.isa)
        planes = [(DIFF_DST, o * self.plane_step) for o in range(self.outputs)]
        read = {Range(of, at, at + row) for of, at in (*planes, *((SRC, place) for place in self.positions))}
        sums = tuple(Range(WEIGHTS, at, at + vector) for at in self.places())
        return Footprint(sums * self.accumulate, sums, TapList(TAPS, (SRC, DIFF_DST), (joined(read),)))

    def generate(self, asm: Assembler) -> None:
        PlaneWeightsCode(self, asm).emit()
        asm.ret()


class PlaneWeightsCode:
    """The emission: pointers to a tap's row, which move on after a loop over vectors."""

    def __init__(self, spec: PlaneWeightsSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.v: Vector = vector_of(spec.isa, asm)
        planes = tuple(o * spec.plane_step for o in range(spec.outputs))
        src, dst = (SRC, spec.positions), (DIFF_DST, planes)
        self.by_positions = len(spec.positions) < spec.outputs  # wait in registers, and planes come one by one
        held, other = (src, dst) if self.by_positions else (dst, src)
        self.held_of, self.held_at = held
        self.other_of, self.other_at = other
        self.sets = sets_of(spec.isa, spec.outputs, len(spec.positions))
        self.sums: list[list[Any]] = self.v.registers.take("sums", self.sets, len(self.held_at) * len(self.other_at))
        self.held: list[Register] = list(self.v.registers.take("what waits", len(self.held_at)))
        self.other: Register = self.v.registers.take("multiplied")
        self.bases = [asm.gp.take(name) for name in ("src", "diff_dst")]
        self.row = [asm.gp.take(name) for name in ("row of src", "row of diff_dst")]
        self.taps, self.left, self.rounds = (asm.gp.take(name) for name in ("taps", "rows left", "rounds left"))

    def emit(self) -> None:
        asm, spec = self.asm, self.spec
        rest = spec.columns % self.v.lanes
        tail = self.v.tail(rest) if rest else None
        self.v.zeros(self.sums)
        for pointer, argument in zip((*self.bases, self.taps), (SRC, DIFF_DST, TAPS), strict=True):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        asm.role("rows")
        asm.MOV(self.left, mem(self.taps))
        with unless_zero(asm, self.left, "no rows"), asm.loop(self.left, "rows"):
            for number, pointer in enumerate(self.row):
                asm.MOV(pointer, mem(self.taps, 8 + 8 * number))
                asm.ADD(pointer, self.bases[number])
            asm.ADD(self.taps, 16)
            self.vectors(tail)
        self.finish()

    def vectors(self, tail: Lanes | None) -> None:
        """Those of a row."""
        whole, columns = self.spec.columns // self.v.lanes, self.spec.columns
        if whole > UNROLLED:
            self.asm.MOV(self.rounds, whole // UNROLLED)
            with self.asm.loop(self.rounds, "vectors"):
                for number in range(UNROLLED):
                    self.multiply(number, self.v)
                for pointer in self.row:
                    self.asm.ADD(pointer, UNROLLED * self.v.bytes)
            whole, columns = whole % UNROLLED, columns % (UNROLLED * self.v.lanes)
        for number in range(whole):
            self.multiply(number, self.v)
        if tail and columns:
            self.multiply(whole, tail)

    def multiply(self, number: int, lanes: Lanes) -> None:
        """A vector of every plane by one of every position."""
        at, sums = number * self.v.bytes, iter(self.sums[number % self.sets])
        for held, place in zip(self.held, self.held_at, strict=True):
            lanes.load(held, mem(self.row[self.held_of], place + at, size=self.v.bytes))
        for place in self.other_at:
            vector = mem(self.row[self.other_of], place + at, size=self.v.bytes)
            if len(self.held) == 1 and lanes is self.v:
                self.v.fma(next(sums), self.held[0], vector)
                continue
            lanes.load(self.other, vector)
            for held in self.held:
                self.v.fma(next(sums), held, self.other)

    def finish(self) -> None:
        """The sets together, on top of what weights held, and stored."""
        asm, weights, count = self.asm, self.bases[0], len(self.spec.positions)
        asm.role("finish")
        asm.MOV(weights, mem(asm.frame, 8 * WEIGHTS))
        for n, place in enumerate(self.spec.places()):
            o, k = divmod(n, count)
            number = o * count + k if self.by_positions else k * self.spec.outputs + o
            first, *others = (of_set[number] for of_set in self.sums)
            for other in others:
                self.v.add(first, first, other)
            at = mem(weights, place, size=self.v.bytes)
            if self.spec.accumulate:
                self.v.add(first, first, at)
            self.v.store(at, first)
