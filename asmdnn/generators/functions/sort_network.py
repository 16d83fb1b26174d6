"""Sorting of pairs in memory, in an order of comparisons that no data change; the largest come first.

A pair is a word that is compared as f64, so that a comparison is a minimum and a maximum.  `size` of them, a power of
two, lie in vectors of `lanes`: pair number e is lane e // rows of vector e % rows.  So lanes are columns, whose
sorting moves nothing across lanes: groups of vectors by Batcher's network (Knuth, volume 3, 5.3.4), then merges by
bitonic networks, a few steps of which keep their vectors in registers.  Merges of columns need lanes beside one
another, first backwards, then in steps of half the columns and less.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from asmdnn.isa.assembler import Pointer, Register, mem
from asmdnn.isa.pairs import PairLanes
from asmdnn.isa.vector import Vector

MOST_STEPS = {16: 3, 32: 4}  # of a network between load and store, by registers


def batcher(count: int) -> Iterator[tuple[int, int]]:
    """The comparisons that sort `count`, a power of two: odd-even merges."""
    width = 1
    while width < count:
        step = width
        while step:
            for first in range(step % width, count - step, 2 * step):
                for i in range(first, first + step):
                    if i // (2 * width) == (i + step) // (2 * width):
                        yield i, i + step
            step //= 2
        width *= 2


def bitonic(count: int, backwards: bool) -> Iterator[tuple[int, int]]:
    """The comparisons of a merge of `count`: halves that are sorted, if `backwards`, or where the second one is
    sorted the other way."""
    half = count // 2
    if backwards:
        yield from ((i, count - 1 - i) for i in range(half))
    step = half // 2 if backwards else half
    while step:
        yield from ((i, i + step) for i in range(count) if not i & step)
        step //= 2


class SortNetwork:
    """Emits the sorting of `size` pairs, at least two vectors of them."""

    def __init__(self, v: Vector, pairs: PairLanes, size: int) -> None:
        self.v, self.asm, self.pairs = v, v.asm, pairs
        self.rows = size // pairs.lanes
        self.most = MOST_STEPS[v.count]
        self.spare = v.registers.take("spare")

    def sort(self, start: Pointer) -> None:
        """All pairs from `start` on."""
        group = min(self.rows, 1 << self.most)
        self.asm.role(f"sort columns of {group}")
        self.network(start, group, 1, list(batcher(group)), backwards=False)
        while group < self.rows:
            group *= 2
            self.merge(start, group, backwards=True)
        columns = 2
        while columns <= self.pairs.lanes:
            self.merge_columns(start, columns)
            columns *= 2

    def merge(self, start: Pointer, group: int, backwards: bool) -> None:
        """Every group of so many vectors, from halves, see `bitonic`."""
        self.asm.role(f"merge columns of {group}")
        steps = group.bit_length() - 1
        while steps:
            some = -(-steps // -(-steps // self.most))
            count = 1 << some
            self.network(start, count, group // count, list(bitonic(count, backwards)), backwards)
            group, steps, backwards = group // count, steps - some, False

    def network(
        self, start: Pointer, count: int, distance: int, network: Sequence[tuple[int, int]], backwards: bool
    ) -> None:
        """A network of `count` vectors `distance` apart, for all of them.  backwards: those of the second half come
        from the last one to the first."""
        asm, size = self.asm, self.v.bytes
        half, step = count // 2, distance * size
        with asm.gp.taken("first half") as first, asm.gp.taken("second half") as second, self.counters() as counters:
            groups, places = counters
            asm.LEA(first, start)
            back = backwards and distance > 1
            with self.times(groups, self.rows // (count * distance), "groups"):
                if back:
                    asm.LEA(second, mem(first, (distance - 1) * size + half * step))
                with self.times(places, distance, "places"):
                    low = [mem(first, i * step, size=size) for i in range(count)]
                    high = [mem(second, i * step, size=size) for i in range(half)]
                    self.compare(low[:half] + (high if back else low[half:]), network)
                    asm.ADD(first, size)
                    if back:
                        asm.SUB(second, size)
                if count > 1:
                    asm.ADD(first, (count - 1) * step)

    def compare(self, places: Sequence[Pointer], network: Sequence[tuple[int, int]]) -> None:
        v = self.v
        held = v.registers.take("pairs", len(places))
        at = dict(enumerate(held))
        for i, place in enumerate(places):
            v.load(at[i], place)
        for i, j in network:
            self.sort_two(at, i, j)
        for i, place in enumerate(places):
            v.store(place, at[i])
        taken = {*held} | {self.spare}
        self.spare = next(x for x in taken if x not in at.values())
        v.registers.free(*at.values())

    def sort_two(self, at: dict[int, Register], i: int, j: int) -> None:
        """The larger ones to i; the spare register changes places with that of j."""
        asm = self.asm
        asm.VMINPD(self.spare, at[i], at[j])
        asm.VMAXPD(at[i], at[i], at[j])
        at[j], self.spare = self.spare, at[j]

    def merge_columns(self, start: Pointer, columns: int) -> None:
        """Every group of so many columns, whose halves are sorted."""
        v, asm, size, half = self.v, self.asm, self.v.bytes, columns // 2
        asm.role(f"merge {columns} columns")
        names = ("first", "last")
        with asm.gp.taken(names[0]) as first, asm.gp.taken(names[1]) as last, self.counters() as (left, _):
            asm.LEA(first, start)
            asm.LEA(last, mem(first, (self.rows - 1) * size))
            with self.times(left, self.rows // 2, "rows"), v.registers.taken("pairs", 5) as (a, b, high, low, other):
                v.load(a, mem(first, size=size))
                v.load(b, mem(last, size=size))
                self.pairs.swap(other, b, columns - 1)
                asm.VMAXPD(high, a, other)
                asm.VMINPD(low, a, other)
                self.pairs.upper(a, half, high, low)
                self.pairs.upper(other, half, low, high)
                self.pairs.swap(b, other, columns - 1)
                for x, place in ((a, first), (b, last)):
                    self.across(x, half // 2, (high, low, other))
                    v.store(mem(place, size=size), x)
                asm.ADD(first, size)
                asm.SUB(last, size)
        self.merge(start, self.rows, backwards=False)

    def across(self, x: Register, distance: int, spare: Sequence[Register]) -> None:
        """The steps of a merge across lanes of a vector, from this distance on."""
        high, low, other = spare
        while distance:
            self.pairs.swap(other, x, distance)
            self.asm.VMAXPD(high, x, other)
            self.asm.VMINPD(low, x, other)
            self.pairs.upper(x, distance, high, low)
            distance //= 2

    def take_better(self, best: Pointer, others: Pointer, filler: Register) -> None:
        """The larger half of both, sorted, where `best` is; `filler` in all of the others.  Both are sorted."""
        v, asm, size, lanes = self.v, self.asm, self.v.bytes, self.pairs.lanes
        asm.role("the better half of two")
        with asm.gp.taken("first") as first, asm.gp.taken("last") as last, self.counters() as (left, _):
            asm.LEA(first, best)
            asm.LEA(last, others.shifted((self.rows - 1) * size))
            with self.times(left, self.rows, "rows"), v.registers.taken("pairs", 4) as (a, b, low, other):
                v.load(a, mem(last, size=size))
                v.store(mem(last, size=size), filler)
                self.pairs.swap(b, a, lanes - 1)
                asm.VMAXPD(a, b, mem(first, size=size))
                self.across(a, lanes // 2, (b, low, other))
                v.store(mem(first, size=size), a)
                asm.ADD(first, size)
                asm.SUB(last, size)
        self.merge(best, self.rows, backwards=False)

    @contextmanager
    def counters(self) -> Iterator[tuple[Register, Register]]:
        with self.asm.gp.taken("groups left") as groups, self.asm.gp.taken("places left") as places:
            yield groups, places

    @contextmanager
    def times(self, counter: Register, count: int, name: str) -> Iterator[None]:
        """A loop, unless it is of one turn."""
        if count == 1:
            yield
            return
        self.asm.MOV(counter, count)
        with self.asm.loop(counter, name):
            yield
