"""Gradients of weights of groups with few channels, depthwise ones first of all: rows of the image, of one vector of
channels, at the positions of lines of a kernel.

    weights[i, l, k, c] (+)= sum over taps t, columns x that k reaches of src[t, l, x, k, c'] * diff_dst[t, x, c]

where c' is input i of the group of c, c itself if a group has one.

| argument | dtype[shape] | what it is |
|---|---|---|
| src      | dtype[..., lanes] | line l, column x of position k: lines[l] + x * src_step + positions[k] after a tap |
| diff_dst | dtype[..., lanes] | column x is x * dst_step bytes after a tap's place |
| weights  | f32[group, lines, positions, lanes] | input_step and weights_step bytes apart; read if the sums go on |
| taps     | int64[...] | a count, then (src, diff_dst) byte offsets, one pair for every row of the image, or two rows |

Lanes are channels, all real.  A segment is a run of columns with the positions that lie inside src, so that padding is
never read.  Every source vector is loaded once for the columns that are unrolled, and used by all whose windows have
it, while diff_dst of these waits in registers; with more positions than that takes, sources are multiplied from memory.
Where positions are few, columns take turns in several sets of sums, for a multiply waits four cycles for the one
before; the sets are added in the end, in their order.

A lane needs all inputs of its group: they come by shuffles of the source vector (Vector.spread), or broadcast from
memory where a group fills a vector, and no lane is wasted.

Rows of bf16 and f16 become f32 as they are loaded.  A level that multiplies pairs of bf16 takes two rows of the image
at once, which are joined lane by lane (row_factors.py): the second one is at one distance from the first for all taps.
"""

from itertools import product
from typing import Any, NamedTuple

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range, TapList, joined
from asmdnn.generators.dot.row_factors import row_factors
from asmdnn.generators.dot.sums_in_registers import columns_shared, spreads_memory, vectors_left
from asmdnn.generators.stepping import unless_zero
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

ARGUMENTS = ("src", "diff_dst", "weights", "taps")
SRC, DIFF_DST, WEIGHTS, TAPS = range(len(ARGUMENTS))
SUMS = 8  # that wait for one another less than they are computed
UNROLLED = 16  # columns of a segment without a loop
COLUMNS = 8  # at least, of a round of a loop


@dataclass(frozen=True, slots=True)
class ColumnRun:
    """Columns [first, first + count) of a row, and the numbers of the positions that they reach."""

    positions: tuple[int, ...]
    first: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedWeightsSpec:
    """Everything that the bytes of the kernel depend on; distances in bytes.

    dtype: of src and diff_dst.  second_row: how far the second row of a tap is from its first, in src and in diff_dst,
    if it has two; only of types that the level multiplies in pairs.  lines: where those of the kernel begin in src,
    which all reach every row of the taps.  group: inputs, and outputs, of a group: a power of two, of f32 up to the
    lanes, else below them.  prefetched: for each column, from its place in src.
    """

    isa: str
    positions: tuple[int, ...]
    segments: tuple[ColumnRun, ...]
    src_step: int
    dst_step: int
    weights_step: int
    accumulate: bool = False
    dtype: DataType = f32
    second_row: tuple[int, int] | None = None
    lines: tuple[int, ...] = (0,)
    group: int = 1
    input_step: int = 0
    prefetched: tuple[int, ...] = ()
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        rows = ["2rows"] if self.second_row else []
        rows += [f"{len(self.lines)}lines"] * (len(self.lines) > 1)
        words = [str(len(self.positions)), *rows, *["acc"] * self.accumulate, checksum(self)]
        kind = "depthwise" if self.group == 1 else f"grouped{self.group}"
        return f"{kind}_weights_{self.dtype}_{'_'.join(words)}__{self.isa}"

    @property
    def held(self) -> int:
        """Vectors of diff_dst in registers: of all columns that share a source vector, else one."""
        shared = columns_shared(self.positions, self.src_step)
        return shared if shared + self.count <= vectors_left(self.isa, self.dtype, self.group) else 1

    @property
    def sets(self) -> int:
        """Of sums: columns take turns."""
        room = vectors_left(self.isa, self.dtype, self.group) - self.held
        return max(1, min(-(-SUMS // self.count), room // self.count))

    @property
    def columns(self) -> int:
        """Of a round of a loop: each set as often."""
        return self.sets * -(-COLUMNS // self.sets)

    def footprint(self) -> Footprint:
        size, own_size = (of.size_bytes * lanes_of(self.isa) for of in (f32, self.dtype))
        columns = [(x, s) for s in self.segments for x in range(s.first, s.first + s.count)]
        factors = {(DIFF_DST, x * self.dst_step) for x, _ in columns}
        factors |= {
            (SRC, line + x * self.src_step + self.positions[k])
            for line in self.lines
            for x, s in columns
            for k in s.positions
        }
        rows = [{SRC: src, DIFF_DST: dst} for src, dst in ((0, 0), self.second_row or (0, 0))]
        read = {Range(of, at + row[of], at + row[of] + own_size) for of, at in factors for row in rows}
        sums = tuple(Range(WEIGHTS, at, at + size) for at in self.places())
        return Footprint(sums * self.accumulate, sums, TapList(TAPS, (SRC, DIFF_DST), (joined(read),)))

    @property
    def count(self) -> int:
        """Of sums."""
        return self.group * self.of_input

    @property
    def of_input(self) -> int:
        """Of sums, those of an input of every group."""
        return len(self.lines) * len(self.positions)

    def places(self) -> list[int]:
        """Where weights hold the sums, in order."""
        inputs, sums = range(self.group), range(self.of_input)
        return [i * self.input_step + n * self.weights_step for i, n in product(inputs, sums)]

    def generate(self, asm: Assembler) -> None:
        GroupedWeightsCode(self, asm).emit()
        asm.ret()


class Use(NamedTuple):
    """A source vector, `place` bytes after the beginning of a line, that a column multiplies for a sum: input `part` of
    every group."""

    line: int
    place: int
    part: int
    column: int
    sum: int

    def is_of(self, other: "Use") -> bool:
        """Whether both are of one vector."""
        return (self.line, self.place, self.part) == (other.line, other.place, other.part)


class GroupedWeightsCode:
    """The emission: pointers to a tap's row, which move on after a loop over columns."""

    def __init__(self, spec: GroupedWeightsSpec, asm: Assembler) -> None:
        self.spec, self.asm = spec, asm
        self.v: Vector = vector_of(spec.isa, asm)
        self.factors = row_factors(spec.dtype, spec.isa, self.v)
        self.sums: list[list[Any]] = self.v.registers.take("sums", spec.sets, spec.count)
        self.free: list[Register] = list(self.v.registers.take("diff_dst", spec.held))
        self.source: Register = self.v.registers.take("src")
        apart = spec.group > 1 and not spreads_memory(spec.dtype)
        self.inputs: Register = self.v.registers.take("all inputs") if apart else self.source
        self.bases = [asm.gp.take(name) for name in ("src", "diff_dst")]
        self.row = [asm.gp.take(name) for name in ("row of src", "row of diff_dst")]
        self.taps, self.left, self.columns = (asm.gp.take(name) for name in ("taps", "rows left", "columns left"))
        self.moved = 0  # columns that the pointers to the row have moved

    def emit(self) -> None:
        asm = self.asm
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
            self.moved = 0
            for segment in self.spec.segments:
                self.segment(segment)
        self.finish()

    def segment(self, segment: ColumnRun) -> None:
        columns, whole = self.spec.columns, 0
        if segment.count > UNROLLED:
            rounds = segment.count // columns
            whole = rounds * columns
            self.asm.MOV(self.columns, rounds)
            with self.asm.loop(self.columns, "columns"):
                self.some(segment, segment.first, columns)
                for pointer, step in zip(self.row, (self.spec.src_step, self.spec.dst_step), strict=True):
                    self.asm.ADD(pointer, columns * step)
            self.moved += whole
        self.some(segment, segment.first + whole, segment.count - whole)

    def some(self, segment: ColumnRun, first: int, count: int) -> None:
        """sums += src * diff_dst for some columns, unrolled, source by source or column by column."""
        spec, begin = self.spec, first - self.moved
        uses = [
            Use(
                line=line,
                place=(begin + x) * spec.src_step + spec.positions[k],
                part=part,
                column=x,
                sum=part * spec.of_input + n * len(spec.positions) + k,
            )
            for x in range(count)
            for n, line in enumerate(spec.lines)
            for k in segment.positions
            for part in range(spec.group)
        ]
        if spec.held > 1:
            uses.sort(key=lambda use: (use.place, use.line, use.part, use.column, use.sum))
        factors: dict[int, Register] = {}
        last = {use.column: i for i, use in enumerate(uses)}
        for i, use in enumerate(uses):
            x = use.column
            if x not in factors:
                factors[x] = self.free.pop()
                self.factors.load(factors[x], self.rows(1, (begin + x) * spec.dst_step))
                for place in spec.prefetched:
                    self.asm.PREFETCHT0(mem(self.row[SRC], (begin + x) * spec.src_step + place))
            self.multiply(factors[x], uses, i)
            if last[x] == i:
                self.free.append(factors.pop(x))

    def multiply(self, factor: Register, uses: list[Use], i: int) -> None:
        """The product of a column at a position: of a source in its register, if several have it or a type must, else
        from memory."""
        use = uses[i]
        at = use.line + use.place
        alike = [uses[n].is_of(use) for n in (i - 1, i + 1) if 0 <= n < len(uses)]
        rows = self.rows(0, at)
        total = self.sums[use.column % self.spec.sets][use.sum]
        if self.spec.group == self.v.lanes:  # an input for all of them
            element = rows[0].shifted(f32.size_bytes * use.part).sized(f32.size_bytes)
            self.v.outer_product([[total]], [factor], [element], [self.source])
            return
        if self.factors.reads_memory and self.spec.group == 1 and not any(alike):
            self.factors.multiply(total, factor, rows[0])
            return
        if i == 0 or not uses[i - 1].is_of(use):
            self.load_source(rows, use, uses[i - 1] if i else None)
        self.factors.multiply(total, factor, self.source)

    def load_source(self, rows: list[Pointer], use: Use, before: Use | None) -> None:
        """The source vector, or an input of every group in all of its lanes."""
        group, dtype = self.spec.group, self.spec.dtype
        if group > 1 and spreads_memory(dtype):
            self.v.spread(self.source, rows[0], group, use.part)
            return
        if before is None or (use.line, use.place) != (before.line, before.place):
            self.factors.load(self.inputs, rows)
        if group > 1:
            self.v.spread(self.source, self.inputs, group, use.part)

    def rows(self, number: int, at: int) -> list[Pointer]:
        """A vector in each row of a tap, of src or diff_dst."""
        apart = (0,) if self.spec.second_row is None else (0, self.spec.second_row[number])
        return [mem(self.row[number], at + more, size=self.v.bytes) for more in apart]

    def finish(self) -> None:
        """The sets together, on top of what weights held, and stored."""
        asm, weights = self.asm, self.bases[0]
        asm.role("finish")
        asm.MOV(weights, mem(asm.frame, 8 * WEIGHTS))
        first, *others = self.sums
        for k, (total, place) in enumerate(zip(first, self.spec.places(), strict=True)):
            for other in others:
                self.v.add(total, total, other[k])
            at = mem(weights, place, size=self.v.bytes)
            if self.spec.accumulate:
                self.v.add(total, total, at)
            self.v.store(at, total)
