"""Resampling where rows are dense: weighted sums of what a permutation brings from a few rows, lanes being results.

    dst[i, o] = sum over taps t of the other axes, s of the row of w[i, t] * f[o, s] * src[i, t, k[o, s]]

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | kinds[0] | rows of `width` elements; those of a step lie `taps` bytes after the pointer; only read |
| dst     | kinds[1] | `together` rows of `results` elements for each step, made of the same ones of src; only written |
| weights | f32[rows, taps] | w, of the rows in their order; only read, if there are several taps |
| factors | f32[vectors, taps of the row, lanes] | f; only read, if a result is made of several elements of a row |

kinds are f32, but for a TypedResampleRowsSpec (resample_rows_typed.py).
Each row of src is resampled once, and all rows of dst that are made of it weigh what came out.  A vector of results is
made of whole vectors of src, one or more for each tap, that end inside of the row; neighbours that are made alike are a
loop.
The last vector ends where the row does, and makes some results again, to the same bits: a masked store costs as much as
a dozen of others on a Zen 3.
Post-ops that read nothing else follow.
With `streaming`, whole vectors go past the caches if dst is aligned to a vector, as all its steps must be.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from struct import pack
from typing import Any

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import apply_composed, chain_words
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.resample import ResampleStep
from asmdnn.generators.functions.resample_columns import (
    FURTHER,
    Column,
    Pick,
    first_result,
    has_further,
    stretches,
)
from asmdnn.generators.functions.resample_types import ResampleTypes
from asmdnn.generators.functions.values import Slots
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stores import emit_stored
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32

SRC, DST, WEIGHTS, FACTORS = range(4)
ARGUMENTS = ("src", "dst", "weights", "factors")
UNROLLED = 4  # vectors that are made alike, in a turn of their loop
Store = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampleRowsSpec(ResampleTypes):
    """Everything that the bytes of the kernel depend on.

    loops: as in ResampleSpec, of groups of rows; their weights go on with the steps.  taps: bytes to each row that a
    step is made of.  columns: of each vector of results.
    """

    isa: str
    loops: tuple[ResampleStep, ...]
    taps: tuple[int, ...]
    columns: tuple[Column, ...]
    width: int
    results: int
    together: int
    dst_row_bytes: int
    streaming: bool = False
    chain: tuple[PostOp, ...] = ()
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        sizes = f"{len(self.taps)}x{len(self.columns[0])}_{self.together}x{self.width}to{self.results}"
        kinds = "".join(dict.fromkeys(self.kinds))
        words = [f"resample_rows_{kinds}_{sizes}", *chain_words(self.chain), *["streaming"] * self.streaming]
        return f"{'_'.join(words)}_{checksum(self)}__{self.isa}"

    def footprint(self) -> Footprint:
        lanes, (src_size, dst_size) = lanes_of(self.isa), self.sizes
        size = src_size * min(lanes, self.width)
        picks = {pick for column in self.columns for pick in column}
        begins = {pick.bytes + src_size * begin for pick in picks for begin in pick.vectors(lanes)}
        row = merged((begin, begin + size) for begin in begins)
        steps = list(self.steps())
        src = shifted(row, (step[0] + tap for step in steps for tap in self.taps))
        rows = range(self.together)
        row = [(0, dst_size * self.results)]
        dst = shifted(row, (step[1] + r * self.dst_row_bytes for step in steps for r in rows))
        reads = [Range(SRC, *ends) for ends in src]
        if len(self.taps) > 1:
            table = [(0, f32.size_bytes * len(self.taps) * self.together)]
            reads += [Range(WEIGHTS, *ends) for ends in shifted(table, (step[2] for step in steps))]
        if len(self.columns[0]) > 1:
            reads.append(Range(FACTORS, 0, vector_bytes(self.isa) * len(self.columns) * len(self.columns[0])))
        return Footprint(tuple(reads), tuple(Range(DST, *ends) for ends in dst))

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Byte offsets of every step in src, dst and weights."""
        for at in product(*(range(loop.times) for loop in self.loops)):
            pairs = list(zip(at, self.loops, strict=True))
            src, dst, weights = (sum(i * loop[word] for i, loop in pairs) for word in (1, 2, 3))
            yield src, dst, weights

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = self.code(v)
        emit_stored(v, code.dst, code.run, self.streaming)

    def code(self, v: Vector) -> "ResampleRowsCode":
        return ResampleRowsCode(self, v)


def shifted(pieces: Iterable[tuple[int, int]], starts: Iterable[int]) -> list[tuple[int, int]]:
    """What the pieces cover from each of the starts on, together."""
    pieces = list(pieces)
    return merged((start + begin, start + end) for start in set(starts) for begin, end in pieces)


class ResampleRowsCode:
    """The emission of a kernel: four pointers, the lanes of each tap, what becomes of each row of src."""

    def __init__(self, spec: ResampleRowsSpec, v: Vector) -> None:
        self.spec, self.v, self.asm = spec, v, v.asm
        self.pointers: list[Register] = [v.asm.gp.take(name) for name in ARGUMENTS]
        self.src, self.dst, self.weights, self.factors = self.pointers
        for argument, pointer in enumerate(self.pointers):
            v.asm.MOV(pointer, mem(v.asm.frame, 8 * argument))
        self.lanes: Sequence[Register] = v.registers.take("lanes of a tap", len(spec.columns[0]))
        self.rows: Sequence[Register] = v.registers.take("row of src, resampled", len(spec.taps))
        self.result: Register = v.registers.take("result")
        self.spare: Register = v.registers.take("a tap, or a weight")
        self.spares = [self.spare, *v.registers.take("of post-ops", spec.spares)]
        several = has_further(spec.columns, v.lanes)
        self.further: Sequence[Register] = v.registers.take("of further vectors", FURTHER if several else 0)
        self.src_size, self.dst_size = spec.sizes
        self.slots = Slots(v)
        self.store: Store = v.store
        self.held: list[tuple[int, ...]] = []

    def run(self, store: Store) -> None:
        """All loops; `store` is for whole vectors."""
        self.store = store
        spec, v = self.spec, self.v
        read, written = map(element_of, spec.kinds)
        with (
            v.parts(1, min(spec.width, v.lanes)) as (source,),
            v.parts(1, min(spec.results, v.lanes)) as (target,),
        ):
            self.source, self.target = read.lanes(v, source), written.lanes(v, target)
            self.loop(0)

    def loop(self, level: int) -> None:
        """The loops from this level on; pointers end where the next step of the loop outside would follow."""
        loop, is_last = self.spec.loops[level], level == len(self.spec.loops) - 1
        gone = (0, 0, 0)
        if not is_last:
            inner = self.spec.loops[level + 1]
            gone = (inner.times * inner.src_bytes, inner.times * inner.dst_bytes, inner.times * inner.weights_bytes)
        steps = [step - moved for step, moved in zip(loop[1:], gone, strict=True)]
        with repeated(self.asm, loop.times, f"loop {level}", zip(self.pointers, steps, strict=False)):
            if not is_last:
                self.loop(level + 1)
            else:
                self.row()

    def row(self) -> None:
        """All vectors of a step's rows; pointers end where they began."""
        self.held = [()] * len(self.lanes)
        taps, width = len(self.lanes), self.v.bytes
        made = self.v.lanes * self.dst_size
        walked = [0, 0, 0]  # bytes that src, dst and factors have gone
        moving = (self.src, self.dst, self.factors)
        for first, times, step in stretches(self.spec.columns, self.spec.results // self.v.lanes):
            self.asm.role(f"vectors {first} to {first + times - 1}")
            turns = times // UNROLLED if times >= 2 * UNROLLED else 0
            if turns:
                self.hold(first)
                turn = (UNROLLED * step, UNROLLED * made, UNROLLED * taps * width if taps > 1 else 0)
                with repeated(self.asm, turns, "vectors", zip(moving, turn, strict=True)):
                    for i in range(UNROLLED):
                        self.vector(first + i, walked)
                walked = [at + turns * moved for at, moved in zip(walked, turn, strict=True)]
            for i in range(turns * UNROLLED, times):
                self.hold(first + i)
                self.vector(first + i, walked)
        for pointer, moved in zip(moving, walked, strict=True):
            if moved:
                self.asm.SUB(pointer, moved)

    def hold(self, column: int) -> None:
        """The lanes of every tap in registers."""
        for tap, pick in enumerate(self.spec.columns[column]):
            if pick.lanes != self.held[tap]:
                lanes = pack(f"<{self.v.lanes}i", *pick.chosen(self.v.lanes))
                self.v.load(self.lanes[tap], self.asm.const(lanes, self.v.bytes, size=self.v.bytes))
                self.held[tap] = pick.lanes

    def vector(self, column: int, walked: Sequence[int]) -> None:
        """One vector of all rows of a step."""
        v, spec = self.v, self.spec
        for row, offset in zip(self.rows, spec.taps, strict=True):
            for tap, pick in enumerate(spec.columns[column]):
                target = row if tap == 0 else self.spare
                self.bring(target, tap, pick, offset + pick.bytes - walked[0])
                if len(self.lanes) > 1:
                    at = (column * len(self.lanes) + tap) * v.bytes - walked[2]
                    factor = mem(self.factors, at, size=v.bytes)
                    if tap == 0:
                        v.mul(row, row, factor)
                    else:
                        v.fma(row, self.spare, factor)
        if len(self.rows) == 1:
            self.finish(self.rows[0])
        for r in range(spec.together):
            place = r * spec.dst_row_bytes + self.dst_size * first_result(column, spec.results, v.lanes) - walked[1]
            self.put(mem(self.dst, place, size=v.bytes), self.weighed(r), r + 1 == spec.together)

    def bring(self, target: Register, tap: int, pick: Pick, offset: int) -> None:
        """target = the lanes of a tap from the vectors of src from this offset on."""
        begins = pick.vectors(self.v.lanes)

        def vector(number: int, spare: Register) -> Any:
            at = mem(self.src, offset + self.src_size * begins[number], size=self.v.bytes)
            if self.source is self.v:
                return at
            self.source.load(spare, at)
            return spare

        if pick.lanes == tuple(range(self.v.lanes)) and self.spec.width >= self.v.lanes:
            self.source.load(target, mem(self.src, offset, size=self.v.bytes))
        else:
            self.v.collect(target, pick.chosen(self.v.lanes), self.lanes[tap], vector, self.further)

    def weighed(self, r: int) -> Register:
        """The sum over rows of src for row `r` of dst."""
        if len(self.rows) == 1:
            return self.rows[0]
        for tap, row in enumerate(self.rows):
            self.v.broadcast(self.spare, mem(self.weights, f32.size_bytes * (r * len(self.rows) + tap), size=4))
            if tap == 0:
                self.v.mul(self.result, row, self.spare)
            else:
                self.v.fma(self.result, row, self.spare)
        self.finish(self.result)
        return self.result

    def finish(self, x: Register) -> None:
        """Post-ops."""
        if self.spec.chain:
            apply_composed(self.spec.chain, self.v, x, (), self.spares, self.slots)

    def put(self, at: Any, x: Register, is_last: bool) -> None:
        """Store a vector, which is not needed again if `is_last`."""
        (self.store if self.target is self.v else self.target.store)(at, x)
