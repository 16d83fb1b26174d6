"""Local response normalization of dense rows: with s the sum of squares over the taps that element e of a row has,

    base[r, e] = k + factor * s;   dst[r, e] = src[r, e] * base[r, e]^-beta

| argument | dtype[shape] | what it is |
|---|---|---|
| src       | f32[rows, elements] | rows src_row_bytes apart, elements dense; only read, as far as taps say |
| dst       | f32[rows, elements] | rows dst_row_bytes apart, elements dense; only written |
| workspace | f32, laid out as dst | base; only written; not there unless the spec says so |

A tap is another place of src, so many bytes away.  Elements at the edges of a row, or of each of the equal pieces
that a row consists of, have fewer taps: the lanes of the others are not loaded, or, where the tap is a whole row
that exists, loaded with those that have it, and zeroed.  Squares are added in the order of the taps, rounded once for
each.

beta = 0.75 is x / (sqrt(base) * sqrt(sqrt(base))), four roundings in a row; other powers are those of `pow`.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import lcm
from typing import Final, NamedTuple

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.eltwise.logarithm import power
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import DST, SRC, Rows
from asmdnn.generators.functions.rows import Vectors, rows_touched
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Assembler, Register
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS: Final = ("src", "dst", "workspace")
WORKSPACE: Final = 2
AT_ONCE: Final = 4


class Tap(NamedTuple):
    """A place that the elements from `first` to `last` of a piece have, so many bytes from each; last is exclusive.

    whole: all of the row is there, and may be read.
    """

    offset_bytes: int
    first: int
    last: int
    whole: bool = False


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LrnSpec:
    """Everything that the bytes of such a kernel depend on.  piece: elements of the pieces that a row consists of."""

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    taps: tuple[Tap, ...]
    piece: int
    k: float
    factor: float
    beta: float
    has_workspace: bool = False

    @property
    def name(self) -> str:
        size = f"{self.rows}x{self.elements}_{len(self.taps)}taps"
        return f"lrn_f32_{size}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS if self.has_workspace else ARGUMENTS[:WORKSPACE]

    def footprint(self) -> Footprint:
        """Taps that stay within a piece read nothing that the row has not."""
        spans = {(0, self.elements)}
        for tap in self.taps:
            at = tap.offset_bytes // F32_BYTES
            if tap.whole:
                spans |= {(at + begin, at + end) for begin, end in self.vectors_of_tap(tap)}
            elif self.piece == self.elements:
                spans.add((at + tap.first, at + tap.last))
        row = merged(spans)
        starts = [r * self.src_row_bytes for r in range(self.rows)]
        reads = merged((at + F32_BYTES * begin, at + F32_BYTES * end) for at in starts for begin, end in row)
        src = tuple(Range(SRC, begin, end) for begin, end in reads)
        arguments = range(DST, len(self.frame))
        written = (rows_touched(argument, self.rows, self.dst_row_bytes, self.elements) for argument in arguments)
        return Footprint(src, tuple(found for ranges in written for found in ranges))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        LrnCode(self, vector_of(self.isa, asm)).all_rows()
        asm.ret()

    def vectors_of_tap(self, tap: Tap) -> Iterator[tuple[int, int]]:
        """The elements of vectors of which some have the tap."""
        lanes = lanes_of(self.isa)
        for j in range(-(-self.elements // lanes)):
            if self.lanes_of_tap(tap, j, lanes):
                yield j * lanes, min((j + 1) * lanes, self.elements)

    def lanes_of_tap(self, tap: Tap, vector: int, lanes: int) -> int:
        """The lanes of a vector of the row that have the tap, as bits."""
        places = range(vector * lanes, min((vector + 1) * lanes, self.elements))
        return sum(1 << lane for lane, e in enumerate(places) if tap.first <= e % self.piece < tap.last)

    def stretches(self, lanes: int) -> Iterator[tuple[int, int, list[list[int]]]]:
        """(first vector, repetitions, lanes of every tap for each of some vectors that repeat)."""
        together = lcm(self.piece, lanes) // lanes if self.piece < self.elements else 1
        vectors = -(-self.elements // lanes)
        found = [[self.lanes_of_tap(tap, j, lanes) for tap in self.taps] for j in range(vectors)]
        groups = [found[j : j + together] for j in range(0, vectors, together)]
        first = 0
        for group, equal in groupby(groups):
            count = len(list(equal))
            yield first, count, group
            first += count * len(group)


def base_program(k: float, factor: float) -> Program:
    """k + factor * s, rounded once."""
    build = Builder()
    return build.finish(build.fma(build.inputs[0], factor, k))


def result_program(beta: float) -> Program:
    """x * base^-beta, of a base above 0."""
    build = Builder(2)
    x, base = build.inputs
    root = build.op("sqrt", base)
    if beta == 0.75:
        return build.finish(x / (root * build.op("sqrt", root)))
    if beta == 0.5:
        return build.finish(x / root)
    return build.finish(x / base if beta == 1 else x * power(build, base, -beta))


class LrnCode(Rows):
    """A row at a time: stretches of vectors of which all have the same taps, in loops."""

    def __init__(self, spec: LrnSpec, v: Vector) -> None:
        steps = {WORKSPACE: spec.dst_row_bytes} if spec.has_workspace else {}
        super().__init__(v, spec.rows, 1, (spec.src_row_bytes, spec.dst_row_bytes), steps)
        self.spec, self.all_lanes = spec, (1 << v.lanes) - 1
        self.place = v.asm.gp.take("bytes into the row")

    def some(self, rows: int) -> None:
        for first, count, group in self.spec.stretches(self.v.lanes):
            groups = max(1, AT_ONCE // len(group))
            loops, rest = divmod(count, groups)
            if loops == 1:
                rest, loops = count, 0
            if loops:
                self.loop(first, loops, group * groups)
            start = first + loops * groups * len(group)
            left = group * rest
            for done in range(0, len(left), AT_ONCE):
                self.vectors(start + done, left[done : done + AT_ONCE], None)

    def loop(self, first: int, count: int, lanes: Sequence[Sequence[int]]) -> None:
        """Equal groups of vectors, one after the other."""
        asm, step = self.v.asm, len(lanes) * self.v.bytes
        start = asm.new_label("vectors")
        asm.XOR(self.place, self.place)
        asm.bind(start)
        self.vectors(first, lanes, self.place)
        asm.ADD(self.place, step)
        asm.CMP(self.place, count * step)
        asm.JB(start)

    def vectors(self, first: int, lanes: Sequence[Sequence[int]], index: Register | None) -> None:
        """Some neighbours; lanes: of every tap, for each of them."""
        v, asm, spec = self.v, self.v.asm, self.spec
        exist = [min(v.lanes, spec.elements - (first + j) * v.lanes) for j in range(len(lanes))]
        tail = v.tail(exist[-1]) if index is None and exist[-1] < v.lanes else None
        parts = [v if count == v.lanes else tail for count in exist]
        vectors = Vectors(v, parts, first * v.bytes, index)  # type: ignore[arg-type]
        asm.role("sums of squares")
        sums = v.registers.take("sum", len(lanes))
        started: set[int] = set()
        for t, tap in enumerate(spec.taps):
            self.add(tap, [of_vector[t] for of_vector in lanes], vectors, sums, started)
        asm.role("powers")
        base = self.apply(base_program(spec.k, spec.factor), [sums])
        if spec.has_workspace:
            for j, (part, x) in enumerate(zip(vectors.parts, base, strict=True)):
                part.store(vectors.at(self.operands.register(WORKSPACE), j), x)
        results = self.apply(result_program(spec.beta), [vectors.sources(lambda: self.src), base])
        for j, (part, x) in enumerate(zip(vectors.parts, results, strict=True)):
            part.store_last(vectors.at(self.dst, j), x)
        v.registers.free(*results)
        if tail:
            tail.release()

    def add(
        self, tap: Tap, lanes: Sequence[int], vectors: Vectors, sums: Sequence[Register], started: set[int]
    ) -> None:
        """The squares of a tap; vectors whose neighbours have the same lanes share the mask."""
        v = self.v
        for bits, alike in groupby(range(len(lanes)), lambda j: lanes[j]):
            if not bits:
                continue
            mask = v.chosen(bits) if bits != self.all_lanes else None
            for j in alike:
                x = v.registers.take("neighbour")
                at = vectors.at(self.src, j, tap.offset_bytes)
                if mask and not tap.whole:
                    mask.load(x, at)
                else:
                    vectors.parts[j].load(x, at)
                    (mask or v).clear_rest(x)
                if j in started:
                    v.fma(sums[j], x, x)
                else:
                    v.mul(sums[j], x, x)
                started.add(j)
                v.registers.free(x)
            if mask:
                mask.release()
