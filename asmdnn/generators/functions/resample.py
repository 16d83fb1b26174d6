"""Resampling where channels are dense: weighted sums of a few pixels, lanes being channels.

    dst[i, p, c] = sum over taps t of each axis of w0[t0] * w1[t1] * w2[i, p, t2] * src[i, t0, t1, t2, c]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | kinds[0] | pixels of `elements` channels; taps lie `taps` bytes after a result's first one; only read |
| dst     | kinds[1] | `together` pixels for each step of the loops, all made of the same ones of src; only written |
| weights0, 1, .. | f32 | of an axis with several taps; those of the last axis go on with the loops; only read |

kinds are f32, but for a TypedResampleSpec (resample_typed.py).
Sums over all axes but the last one come first, by FMA, their weights multiplied with one another; the pixels of a step
share them, such as the two between neighbours where an image is doubled.
Post-ops that read nothing else follow.
With `streaming`, whole vectors go past the caches if dst is aligned to a vector, as all its steps must be.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import apply_composed, chain_words
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.resample_types import ResampleTypes
from asmdnn.generators.functions.values import Slots
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stores import Places, emit_stored
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

SRC, DST, WEIGHTS = range(3)
MOST_VECTORS = 4
OTHER_REGISTERS = 2  # a tail's mask, and what it loads
Store = Callable[[Any, Any], None]


class ResampleStep(NamedTuple):
    """`times` groups of results: bytes from one to the next in src, dst and the last axis's weights."""

    times: int
    src_bytes: int
    dst_bytes: int
    weights_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampleSpec(ResampleTypes):
    """Everything that the bytes of the kernel depend on.

    taps: of each axis, outermost first, bytes from the first one.  dst_pixel_bytes: between the pixels of a step.
    """

    isa: str
    loops: tuple[ResampleStep, ...]
    taps: tuple[tuple[int, ...], ...]
    elements: int
    together: int
    dst_pixel_bytes: int
    streaming: bool = False
    chain: tuple[PostOp, ...] = ()

    @property
    def name(self) -> str:
        sizes = "x".join(str(len(taps)) for taps in self.taps)
        words = [
            f"resample_{''.join(dict.fromkeys(self.kinds))}_{sizes}_{self.together}x{self.elements}",
            *chain_words(self.chain),
        ]
        words += ["streaming"] * self.streaming
        return f"{'_'.join(words)}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "dst", *(f"weights{axis}" for axis in range(len(self.taps))))

    def footprint(self) -> Footprint:
        size, dst_size = (each * self.elements for each in self.sizes)
        steps = [self.place(at) for at in product(*(range(x.times) for x in self.loops))]
        offsets = [sum(at) for at in product(*self.taps)]
        src = touched((first + at for first, _, _ in steps for at in offsets), size)
        pixels = range(self.together)
        dst = touched((at + p * self.dst_pixel_bytes for _, at, _ in steps for p in pixels), dst_size)
        reads = [Range(SRC, *ends) for ends in src]
        for axis, taps in enumerate(self.taps):
            if len(taps) > 1:
                begins = {at for _, _, at in steps} if axis == len(self.taps) - 1 else {0}
                rows = self.together if axis == len(self.taps) - 1 else 1
                reads += [Range(WEIGHTS + axis, *ends) for ends in touched(begins, f32.size_bytes * len(taps) * rows)]
        return Footprint(tuple(reads), tuple(Range(DST, *ends) for ends in dst))

    def place(self, at: tuple[int, ...]) -> tuple[int, int, int]:
        """Byte offsets of a step in src, dst and the last axis's weights."""
        pairs = list(zip(at, self.loops, strict=True))
        return (
            sum(i * x.src_bytes for i, x in pairs),
            sum(i * x.dst_bytes for i, x in pairs),
            sum(i * x.weights_bytes for i, x in pairs),
        )

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[2 + axes])."""
        v = vector_of(self.isa, asm)
        code = self.code(v)
        emit_stored(v, code.dst, code.run, self.streaming)

    def code(self, v: Vector) -> "ResampleCode":
        return ResampleCode(self, v)


class ResampleCode:
    """The emission of a kernel: three pointers, weights and results in registers."""

    def __init__(self, spec: ResampleSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.asm = spec, v, asm
        self.src, self.dst, self.last = (asm.gp.take(name) for name in ("src", "dst", "weights of the last axis"))
        for argument, pointer in ((SRC, self.src), (DST, self.dst), (WEIGHTS + len(spec.taps) - 1, self.last)):
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        *outer, inner = spec.taps
        self.across = self.outer_weights([len(taps) for taps in outer])
        full, rest = divmod(spec.elements, v.lanes)
        room = (v.registers.available - OTHER_REGISTERS - spec.spares) // (len(inner) + 1)
        self.vectors = max(1, min(full + (rest > 0), MOST_VECTORS, room))
        self.columns = v.registers.take("sum over the outer axes", len(inner), self.vectors)
        self.sums: Sequence[Register] = v.registers.take("result", self.vectors)
        self.spare = v.registers.take("loaded, or a weight")
        self.spares = [self.spare, *v.registers.take("of post-ops", spec.spares)]
        self.slots = Slots(v)
        self.store: Store = v.store
        self.vector_bytes = [size * v.lanes for size in spec.sizes]  # of src and dst

    def outer_weights(self, counts: Sequence[int]) -> list[Register]:
        """A register for each combination of outer taps: the product of their weights; none if there is one."""
        if prod(counts) == 1:
            return []
        self.asm.role("weights")
        registers: list[Register] = self.v.registers.take("weights multiplied", prod(counts))
        pointer = self.asm.gp.take("weights")
        started = False
        for axis, count in enumerate(counts):
            if count == 1:
                continue
            self.asm.MOV(pointer, mem(self.asm.frame, 8 * (WEIGHTS + axis)))
            factor = self.v.registers.take("factor")
            for x, at in zip(registers, product(*map(range, counts)), strict=True):
                self.v.broadcast(factor if started else x, mem(pointer, f32.size_bytes * at[axis], size=4))
                if started:
                    self.v.mul(x, x, factor)
            self.v.registers.free(factor)
            started = True
        self.asm.gp.free(pointer)
        return registers

    def run(self, store: Store) -> None:
        """All loops; `store` is for whole vectors."""
        self.store = store
        full, rest = divmod(self.spec.elements, self.v.lanes)
        if full and rest:  # results are made again, to the same bits: a masked store is as slow as twelve (Zen 3)
            self.loop(0, [*[self.v] * full, self.v.end(rest)])
            return
        with self.v.parts(full + (rest > 0), self.spec.elements) as parts:
            self.loop(0, parts)

    def loop(self, level: int, parts: Sequence[Lanes]) -> None:
        """The loops from this level on; pointers end where the next result of the loop outside would follow."""
        loop, is_last = self.spec.loops[level], level == len(self.spec.loops) - 1
        groups = len(parts) // self.vectors
        done = [groups * self.vectors * size for size in self.vector_bytes]
        gone = (done[0], done[1], 0)
        if not is_last:
            inner = self.spec.loops[level + 1]
            gone = (inner.times * inner.src_bytes, inner.times * inner.dst_bytes, inner.times * inner.weights_bytes)
        steps = [step - moved for step, moved in zip(loop[1:], gone, strict=True)]
        pointers = (self.src, self.dst, self.last)
        with repeated(self.asm, loop.times, f"loop {level}", zip(pointers, steps, strict=True)):
            if not is_last:
                self.loop(level + 1, parts)
            else:
                self.pixels(parts)

    def pixels(self, parts: Sequence[Lanes]) -> None:
        """All channels of a step's pixels; whole groups of vectors are gone past."""
        self.asm.role("pixels")
        steps = [self.vectors * size for size in self.vector_bytes]
        groups = len(parts) // self.vectors
        alike = groups - any(part is not self.v for part in parts[: groups * self.vectors])
        if alike:
            with repeated(self.asm, alike, "channels", zip((self.src, self.dst), steps, strict=True)):
                self.block(parts[: self.vectors])
        for first in range(alike * self.vectors, len(parts), self.vectors):
            some = parts[first : first + self.vectors]
            self.block(some)
            if len(some) == self.vectors:
                self.asm.ADD(self.src, steps[0])
                self.asm.ADD(self.dst, steps[1])

    def block(self, parts: Sequence[Lanes]) -> None:
        """Some vectors of all pixels of a step."""
        *outer, inner = self.spec.taps
        src_bytes, dst_bytes = self.vector_bytes
        for sums, offset in zip(self.columns, inner, strict=True):
            for i, at in enumerate(product(*outer)):
                for j, part in enumerate(parts):
                    self.add(sums[j], sum(at) + offset + j * src_bytes, part, i)
        if len(inner) == 1:
            self.finish(self.columns[0][: len(parts)])
        for pixel in range(self.spec.together):
            results = self.along(pixel, len(parts)) if len(inner) > 1 else self.columns[0]
            is_last = len(inner) > 1 or pixel == self.spec.together - 1
            first = pixel * self.spec.dst_pixel_bytes
            places = [(mem(self.dst, first + j * dst_bytes, size=self.v.bytes), x) for j, x in enumerate(parts)]
            self.put_all(places, results, is_last)

    def put_all(self, places: Places, results: Sequence[Register], is_last: bool) -> None:
        """Store the vectors of a pixel, which are not needed again if `is_last`."""
        for (at, part), x in zip(places, results, strict=False):
            self.put(at, part, x, is_last)

    def put(self, at: Any, part: Lanes, x: Register, is_last: bool) -> None:
        if part is self.v:
            self.store(at, x)
            return
        if not is_last:  # a tail's register is left overwritten
            self.v.move(self.spare, x)
        part.store_last(at, x if is_last else self.spare)

    def add(self, target: Register, offset: int, part: Lanes, i: int) -> None:
        """target = or += a vector of src times the weights of combination i of outer taps."""
        at: Any = mem(self.src, offset, size=self.v.bytes)
        if not self.across:
            part.load(target, at)
            return
        if part is not self.v:
            part.load(self.spare, at)
            at = self.spare
        if i == 0:
            self.v.mul(target, self.across[i], at)
        else:
            self.v.fma(target, self.across[i], at)

    def along(self, pixel: int, vectors: int) -> Sequence[Register]:
        """The sum over the last axis for one pixel."""
        for tap, column in enumerate(self.columns):
            self.v.broadcast(self.spare, mem(self.last, f32.size_bytes * (pixel * len(self.columns) + tap), size=4))
            for result, x in zip(self.sums[:vectors], column, strict=False):
                if tap == 0:
                    self.v.mul(result, x, self.spare)
                else:
                    self.v.fma(result, x, self.spare)
        self.finish(self.sums[:vectors])
        return self.sums

    def finish(self, results: Sequence[Register]) -> None:
        """Post-ops."""
        if self.spec.chain:
            for x in results:
                apply_composed(self.spec.chain, self.v, x, (), self.spares, self.slots)
