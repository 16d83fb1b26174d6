"""Rows of which every element sums what its taps have: specs and code that local response normalization and its
gradient have in common.

A tap is another place of src, so many bytes away.  Elements at the edges of a row, or of each of the equal pieces
that a row consists of, have fewer taps: the lanes of the others are not loaded, or, where the tap is a whole row
that exists, loaded with those that have it, and zeroed.  What taps have is added in their order.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import lcm
from typing import Final, NamedTuple

from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.row_code import DST, SRC, Rows
from asmdnn.generators.functions.rows import Vectors, rows_touched
from asmdnn.generators.stretches import merged
from asmdnn.isa.assembler import Register
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

AT_ONCE: Final = 4


class Tap(NamedTuple):
    """A place that the elements from `first` to `last` of a piece have, so many bytes from each; last is exclusive.

    whole: all of the row is there, and may be read.
    """

    offset_bytes: int
    first: int
    last: int
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TapRows:
    """Rows of src and dst, and the taps of each element.  piece: elements of the pieces that a row consists of."""

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    taps: tuple[Tap, ...]
    piece: int

    @property
    def read_beside(self) -> range:
        """Arguments that are read, laid out as dst."""
        return range(0)

    @property
    def written(self) -> range:
        return range(DST, DST + 1)

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
        src = [Range(SRC, begin, end) for begin, end in reads]
        beside, written = (
            [found for argument in some for found in self.laid_out(argument)]
            for some in (self.read_beside, self.written)
        )
        return Footprint((*src, *beside), tuple(written))

    def laid_out(self, argument: int) -> tuple[Range, ...]:
        """An argument that lies as dst."""
        return tuple(rows_touched(argument, self.rows, self.dst_row_bytes, self.elements))

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


class TapSums(Rows):
    """A row at a time: stretches of vectors of which all have the same taps, in loops."""

    def __init__(self, spec: TapRows, v: Vector) -> None:
        steps = dict.fromkeys({*spec.read_beside, *spec.written} - {DST}, spec.dst_row_bytes)
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
        asm.role("sums")
        sums = v.registers.take("sum", len(lanes))
        started: set[int] = set()
        for t, tap in enumerate(spec.taps):
            self.add(tap, [of_vector[t] for of_vector in lanes], vectors, sums, started)
        asm.role("results")
        self.finish(vectors, sums)
        if tail:
            tail.release()

    def finish(self, vectors: Vectors, sums: Sequence[Register]) -> None:
        """Store what is made of the sums, and free their registers."""
        raise NotImplementedError

    def start(self, total: Register, x: Register) -> None:
        """total = what a first tap counts for."""
        raise NotImplementedError

    def count(self, total: Register, x: Register) -> None:
        """The same of a further tap, added."""
        raise NotImplementedError

    def add(
        self, tap: Tap, lanes: Sequence[int], vectors: Vectors, sums: Sequence[Register], started: set[int]
    ) -> None:
        """What a tap counts for; vectors whose neighbours have the same lanes share the mask."""
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
                    self.count(sums[j], x)
                else:
                    self.start(sums[j], x)
                started.add(j)
                v.registers.free(x)
            if mask:
                mask.release()
