"""The code of pixels.py: pixels and vectors of channels in registers, the window around them in loops or unrolled."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, Protocol

from asmdnn.generators.functions.chain import apply_composed
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.pooling.pixel_words import (
    DIVISOR,
    TILES,
    WORD_BYTES,
    axis_step,
    dst_step,
    further_rows,
    is_walked,
    positions_of,
    row_of,
    src_step,
    times_of,
)
from asmdnn.generators.pooling.results import Results, Store
from asmdnn.generators.pooling.window import (
    ARGUMENTS,
    DST,
    SRC,
    PixelLoop,
    Reduction,
    Taps,
    offsets,
)
from asmdnn.generators.stepping import Step, advance, held, repeated
from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector

WORDS = 2  # the argument


class PixelFields(Protocol):
    """What the code is of; see PoolPixelsSpec."""

    @property
    def isa(self) -> str: ...
    @property
    def alg(self) -> str: ...
    @property
    def loops(self) -> tuple[PixelLoop, ...]: ...
    @property
    def window(self) -> tuple[Taps, ...]: ...
    @property
    def elements(self) -> int: ...
    @property
    def pixels(self) -> int: ...
    @property
    def vectors(self) -> int: ...
    @property
    def divisor(self) -> int: ...
    @property
    def chain(self) -> tuple[PostOp, ...]: ...
    @property
    def kind(self) -> str: ...
    @property
    def words(self) -> dict[str, int]: ...
    @property
    def reads_dst(self) -> bool: ...


class PixelsCode:
    """The emission of a kernel: pointers into src, one into dst, and registers for results.

    sources: of the first row of a window, and of those after it whose distance is a word.
    """

    def __init__(self, spec: PixelFields, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.asm, self.slots = spec, v, asm, Slots(v)
        self.src, self.dst = (asm.gp.take(name) for name in ARGUMENTS)
        asm.MOV(self.src, mem(asm.frame, 8 * SRC))
        asm.MOV(self.dst, mem(asm.frame, 8 * DST))
        self.names = list(spec.words)
        self.numbers = asm.gp.take("words") if self.names else None
        if self.names:
            asm.MOV(self.numbers, mem(asm.frame, 8 * WORDS))
        self.sources = [self.src, *(asm.gp.take("row of src") for _ in further_rows(spec.window))]
        for number, pointer in enumerate(self.sources[1:], 1):
            asm.MOV(pointer, self.src)
            asm.ADD(pointer, self.in_memory(row_of(number)))
        self.walks = is_walked(spec.window)
        self.held = {name: held(asm, name, self.in_memory(name)) for name in self.names_held()}
        self.reduction, self.element = Reduction(v, spec.alg, spec.kind), element_of(spec.kind)
        self.whole = self.element.lanes(v, v)
        self.results = Results(self.reduction, spec.isa, self.slots)
        self.vector_bytes = v.lanes * self.element.size_bytes
        self.acc = v.registers.take("result", spec.pixels, spec.vectors)
        by_itself = spec.pixels > 1 or (self.walks and not self.reduction.is_max)
        self.column: Sequence[Register] = v.registers.take("column", spec.vectors) if by_itself else ()
        self.store: Store = v.store

    def names_held(self) -> list[str]:
        """Distances that stay in registers while there are any, those of the inner loops first."""
        loops, axes = len(self.spec.loops), len(self.spec.window) if self.walks else 0
        counters = loops + axes + 1 + self.walks  # channels, and a position
        names = [axis_step(level) for level in reversed(range(axes - 1))]
        names += [step(level) for level in reversed(range(loops - 1)) for step in (src_step, dst_step)]
        return [name for name in names if name in self.names][: max(0, self.asm.gp.available - counters)]

    def word(self, name: str) -> Register | Pointer:
        return self.held.get(name) or self.in_memory(name)

    def in_memory(self, name: str) -> Pointer:
        assert self.numbers is not None, "it is read where there are some"
        return mem(self.numbers, WORD_BYTES * self.names.index(name), size=WORD_BYTES)

    def moves(self, src: Step, dst: Step) -> list[tuple[Register, Step]]:
        """How far all pointers go."""
        return [*((pointer, src) for pointer in self.sources), (self.dst, dst)]

    def run(self, store: Store) -> None:
        """All loops; `store` is for whole vectors."""
        self.store = store
        full, rest = divmod(self.spec.elements, self.v.lanes)
        with self.v.parts(full + (rest > 0), self.spec.elements) as parts:
            self.loop(0, [self.whole if part is self.v else self.element.lanes(self.v, part) for part in parts])

    def loop(self, level: int, parts: Sequence[Lanes]) -> None:
        """The loops from this level on; pointers end where the next result of the loop outside would follow."""
        loop, pixels = self.spec.loops[level], self.spec.pixels
        if level < len(self.spec.loops) - 1:
            steps = self.moves(self.word(src_step(level)), self.word(dst_step(level)))
            with repeated(self.asm, self.word(times_of(level)), f"loop {level}", steps):
                self.loop(level + 1, parts)
            return
        tiles: list[tuple[Step, int]] = [(self.word(TILES), pixels)] if TILES in self.names else []
        rest = loop.times % pixels
        for count, width in [*tiles, *[(1, rest)] * bool(rest)]:
            done = self.spec.vectors * self.vector_bytes * (len(parts) // self.spec.vectors)
            steps = self.moves(width * loop.src_bytes - done, width * loop.dst_bytes - done)
            with repeated(self.asm, count, "pixels", steps):
                self.tile(width, parts)

    def tile(self, pixels: int, parts: Sequence[Lanes]) -> None:
        """All channels of some pixels; whole groups of vectors are gone past, the rest is not."""
        vectors = self.spec.vectors
        groups, step = len(parts) // vectors, vectors * self.vector_bytes
        alike = groups - any(part is not self.whole for part in parts[: groups * vectors])
        if alike:
            with repeated(self.asm, alike, "channels", self.moves(step, step)):
                self.block(pixels, parts[:vectors])
        for first in range(alike * vectors, len(parts), vectors):
            some = parts[first : first + vectors]
            self.block(pixels, some)
            if len(some) == vectors:
                advance(self.asm, self.moves(step, step))

    def block(self, pixels: int, parts: Sequence[Lanes]) -> None:
        """Some pixels of some vectors of channels."""
        if not prod(taps.positions for taps in self.spec.window):
            self.asm.role("nothing")
            for acc in (self.acc[p][j] for p, j in product(range(pixels), range(len(parts)))):
                self.reduction.start(acc)
        elif self.walks:
            self.asm.role("window in loops")
            self.walk_window(parts)
        else:
            self.asm.role("window")
            self.unrolled_window(pixels, parts)
        self.asm.role("result")
        for p in range(pixels):
            first = p * self.spec.loops[-1].dst_bytes
            places = [mem(self.dst, first + j * self.vector_bytes, size=self.vector_bytes) for j in range(len(parts))]
            for acc, at, part in zip(self.acc[p], places, parts, strict=False):
                self.finish(acc, at, part)
            self.results.store(self.acc[p], places, parts, self.store)

    def unrolled_window(self, pixels: int, parts: Sequence[Lanes]) -> None:
        """Column after column: into the one result that covers it, or by itself and then into those that do."""
        *rows, columns = self.spec.window
        own = len(self.sources) > 1
        places = [(pointer, 0) for pointer in self.sources] if own else [(self.src, row) for row in offsets(rows)]
        users: dict[int, list[int]] = {}
        for p, at in product(range(pixels), offsets((columns,))):
            users.setdefault(p * self.spec.loops[-1].src_bytes + at, []).append(p)
        started: set[int] = set()
        for at, covering in users.items():
            alone = len(covering) == 1
            target = self.acc[covering[0]] if alone else self.column
            for i, (pointer, row) in enumerate(places):
                first = i == 0 and not (alone and covering[0] in started)
                self.take_in(target, pointer, at + row, parts, first)
            for p in () if alone else covering:
                for acc, column in zip(self.acc[p], self.column[: len(parts)], strict=False):
                    (self.reduction.join if p in started else self.v.move)(acc, column)
            started.update(covering)

    def take_in(self, target: Sequence[Register], base: Register, at: int, parts: Sequence[Lanes], first: bool) -> None:
        """A position of the window, all vectors."""
        for j, (acc, part) in enumerate(zip(target, parts, strict=False)):
            self.reduction.take_in(acc, mem(base, at + j * self.vector_bytes, size=self.vector_bytes), part, first)

    def walk_window(self, parts: Sequence[Lanes]) -> None:
        """One pixel."""
        tap = self.asm.gp.take("position")
        self.asm.MOV(tap, self.src)
        for acc, _ in zip(self.acc[0], parts, strict=False):
            self.reduction.start(acc)
        self.walk_axis(tap, 0, parts)
        self.asm.gp.free(tap)

    def walk_axis(self, tap: Register, level: int, parts: Sequence[Lanes]) -> None:
        taps, sums = self.spec.window[level], not self.reduction.is_max
        positions = self.word(positions_of(level))
        if level < len(self.spec.window) - 1:
            with repeated(self.asm, positions, f"axis {level}", ((tap, self.word(axis_step(level))),)):
                self.walk_axis(tap, level + 1, parts)
            return
        target = self.column if sums else self.acc[0]
        for x, _ in zip(self.column, parts, strict=False) if sums else ():
            self.v.zero(x)
        with repeated(self.asm, positions, "columns", ((tap, taps.bytes),)):
            self.take_in(target, tap, 0, parts, False)
        for acc, x, _ in zip(self.acc[0], self.column, parts, strict=False) if sums else ():
            self.reduction.join(acc, x)

    def finish(self, acc: Register, at: Any, part: Lanes) -> None:
        """Divide, post-ops, the type's own form."""
        if DIVISOR in self.names:
            divisor = self.reduction.staged[0]
            self.asm.VBROADCASTSD(divisor, self.word(DIVISOR))
            self.asm.VDIVPS(acc, acc, divisor)
        else:
            self.reduction.divide(acc, self.spec.divisor)
        if self.spec.chain:
            sources = [Source(lambda: at, part)] * self.spec.reads_dst
            apply_composed(self.spec.chain, self.v, acc, sources, self.reduction.staged, self.slots)
        self.results.convert(acc)
