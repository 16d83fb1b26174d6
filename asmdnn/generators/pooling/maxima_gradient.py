"""Gradients of maxima where channels are dense: a pixel gets the gradients of the windows whose maximum it is.

    dst[i, p, c] = (before[i, p, c] +) sum over positions j of p of where(places[i, j, c] == number, diff[i, j, c], 0)

| argument | dtype[shape] | what it is |
|---|---|---|
| dst     | kind[cells, pixels, elements] | cells cell_bytes apart, pixels where they say, elements dense; written |
| diff    | kind | gradients of maxima: `step` * i + j elements from here on those of cell i and position j; read |
| places  | u8 or s32 | laid out as diff; read |
| numbers | s32[cells, pixels] | with s32 places, laid out as pixels that have one element: their numbers; read |
| before  | f32 | laid out as dst of f32; read; not there unless the spec says so |

A cell is as many pixels as windows are apart.  u8 places are numbers of positions in a window, which positions say; s32
ones are numbers of pixels in a plane.  What is smaller than f32 is widened as it is loaded, sums are f32, and rounded
once.  With `streaming`, results go past the caches if dst is aligned to a vector, as cell_bytes must be.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stores import emit_stored, store_results
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import element_of, size_of, storing_element
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.packing import packing_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

DST, DIFF, PLACES = range(3)
SUMS = 8  # at a time


class WindowPlace(NamedTuple):
    """Where a window's result is, in elements from that of the first cell, and the pixel's number in the window."""

    at: int
    number: int


class CellPixel(NamedTuple):
    """`number` pixels from the first one of its cell, `at` elements of dst; positions: of windows that have it."""

    number: int
    at: int
    positions: tuple[WindowPlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaximaGradientSpec:
    """Everything that the bytes of the kernel depend on.

    kinds: of dst, diff and places.  numbered: how many pixels of `numbers` a cell has.  ahead: elements from a window's
    result to the one below it; the lines of that one, and a cell's of dst, are prefetched, as they are more streams
    than a CPU follows by itself; 0: none is.
    """

    isa: str
    cells: int
    elements: int
    cell_bytes: int
    step: int
    pixels: tuple[CellPixel, ...]
    kinds: tuple[str, str, str] = ("f32", "f32", "u8")
    numbered: int = 0
    accumulates: bool = False
    streaming: bool = False
    ahead: int = 0

    @property
    def name(self) -> str:
        positions = ".".join(str(len(pixel.positions)) for pixel in self.pixels)
        words = [self.kinds[DST], self.kinds[PLACES], f"{self.cells}x{self.elements}", positions]
        words += ["acc"] * self.accumulates + ["streaming"] * self.streaming + ["ahead"] * bool(self.ahead)
        return f"maxpool_back_{'_'.join(words)}_{checksum(self)}__{self.isa}"

    @property
    def kind(self) -> str:
        """Of dst."""
        return self.kinds[DST]

    @property
    def counts_pixels(self) -> bool:
        """Whether places are numbers of pixels."""
        return self.kinds[PLACES] == "s32"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("dst", "diff", "places", *["numbers"] * self.counts_pixels, *["before"] * self.accumulates)

    def footprint(self) -> Footprint:
        positions = {place.at for pixel in self.pixels for place in pixel.positions}
        starts = [self.step * i + at for i in range(self.cells) for at in positions]
        read: list[Range] = []
        for argument in (DIFF, PLACES):
            size = size_of(self.kinds[argument])
            read += [Range(argument, *span) for span in touched([size * at for at in starts], size * self.elements)]
        if self.counts_pixels:
            numbers = [self.numbered * i + pixel.number for i in range(self.cells) for pixel in self.pixels]
            spans = touched([F32_BYTES * n for n in numbers], F32_BYTES)
            read += [Range(self.frame.index("numbers"), *span) for span in spans]
        if self.accumulates:
            read += [Range(self.frame.index("before"), *span) for span in self.laid_out("f32")]
        return Footprint(tuple(read), tuple(Range(DST, *span) for span in self.laid_out(self.kind)))

    def laid_out(self, kind: str) -> list[tuple[int, int]]:
        """The stretches of a tensor of that type that lies as dst."""
        size = size_of(kind)
        starts = [self.cell_of(kind) * i + size * pixel.at for i in range(self.cells) for pixel in self.pixels]
        return touched(starts, size * self.elements)

    def cell_of(self, kind: str) -> int:
        """Bytes from a cell to the next one, of a tensor of that type that lies as dst."""
        return self.cell_bytes // size_of(self.kind) * size_of(kind)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = MaximaGradientCode(self, v)
        emit_stored(v, code.pointers["dst"], code.run, self.streaming)


class MaximaGradientCode:
    """The emission: pointers go from cell to cell; sums of some pixels and vectors are in registers, and so are the
    numbers that many are compared with."""

    def __init__(self, spec: MaximaGradientSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.asm = spec, v, asm
        self.diff, self.places = (element_of(spec.kinds[argument]) for argument in (DIFF, PLACES))
        self.dst = storing_element(spec.kind, spec.isa)
        self.pointers = {name: asm.gp.take(name) for name in spec.frame}
        for argument, pointer in enumerate(self.pointers.values()):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        self.vectors = min(SUMS // 2, -(-spec.elements // v.lanes))
        self.together = max(1, SUMS // (self.vectors * len(spec.pixels)))  # cells
        self.sums = v.registers.take("sums", SUMS // self.vectors, self.vectors)
        self.wanted, self.loaded, self.spare, self.found = v.registers.take("place, loaded, spare, condition", 4)
        self.kept: dict[int, Register] = {}
        self.store: Callable[[Any, Any], None] = v.store

    def run(self, store: Callable[[Any, Any], None]) -> None:
        """All cells; `store` is for whole vectors of f32."""
        self.store, spec = store, self.spec
        with self.v.parts(-(-spec.elements // self.v.lanes), spec.elements) as parts:
            self.keep_numbers()
            for times, cells in ((spec.cells // self.together, self.together), (1, spec.cells % self.together)):
                if times and cells:
                    with repeated(self.asm, times, "cells", self.steps(cells)):
                        self.some(cells, parts)
            self.v.registers.free(*self.kept.values())
            self.kept = {}

    def keep_numbers(self) -> None:
        """Those of positions, as far as there are registers."""
        if self.spec.counts_pixels:
            return
        numbers = dict.fromkeys(place.number for pixel in self.spec.pixels for place in pixel.positions)
        for number in [*numbers][: self.v.registers.available]:
            self.kept[number] = self.v.registers.take(f"place {number}")
            self.v.broadcast_byte(self.kept[number], number)

    def steps(self, cells: int) -> list[tuple[Register, int]]:
        spec = self.spec
        of = {
            "dst": spec.cell_bytes,
            "diff": spec.step * self.diff.size_bytes,
            "places": spec.step * self.places.size_bytes,
            "numbers": spec.numbered * F32_BYTES,
            "before": spec.cell_of("f32"),
        }
        return [(pointer, cells * of[name]) for name, pointer in self.pointers.items()]

    def some(self, cells: int, parts: Sequence[Lanes]) -> None:
        """Cells from where the pointers are."""
        slots = [(cell, pixel) for cell in range(cells) for pixel in self.spec.pixels]
        self.prefetch(cells)
        for first in range(0, len(parts), self.vectors):
            some = parts[first : first + self.vectors]
            for at in range(0, len(slots), len(self.sums)):
                for (cell, pixel), sums in zip(slots[at : at + len(self.sums)], self.sums, strict=False):
                    self.pixel(cell, pixel, first * self.v.lanes, list(zip(sums, some, strict=False)))

    def prefetch(self, cells: int) -> None:
        """Lines of dst that are written next, and those below the last windows of these cells, which the next row reads
        first."""
        spec, last = self.spec, max((place.at for pixel in self.spec.pixels for place in pixel.positions), default=0)
        if not spec.ahead:
            return
        for cell in range(cells):
            below = last + spec.ahead + cell * spec.step
            self.prefetch_lines("diff", self.diff.size_bytes, below)
            self.prefetch_lines("places", self.places.size_bytes, below)
            for pixel in () if spec.streaming else spec.pixels:
                size = self.dst.size_bytes
                self.prefetch_lines("dst", size, cell * spec.cell_bytes // size + pixel.at)

    def prefetch_lines(self, name: str, size: int, first: int) -> None:
        """Of all channels of a pixel, from element `first` on."""
        for begin in range(0, size * self.spec.elements, LINE_BYTES):
            self.asm.PREFETCHT1(mem(self.pointers[name], size * first + begin))

    def pixel(self, cell: int, pixel: CellPixel, first: int, sums: Sequence[tuple[Register, Lanes]]) -> None:
        """Some vectors of channels from `first` on, of a pixel of a cell."""
        spec, lanes = self.spec, self.v.lanes
        for j, (total, part) in enumerate(sums):
            if spec.accumulates:
                at = cell * spec.cell_of("f32") + F32_BYTES * (pixel.at + first + j * lanes)
                part.load(total, mem(self.pointers["before"], at, size=self.v.bytes))
            else:
                self.v.zero(total)
        if spec.counts_pixels and pixel.positions:
            at = F32_BYTES * (cell * spec.numbered + pixel.number)
            self.v.broadcast(self.wanted, mem(self.pointers["numbers"], at, size=4))
        for place in pixel.positions:
            wanted = self.kept.get(place.number, self.wanted)
            if wanted is self.wanted and not spec.counts_pixels:
                self.v.broadcast_byte(wanted, place.number)
            for j, (total, part) in enumerate(sums):
                self.add(total, wanted, place.at + cell * spec.step + first + j * lanes, part)
        self.finish(cell * spec.cell_bytes + self.dst.size_bytes * (pixel.at + first), sums)

    def add(self, total: Register, wanted: Register, at: int, part: Lanes) -> None:
        """What is `at` so many elements of diff, where its place is the wanted one."""
        v, diff, size = self.v, self.diff, self.places.size_bytes
        condition = v.condition(lambda: self.found)
        source = mem(self.pointers["places"], size * at, size=size * v.lanes)
        if part is not v:
            self.load_places(source, part)
        v.compare_elements(condition, wanted, source if part is v else self.loaded, size)
        x = mem(self.pointers["diff"], diff.size_bytes * at, size=diff.size_bytes * v.lanes)
        diff.load(v, self.loaded, x, part)  # a masked operand would leave lanes unread, as data say
        v.add_where(total, condition, self.loaded)
        v.end_condition(condition)

    def load_places(self, source: Pointer, part: Lanes) -> None:
        """Those of a tail into the low end of a register."""
        if self.spec.counts_pixels:
            part.load(self.loaded, source)
        else:
            packing_of(self.v).load(self.loaded, source, part, self.places.size_bytes)

    def finish(self, at: int, sums: Sequence[tuple[Register, Lanes]]) -> None:
        """Round and store, so many bytes from dst."""
        size = self.dst.size_bytes * self.v.lanes
        places = [(mem(self.pointers["dst"], at + j * size, size=size), part) for j, (_, part) in enumerate(sums)]
        spare = (self.loaded, self.spare, self.found)
        if self.dst.narrows_pairs:
            store_results(self.v, self.dst, [total for total, _ in sums], places, spare)
            return
        for (total, _), (place, part) in zip(sums, places, strict=True):
            if not self.dst.stays:
                self.dst.store(self.v, place, total, part, spare)
            else:
                (self.store if part is self.v else part.store_last)(place, total)
