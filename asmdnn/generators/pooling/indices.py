"""Max pooling with the place of every maximum, where channels are dense.

    dst[i, c] = max over the positions t of a window of src[i, t, c];  indices[i, c] = number of the first such t

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32    | as in pixels.py; only read |
| dst     | f32    | only written |
| indices | s32, or u8 | laid out as dst; only written |
| first   | s64[1] | the number of the first position of the first window; only read |
| carried | s32    | instead, of positions that are maxima themselves: their indices, laid out as src; only read |

Numbers count as `loop_numbers` and `window_numbers` say: elements of a plane, row by row, if these are its strides, or
positions of a window.
NaN is passed over; of a window of NaN alone the first position counts.  With `streaming`, results go past the caches if
dst and indices are aligned to a vector, as all their steps must be.
"""

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.program import Predicate
from asmdnn.generators.pooling.window import DST, SRC, PixelLoop, Reduction, Taps, pixels_touched
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler, Register, low32, mem
from asmdnn.isa.elements import element_of, size_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS = ("src", "dst", "indices", "first")
CARRYING = (*ARGUMENTS[:3], "carried")
INDICES, FIRST = 2, 3
Store = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolIndicesSpec:
    """Everything that the bytes of the kernel depend on; loops and window as in pixels.py.

    pixels, vectors: results of the last loop, and vectors of channels, in registers at a time: they share the counting.
    loop_numbers, window_numbers: how much the number of a position grows with a step of each loop and axis; of no
    meaning where indices are carried.
    """

    isa: str
    loops: tuple[PixelLoop, ...]
    window: tuple[Taps, ...]
    loop_numbers: tuple[int, ...]
    window_numbers: tuple[int, ...]
    elements: int
    pixels: int
    vectors: int
    carries: bool = False
    streaming: bool = False
    places: str = "s32"

    @property
    def name(self) -> str:
        sizes = "x".join(str(taps.positions) for taps in self.window)
        words = ["maxpool_indices_f32", sizes, f"{self.pixels}x{self.vectors}", *["carried"] * self.carries]
        words += [*["streaming"] * self.streaming, *[self.places] * (self.places != "s32"), checksum(self)]
        return f"{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return CARRYING if self.carries else ARGUMENTS

    @property
    def smaller(self) -> int:
        """How many places take as many bytes as an element of dst."""
        return F32_BYTES // size_of(self.places)

    def footprint(self) -> Footprint:
        src, dst = pixels_touched(self.loops, self.window, F32_BYTES * self.elements)
        indices = tuple(Range(INDICES, r.begin_bytes // self.smaller, r.end_bytes // self.smaller) for r in dst)
        numbers = [Range(FIRST, r.begin_bytes, r.end_bytes) for r in src] if self.carries else [Range(FIRST, 0, 8)]
        return Footprint((*src, *numbers), (*dst, *indices))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = (CarriedCode if self.carries else IndicesCode)(self, v)
        if self.streaming:
            both, rest = asm.gp.take("dst and indices"), asm.gp.take("bytes past a vector")
            asm.MOV(both, code.pointers[DST])
            asm.OR(both, code.pointers[INDICES])
            with if_aligned(asm, both, v.bytes, rest):
                asm.gp.free(both, rest)
                code.run(v.stream)
                asm.ret()
        code.run(v.store)
        asm.ret()


class IndicesCode:
    """The emission of a kernel: pointers, the number of the window at hand, and registers for results."""

    def __init__(self, spec: PoolIndicesSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.asm = spec, v, asm
        self.pointers = [asm.gp.take(name) for name in ARGUMENTS]
        for argument, pointer in enumerate(self.pointers):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        self.src = self.pointers[SRC]
        self.reduction = Reduction(v, "max")
        self.best = v.registers.take("result", spec.pixels, spec.vectors)
        self.place = v.registers.take("index", spec.pixels, spec.vectors)
        self.now: Register = v.registers.take("position's number")
        self.spare: Register = v.registers.take("condition")
        self.store: Store = v.store
        self.start()

    def start(self) -> None:
        """The number itself instead of the pointer to it."""
        self.asm.MOV(self.pointers[FIRST], mem(self.pointers[FIRST], size=8))

    def run(self, store: Store) -> None:
        """All loops; `store` is for whole vectors."""
        self.store = store
        full, rest = divmod(self.spec.elements, self.v.lanes)
        with self.v.parts(full + (rest > 0), self.spec.elements) as parts:
            self.loop(0, parts)

    def steps(self, src: int, dst: int, number: int) -> list[tuple[Register, int]]:
        return list(zip(self.pointers, (src, dst, dst // self.spec.smaller, number), strict=True))

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
        """Some windows, some vectors of channels from a place in the pixel on."""
        self.asm.role("start")
        for p in range(pixels):
            for j, (best, part) in enumerate(zip(self.best[p], parts, strict=False)):
                self.reduction.start(best)
                self.start_place(self.place[p][j], at + p * self.spec.loops[-1].src_bytes + j * self.v.bytes, part)
        taps = self.taps()
        self.asm.role("window")
        self.axis(taps, pixels, at, 0, parts)
        self.asm.gp.free(*taps)
        self.asm.role("result")
        self.count_on(pixels, len(parts))
        for p in range(pixels):
            for j, part in enumerate(parts):
                to, store = at + p * self.spec.loops[-1].dst_bytes + j * self.v.bytes, self.store
                store = store if part is self.v else part.store_last
                store(mem(self.pointers[DST], to, size=self.v.bytes), self.best[p][j])
                if self.spec.smaller > 1:
                    store = element_of(self.spec.places).lanes(self.v, part).store
                place = mem(self.pointers[INDICES], to // self.spec.smaller, size=self.v.bytes // self.spec.smaller)
                store(place, self.place[p][j])

    def taps(self) -> list[Register]:
        """Pointers that walk over a window."""
        tap = self.asm.gp.take("position")
        self.asm.MOV(tap, self.src)
        self.v.zero(self.now)
        return [tap]

    def start_place(self, place: Register, at: int, part: Lanes) -> None:
        """Numbers count from 0 inside of a window."""
        self.v.zero(place)

    def count_on(self, pixels: int, vectors: int) -> None:
        """From the number of the first window's first position."""
        first, number = self.now, self.spec.loop_numbers[-1]
        self.asm.VMOVD(first.xmm, low32(self.pointers[FIRST]))
        self.asm.VPBROADCASTD(first, first.xmm)
        for p in range(pixels):
            for place in self.place[p][:vectors]:
                self.asm.VPADDD(place, place, first)
            if p < pixels - 1 and number:
                self.asm.VPADDD(first, first, self.constant(number))

    def axis(self, walking: list[Register], pixels: int, at: int, level: int, parts: Sequence[Lanes]) -> None:
        """The positions from this axis on."""
        taps, number = self.spec.window[level], self.spec.window_numbers[level]
        step = taps.bytes
        if level < len(self.spec.window) - 1:
            inner = self.spec.window[level + 1]
            step -= inner.positions * inner.bytes
            number -= inner.positions * self.spec.window_numbers[level + 1]
        with repeated(self.asm, taps.positions, f"axis {level}", [(tap, step) for tap in walking]):
            if level < len(self.spec.window) - 1:
                self.axis(walking, pixels, at, level + 1, parts)
            else:
                self.compare(walking, pixels, at, parts)
            self.go_on(number)

    def go_on(self, number: int) -> None:
        """To the next position of an axis."""
        if number:
            self.asm.VPADDD(self.now, self.now, self.constant(number))

    def number_at(self, walking: list[Register], at: int, part: Lanes) -> Register:
        """The numbers of a position's elements."""
        return self.now

    def compare(self, walking: list[Register], pixels: int, at: int, parts: Sequence[Lanes]) -> None:
        """A position of the windows, all vectors: a larger number takes the place of the one before."""
        for p in range(pixels):
            start = at + p * self.spec.loops[-1].src_bytes
            for j, (best, place, part) in enumerate(zip(self.best[p], self.place[p], parts, strict=False)):
                loaded = self.reduction.load(mem(walking[0], start + j * self.v.bytes, size=self.v.bytes), part)
                number = self.number_at(walking, start + j * self.v.bytes, part)
                condition = self.v.condition(lambda: self.spare)
                self.v.compare(condition, loaded, best, Predicate.greater)
                self.v.asm.VMAXPS(best, loaded, best)
                self.v.select(place, condition, number, place)
                self.v.end_condition(condition)

    def constant(self, number: int) -> Any:
        return self.v.splat(int.from_bytes(pack("<i", number), "little"))


class CarriedCode(IndicesCode):
    """Of positions that are maxima themselves: their numbers are in memory; the fourth pointer goes along with src."""

    def start(self) -> None:
        """The pointer stays one."""

    def steps(self, src: int, dst: int, number: int) -> list[tuple[Register, int]]:
        return list(zip(self.pointers, (src, dst, dst, src), strict=True))

    def taps(self) -> list[Register]:
        taps: list[Register] = self.asm.gp.take("position", 2)
        for tap, pointer in zip(taps, (SRC, FIRST), strict=True):
            self.asm.MOV(tap, self.pointers[pointer])
        return taps

    def start_place(self, place: Register, at: int, part: Lanes) -> None:
        """Those of the first position, which count where all is NaN."""
        part.load(place, mem(self.pointers[FIRST], at, size=self.v.bytes))

    def count_on(self, pixels: int, vectors: int) -> None:
        """They do already."""

    def go_on(self, number: int) -> None:
        """They are loaded."""

    def number_at(self, walking: list[Register], at: int, part: Lanes) -> Register:
        part.load(self.now, mem(walking[1], at, size=self.v.bytes))
        return self.now
