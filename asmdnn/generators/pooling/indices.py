"""Max pooling with the place of every maximum, where channels are dense.

    dst[i, c] = max over the positions t of a window of src[i, t, c];  indices[i, c] = number of the first such t

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32    | as in pixels.py; only read |
| dst     | f32    | only written |
| indices | s32    | laid out as dst; only written |
| first   | s64[1] | the number of the first position of the first window; only read |

Numbers count as `loop_numbers` and `window_numbers` say: elements of a plane, row by row, if these are its strides.
NaN is passed over; of a window of NaN alone the first position counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any
from zlib import crc32

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.program import Predicate
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.window import DST, SRC, Loop, Reduction, Taps, repeated
from asmdnn.isa.assembler import Assembler, Register, low32, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of

ARGUMENTS = ("src", "dst", "indices", "first")
INDICES, FIRST = 2, 3


@dataclass(frozen=True, slots=True)
class PoolIndicesSpec:
    """Everything that the bytes of the kernel depend on; loops and window as in pixels.py.

    pixels, vectors: results of the last loop, and vectors of channels, in registers at a time: they share the counting.
    loop_numbers, window_numbers: how much the number of a position grows with a step of each loop and axis.
    """

    isa: str
    loops: tuple[Loop, ...]
    window: tuple[Taps, ...]
    loop_numbers: tuple[int, ...]
    window_numbers: tuple[int, ...]
    elements: int
    pixels: int
    vectors: int

    @property
    def name(self) -> str:
        sizes = "x".join(str(taps.positions) for taps in self.window)
        return f"maxpool_indices_f32_{sizes}_{self.pixels}x{self.vectors}_{crc32(repr(self).encode()):08x}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    def footprint(self) -> Footprint:
        values = PoolPixelsSpec(self.isa, "max", self.loops, self.window, self.elements, 1, 1).footprint()
        indices = tuple(Range(INDICES, r.begin_bytes, r.end_bytes) for r in values.writes)
        return Footprint((*values.reads, Range(FIRST, 0, 8)), (*values.writes, *indices))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[4])."""
        v = vector_of(self.isa, asm)
        code = IndicesCode(self, v)
        full, rest = divmod(self.elements, v.lanes)
        with v.parts(full + (rest > 0), self.elements) as parts:
            code.loop(0, parts)
        asm.ret()


class IndicesCode:
    """The emission of a kernel: pointers, the number of the window at hand, and registers for results."""

    def __init__(self, spec: PoolIndicesSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.asm = spec, v, asm
        self.pointers = [asm.gp.take(name) for name in ARGUMENTS]
        for argument, pointer in enumerate(self.pointers):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        self.src, self.number = self.pointers[SRC], self.pointers[FIRST]
        asm.MOV(self.number, mem(self.number, size=8))
        self.reduction = Reduction(v, "max")
        self.best = v.registers.take("result", spec.pixels, spec.vectors)
        self.place = v.registers.take("index", spec.pixels, spec.vectors)
        self.now, self.spare = v.registers.take("position's number"), v.registers.take("condition")

    def steps(self, src: int, dst: int, number: int) -> list[tuple[Register, int]]:
        return list(zip(self.pointers, (src, dst, dst, number), strict=True))

    def loop(self, level: int, parts: Sequence[Lanes]) -> None:
        """The loops from this level on; pointers end where the next result of the loop outside would follow."""
        loop, number = self.spec.loops[level], self.spec.loop_numbers[level]
        src, dst = loop.src_bytes, loop.dst_bytes
        if level < len(self.spec.loops) - 1:
            inner = self.spec.loops[level + 1]
            src, dst = src - inner.times * inner.src_bytes, dst - inner.times * inner.dst_bytes
            number -= inner.times * self.spec.loop_numbers[level + 1]
            with repeated(self.asm, loop.times, f"loop {level}", self.steps(src, dst, number)):
                self.loop(level + 1, parts)
            return
        pixels = self.spec.pixels
        for times, width in ((loop.times // pixels, pixels), (1, loop.times % pixels)):
            if times and width:
                steps = self.steps(width * src, width * dst, width * number)
                with repeated(self.asm, times, "pixels", steps):
                    for first in range(0, len(parts), self.spec.vectors):
                        self.block(width, first * self.v.bytes, parts[first : first + self.spec.vectors])

    def block(self, pixels: int, at: int, parts: Sequence[Lanes]) -> None:
        """Some windows, some vectors of channels from a place in the pixel on; numbers count from 0."""
        self.asm.role("start")
        self.v.zero(self.now)
        for p in range(pixels):
            for best, place, _ in zip(self.best[p], self.place[p], parts, strict=False):
                self.reduction.start(best)
                self.v.zero(place)
        tap = self.asm.gp.take("position")
        self.asm.MOV(tap, self.src)
        self.asm.role("window")
        self.axis(tap, pixels, at, 0, parts)
        self.asm.gp.free(tap)
        self.asm.role("result")
        first, number = self.now, self.spec.loop_numbers[-1]
        self.asm.VMOVD(first.xmm, low32(self.number))
        self.asm.VPBROADCASTD(first, first.xmm)
        for p in range(pixels):
            for j, part in enumerate(parts):
                self.asm.VPADDD(self.place[p][j], self.place[p][j], first)
                to = at + p * self.spec.loops[-1].dst_bytes + j * self.v.bytes
                part.store(mem(self.pointers[DST], to, size=self.v.bytes), self.best[p][j])
                part.store(mem(self.pointers[INDICES], to, size=self.v.bytes), self.place[p][j])
            if p < pixels - 1 and number:
                self.asm.VPADDD(first, first, self.constant(number))

    def axis(self, tap: Register, pixels: int, at: int, level: int, parts: Sequence[Lanes]) -> None:
        """The positions from this axis on."""
        taps, number = self.spec.window[level], self.spec.window_numbers[level]
        step = taps.bytes
        if level < len(self.spec.window) - 1:
            inner = self.spec.window[level + 1]
            step -= inner.positions * inner.bytes
            number -= inner.positions * self.spec.window_numbers[level + 1]
        with repeated(self.asm, taps.positions, f"axis {level}", ((tap, step),)):
            if level < len(self.spec.window) - 1:
                self.axis(tap, pixels, at, level + 1, parts)
            else:
                self.compare(tap, pixels, at, parts)
            if number:
                self.asm.VPADDD(self.now, self.now, self.constant(number))

    def compare(self, tap: Register, pixels: int, at: int, parts: Sequence[Lanes]) -> None:
        """A position of the windows, all vectors: a larger number takes the place of the one before."""
        for p in range(pixels):
            start = at + p * self.spec.loops[-1].src_bytes
            for j, (best, place, part) in enumerate(zip(self.best[p], self.place[p], parts, strict=False)):
                loaded = self.reduction.load(mem(tap, start + j * self.v.bytes, size=self.v.bytes), part)
                condition = self.v.condition(lambda: self.spare)
                self.v.compare(condition, loaded, best, Predicate.greater)
                self.v.asm.VMAXPS(best, loaded, best)
                self.v.select(place, condition, self.now, place)
                self.v.end_condition(condition)

    def constant(self, number: int) -> Any:
        return self.v.splat(int.from_bytes(pack("<i", number), "little"))
