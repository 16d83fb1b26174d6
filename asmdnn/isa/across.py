"""What moves lanes of a vector, or combines them: sums of lanes, prefix sums, permutations."""

from collections.abc import Callable, Sequence
from struct import pack
from typing import ClassVar

from asmdnn.isa.assembler import Assembler, Pointer, Register

Combine = Callable[[Register, Register, Register], None]
Source = Callable[[int, Register], Register | Pointer]  # a vector by its number, in memory or in a register


def spread_in_four(group: int, part: int) -> int:
    """VPERMILPS's immediate that spreads an element of every group of 1, 2 or 4."""
    return sum((lane // group * group + part) << 2 * lane for lane in range(4))


def ordered(shuffle: Callable[..., None], order: int) -> Combine:
    """A shuffle of two vectors with its immediate."""
    return lambda dst, a, b: shuffle(dst, a, b, order)


class Across:
    """The part of a vector level's operations in which lanes meet others."""

    asm: Assembler
    bytes: ClassVar[int]

    @property
    def lanes(self) -> int:
        return self.bytes // 4

    def load(self, dst: Register, src: Pointer) -> None:
        raise NotImplementedError

    def broadcast(self, dst: Register, src: Pointer) -> None:
        raise NotImplementedError

    def add(self, dst: Register, a: Register, b: Register | Pointer) -> None:
        raise NotImplementedError

    def keep_last(self, x: Register, count: int) -> None:
        """x = 0 in all lanes but the last `count`, 0 < count < lanes."""
        raise NotImplementedError

    def evens(self, x: Register, y: Register, spare: Register) -> None:
        """x = the lanes 0, 2, 4 .. of x, and then those of y; `spare` is overwritten."""
        raise NotImplementedError

    def across(self, x: Register, spare: Register, combine: Combine) -> None:
        """Reduce x, halves first, and broadcast the result to every lane; `combine(dst, a, b)` emits dst = a op b."""
        self.swap_quarters(x, spare, combine)
        for order in (0b01001110, 0b10110001):  # pairs within 128 bits, then neighbours
            self.asm.VPERMILPS(spare, x, order)
            combine(x, x, spare)

    def swap_quarters(self, x: Register, spare: Register, combine: Combine) -> None:
        """The steps of `across` that combine pieces of 128 bits."""
        raise NotImplementedError

    def sum_lanes(self, xs: Sequence[Register], spare: Register, add: Combine | None = None) -> Register:
        """Sum the lanes of each of xs, with `add` or as f32: lane i of the first becomes the sum of all lanes of xs[i].
        There are at most as many xs as lanes; they and `spare` are overwritten.  Returns the first.
        """
        asm, add = self.asm, add or self.add
        for low, high in ((asm.VUNPCKLPS, asm.VUNPCKHPS), (asm.VUNPCKLPD, asm.VUNPCKHPD), *self.quarters()):
            for x, y in zip(xs[::2], [*xs[1::2], xs[-1]], strict=False):  # the last of an odd number has none beside it
                low(spare, x, y)
                high(x, x, y)
                add(x, x, spare)
            xs = xs[::2]
        return xs[0]

    def quarters(self) -> Sequence[tuple[Combine, Combine]]:
        """The instructions that combine the 128-bit pieces of two vectors, the lower ones and the upper ones, step by
        step."""
        raise NotImplementedError

    def running(
        self, x: Register, spare: Register, combine: Combine | None = None, neutral: Register | None = None
    ) -> None:
        """Prefix sums: lane j of x = the sum of its lanes 0 to j; by doubling distances within 16 bytes, then across
        them.  With `combine` its results, whose neutral element is in all lanes of `neutral`, else zeros are."""
        combine = combine or self.add
        for distance in (4, 8):
            if neutral is None:
                self.asm.VPSLLDQ(spare, x, distance)
            else:
                self.asm.VPALIGNR(spare, x, neutral, 16 - distance)
            combine(x, x, spare)
        self.run_quarters(x, spare, combine, neutral)

    def run_quarters(self, x: Register, spare: Register, combine: Combine, neutral: Register | None) -> None:
        """The steps of `running` that combine x with the results of earlier pieces of 128 bits."""
        raise NotImplementedError

    def last_of(self, dst: Register, x: Register) -> None:
        """Every lane of dst = the last one of x."""
        raise NotImplementedError

    def flip(self, dst: Register, x: Register, spare: Register) -> None:
        """The lanes in reverse order; `spare` is overwritten."""
        order = range(self.lanes - 1, -1, -1)
        self.load(spare, self.asm.const(pack(f"<{self.lanes}i", *order), self.bytes, size=self.bytes))
        self.asm.VPERMPS(dst, spare, x)

    def look_up(self, dst: Register, index: Register, entries: Sequence[int]) -> None:
        """dst = in every lane the one of eight f32, by their bits, that the lowest three bits of `index` say."""
        repeats = self.lanes // len(entries)  # wider vectors look at more bits, which then change nothing
        table = self.asm.const(pack(f"<{self.lanes}I", *repeats * [*entries]), self.bytes, size=self.bytes)
        self.asm.VPERMPS(dst, index, table)

    def collect(
        self, x: Register, chosen: Sequence[int], order: Register, vector: Source, spare: Sequence[Register]
    ) -> None:
        """x[j] = lane chosen[j] of some vectors, counted through all of them; the lanes of `order` are `chosen`.

        `vector` may load one to the register that it is given; that of the first one is x.  `spare` has two registers,
        which are overwritten where there are several vectors.
        """
        if max(chosen) < self.lanes:
            self.asm.VPERMPS(x, order, vector(0, x))
        else:
            self.collect_several(x, chosen, order, vector, spare)

    def collect_several(
        self, x: Register, chosen: Sequence[int], order: Register, vector: Source, spare: Sequence[Register]
    ) -> None:
        raise NotImplementedError

    def every(self, vectors: Sequence[Register], step: int, order: Register, spare: Sequence[Register]) -> None:
        """The first of the vectors = each `step`-th lane of all of them, from the first one on; lanes for which they
        have none are undefined.  `order` and two registers of `spare` are overwritten."""
        count = self.lanes * len(vectors)
        chosen = [lane if lane < count else 0 for lane in range(0, step * self.lanes, step)]
        self.load(order, self.asm.const(pack(f"<{self.lanes}i", *chosen), self.bytes, size=self.bytes))
        self.collect(vectors[0], chosen, order, lambda number, _: vectors[number], spare)

    def spread(self, dst: Register, src: Register | Pointer, group: int, part: int) -> None:
        """dst[j] = src[j // group * group + part]: element `part` of every group in all lanes of the group.

        A group is 2, 4 or, of 16 lanes, 8.
        """
        raise NotImplementedError

    def repeat(self, dst: Register, src: Pointer, times: int) -> None:
        """dst[j] = src[j // times], of as many elements in memory as that takes.

        times: a power of two up to the lanes.
        """
        count, asm = self.lanes // times, self.asm
        elements = src.sized(4 * count)
        if count == 1:
            self.broadcast(dst, elements)
        elif times == 2:  # zeros between them, then each twice
            asm.VPMOVZXDQ(dst, elements)
            asm.VMOVSLDUP(dst, dst)
        else:  # all of them in every 16 bytes, of which each lane takes one
            (asm.VBROADCASTSD if count == 2 else asm.VBROADCASTF32X4)(dst, elements)
            chosen = [j // times for j in range(self.lanes)]
            asm.VPERMILPS(dst, dst, asm.const(pack(f"<{self.lanes}i", *chosen), self.bytes, size=self.bytes))
