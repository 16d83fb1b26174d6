"""Pooling where pixels are dense: lanes are pixels of a row (nchw).

    dst[i, x] = max or mean over rows r and columns t of a window of src[i, r, stride * x - before + dilation * t]

| argument | dtype[shape] | what it is |
|---|---|---|
| src | kind | lines in nested loops, each a window of rows of `width` dense elements; only read |
| dst | kind | a line of `results` elements for each, in the same loops; only written, or read by a sum |

What lies before and after a row counts as nothing, as does a window of no rows.  A line is reduced over its rows
first, into a buffer on the stack with room for what lies outside, and then over columns, by loads from neighbouring
addresses; of a stride shuffles keep every other lane, or every third, and so on.  BATCH lines are reduced over their
rows before the first of them is read again: a load across two stores that are still under way would wait for both.  No
gathers, and no element of src is loaded twice for columns.

With `streaming`, vectors go past the caches if dst is aligned to a vector, as all its steps and lines must be.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import prod
from struct import pack

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import apply_composed, chain_words
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.values import Slots, Source
from asmdnn.generators.pooling.results import Results, Store
from asmdnn.generators.pooling.window import ARGUMENTS, DST, SRC, PixelLoop, Pooled, Reduction, Taps, offsets
from asmdnn.generators.stepping import repeated
from asmdnn.generators.stores import emit_stored
from asmdnn.generators.stretches import touched
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.elements import size_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_class, vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

BATCH = 8  # one line at a time is half as fast where rows are short
INSTRUCTIONS = 1500  # of a batch, which is unrolled
BUFFER_BYTES = 16384  # of a batch, which stays in L1 beside the rows that it comes from


def most_stride(isa: str) -> int:
    """Of windows: a register for each step is half of them."""
    return vector_class(isa).count // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRowsSpec(Pooled):
    """Everything that the bytes of the kernel depend on.

    loops: of lines, the outermost first.  rows: the window's axes but for the last one.  columns: positions along the
    row, `dilation` elements apart.  divisors: of a mean, (divisor, how many results in a row have it), in order.  kind:
    the type in memory; others than f32 are brought to it, and rounded from it, and have no post-ops.
    """

    isa: str
    alg: str
    loops: tuple[PixelLoop, ...]
    rows: tuple[Taps, ...]
    width: int
    results: int
    columns: int
    stride: int
    dilation: int
    before: int
    divisors: tuple[tuple[int, int], ...] = ()
    chain: tuple[PostOp, ...] = ()
    streaming: bool = False
    kind: str = "f32"

    @property
    def name(self) -> str:
        sizes = "x".join(str(n) for n in (*(taps.positions for taps in self.rows), self.columns))
        words = [f"{self.alg}pool_rows_{self.kind}_{sizes}s{self.stride}_{self.width}", *chain_words(self.chain)]
        words += ["streaming"] * self.streaming
        return f"{'_'.join(words)}_{checksum(self)}__{self.isa}"

    @property
    def reach(self) -> int:
        """How many elements from the row's first to the last one that a result asks for, outside or not."""
        return (self.results - 1) * self.stride - self.before + (self.columns - 1) * self.dilation + 1

    @property
    def lead_bytes(self) -> int:
        """What a line of the buffer has in front of the row."""
        size = vector_bytes(self.isa)
        return -(-F32_BYTES * self.before // size) * size

    @property
    def pitch_bytes(self) -> int:
        """From a line of the buffer to the next one: all that vectors read, and a vector after the row."""
        lanes = lanes_of(self.isa)
        missing = -self.results % lanes * self.stride  # results that are computed and not stored
        reach = max(self.width, lanes) + lanes, self.reach + missing + self.stride - 1
        return self.lead_bytes + -(-max(reach) // lanes) * vector_bytes(self.isa)

    @property
    def batch(self) -> int:
        vectors, results = -(-self.width // lanes_of(self.isa)), -(-self.results // lanes_of(self.isa))
        line = (
            vectors * (2 * prod(taps.positions for taps in self.rows) + 1) + results * (self.columns + 1) * self.stride
        )
        return max(1, min(BATCH, self.loops[-1].times, BUFFER_BYTES // self.pitch_bytes, INSTRUCTIONS // line))

    def line(self, number: int) -> int:
        """Where the row of a line of the buffer begins."""
        return number * self.pitch_bytes + self.lead_bytes

    def footprint(self) -> Footprint:
        lines = (Taps(x.times, x.src_bytes) for x in self.loops)
        src = touched(offsets((*lines, *self.rows)), size_of(self.kind) * self.width)
        dst = touched(offsets(Taps(x.times, x.dst_bytes) for x in self.loops), size_of(self.kind) * self.results)
        reads, writes = ([Range(i, *ends) for ends in found] for i, found in ((SRC, src), (DST, dst)))
        return Footprint((*reads, *(writes if self.reads_dst else ())), tuple(writes))

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = PoolRowsCode(self, v)
        code.surround()
        emit_stored(v, code.dst, partial(code.loop, 0), self.streaming)


class PoolRowsCode:
    """The emission of a kernel: pointers into src, dst and the buffer on the stack."""

    def __init__(self, spec: PoolRowsSpec, v: Vector) -> None:
        asm = v.asm
        self.spec, self.v, self.asm, self.slots = spec, v, asm, Slots(v)
        self.src, self.dst = (asm.gp.take(name) for name in ARGUMENTS)
        asm.MOV(self.src, mem(asm.frame, 8 * SRC))
        asm.MOV(self.dst, mem(asm.frame, 8 * DST))
        self.buffer, *_ = [asm.stack(v.bytes) for _ in range(spec.batch * spec.pitch_bytes // v.bytes)]
        self.reduction = Reduction(v, spec.alg, spec.kind)
        self.element, self.results = self.reduction.element, Results(self.reduction, spec.isa, self.slots)
        self.steps_of_lanes = v.registers.take("result", spec.stride)
        self.spare = v.registers.take("order of lanes")
        self.tails = {n: v.tail(n) for n in {spec.width, spec.results % v.lanes} if 0 < n < v.lanes}

    def surround(self) -> None:
        """What lies outside of the rows, once for all lines; all of it, as numbers that are left there may be slow."""
        self.asm.role("outside")
        end = self.spec.pitch_bytes - self.spec.lead_bytes - self.v.bytes
        before = range(-self.spec.lead_bytes, 0, self.v.bytes)
        starts = [*before, *range(F32_BYTES * self.spec.width, end, self.v.bytes), end]
        nothing = self.steps_of_lanes[0]
        self.reduction.start(nothing)
        for number, at in product(range(self.spec.batch), starts):
            self.v.store(self.buffer.shifted(self.spec.line(number) + at), nothing)

    def loop(self, level: int, store: Store) -> None:
        """The loops from this level on; pointers end where the next line of the loop outside would follow."""
        loop, batch = self.spec.loops[level], self.spec.batch
        if level < len(self.spec.loops) - 1:
            inner = self.spec.loops[level + 1]
            src, dst = loop.src_bytes - inner.times * inner.src_bytes, loop.dst_bytes - inner.times * inner.dst_bytes
            with repeated(self.asm, loop.times, f"loop {level}", ((self.src, src), (self.dst, dst))):
                self.loop(level + 1, store)
            return
        batches, rest = divmod(loop.times, batch)
        for times, count in ((batches, batch), (1, rest)):
            if times and count:
                with repeated(self.asm, times, "lines", self.steps(count)):
                    for number in range(count):
                        self.over_rows(number)
                    for number in range(count):
                        self.over_columns(number, store)

    def steps(self, lines: int) -> tuple[tuple[Register, int], ...]:
        """How far pointers move in so many lines."""
        loop = self.spec.loops[-1]
        return (self.src, lines * loop.src_bytes), (self.dst, lines * loop.dst_bytes)

    def over_rows(self, number: int) -> None:
        """A line of the buffer; the last vector overlaps the one before, so that it ends with the row."""
        self.asm.role("rows")
        width, lanes = self.spec.width, self.v.lanes
        part: Lanes = self.tails[width] if width < lanes else self.v
        loaded, size = self.element.lanes(self.v, part), self.element.size_bytes
        acc = self.steps_of_lanes[0]
        for x in [*range(0, width - lanes, lanes), max(0, width - lanes)]:
            rows = offsets(self.spec.rows)
            if not rows:
                self.reduction.start(acc)
            for i, row in enumerate(rows):
                at = number * self.spec.loops[-1].src_bytes + row + size * x
                self.reduction.take_in(acc, mem(self.src, at, size=size * lanes), loaded, i == 0)
            if part is not self.v:
                self.reduction.fill(acc, part)
            self.v.store(self.buffer.shifted(self.spec.line(number) + F32_BYTES * x), acc)

    def over_columns(self, number: int, store: Store) -> None:
        """A line of results."""
        self.asm.role("columns")
        spec, v = self.spec, self.v
        for x in range(0, spec.results, v.lanes):
            count = min(v.lanes, spec.results - x)
            steps = self.steps_of_lanes[: (count - 1) * spec.stride // v.lanes + 1]
            for i, acc in enumerate(steps):
                first = spec.line(number) + F32_BYTES * (x * spec.stride - spec.before + i * v.lanes)
                v.load(acc, self.buffer.shifted(first))
                for column in range(1, spec.columns):
                    self.reduction.join(acc, self.buffer.shifted(first + F32_BYTES * column * spec.dilation))
            acc = steps[0]
            if spec.stride == 2:
                v.evens(acc, steps[-1], self.spare)
            elif spec.stride > 2:
                v.every(steps, spec.stride, self.spare, self.reduction.staged)
            self.finish(acc, number * spec.loops[-1].dst_bytes + self.element.size_bytes * x, x, count, store)

    def finish(self, acc: Register, at_bytes: int, x: int, count: int, store: Store) -> None:
        """Divide, post-ops, store."""
        spec, v = self.spec, self.v
        self.divide(acc, [n for n, times in spec.divisors for _ in range(times)][x : x + count])
        part: Lanes = v if count == v.lanes else self.tails[count]
        at = mem(self.dst, at_bytes, size=v.lanes * self.element.size_bytes)
        if spec.chain:
            sources = [Source(lambda: at, part)] * spec.reads_dst
            apply_composed(spec.chain, v, acc, sources, (*self.reduction.staged, self.spare), self.slots)
        self.results.convert(acc)
        self.results.store([acc], [at], [self.element.lanes(v, part)], store)

    def divide(self, acc: Register, divisors: Sequence[int]) -> None:
        """By one number, or by one for each lane."""
        if len(set(divisors)) == 1:
            self.reduction.divide(acc, divisors[0])
        elif divisors:
            lanes = [*divisors, *[1] * (self.v.lanes - len(divisors))]
            data = pack(f"<{self.v.lanes}f", *lanes)
            self.asm.VDIVPS(acc, acc, self.asm.const(data, self.v.bytes, size=self.v.bytes))
