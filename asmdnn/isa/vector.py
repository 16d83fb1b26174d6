"""f32 vector operations as generators use them: everything in which AVX2 and AVX-512 differ, and nothing else:
registers by purpose, loads, stores, tails and multiplies of what `vector_of(isa, asm)` gives."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import pack
from typing import ClassVar

from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.conditions import Conditions
from asmdnn.isa.counted import Counted

Combine = Callable[[Register, Register, Register], None]
Row = Sequence[Register]  # of vectors side by side, or of one that takes several


def spread_in_four(group: int, part: int) -> int:
    """VPERMILPS's immediate that spreads an element of every group of 1, 2 or 4."""
    return sum((lane // group * group + part) << 2 * lane for lane in range(4))


def ordered(shuffle: Callable[..., None], order: int) -> Combine:
    """A shuffle of two vectors with its immediate."""
    return lambda dst, a, b: shuffle(dst, a, b, order)


class Lanes:
    """How a vector in memory is read and written: all its lanes (a Vector) or the first few (TailLanes)."""

    def load(self, dst: Register, src: Pointer) -> None:
        raise NotImplementedError

    def store(self, dst: Pointer, src: Register) -> None:
        raise NotImplementedError

    def store_last(self, dst: Pointer, src: Register) -> None:
        """As `store`; src may be overwritten."""
        self.store(dst, src)

    def clear_rest(self, x: Register) -> None:
        """x = 0 in the other lanes."""
        raise NotImplementedError

    def fill_rest(self, x: Register, filler: Register) -> None:
        """x = filler in the other lanes."""
        raise NotImplementedError


class Vector(Conditions, Counted, Lanes):
    """Operations on f32 vectors of `bytes` bytes, emitted into `asm`; `registers` hands out vector registers."""

    bytes: ClassVar[int]
    count: ClassVar[int]
    splat_bytes: ClassVar[int]
    most_pixels: ClassVar[Mapping[int, int]]  # of a convolution's tile for each number of vectors, if registers allow

    def __init__(self, asm: Assembler) -> None:
        self.asm = asm
        self.registers = asm.vectors(self.bytes, self.count)

    @property
    def lanes(self) -> int:
        return self.bytes // 4

    def zero(self, dst: Register) -> None:
        raise NotImplementedError

    def tail(self, count: int) -> "TailLanes":
        """The first `count` lanes, 0 < count < lanes; `release()` gives back what it occupies."""
        return self.chosen((1 << count) - 1)

    def short_tail(self, count: int) -> "TailLanes":
        """As `tail`, with a narrower register where that is faster."""
        return self.tail(count)

    def chosen(self, lanes: int) -> "TailLanes":
        """The lanes whose bits are set, some and not all; as a tail."""
        raise NotImplementedError

    def end(self, count: int) -> "End":
        """The last `count` elements of a row that is longer than a vector, as the last lanes of a vector."""
        return End(self, count)

    def keep_last(self, x: Register, count: int) -> None:
        """x = 0 in all lanes but the last `count`, 0 < count < lanes."""
        raise NotImplementedError

    @contextmanager
    def parts(self, vectors: int, elements: int, halves: bool = False) -> Iterator[list[Lanes]]:
        """How to access each of `vectors` consecutive vectors of which only the first `elements` lanes exist.

        halves: the last one may be half a register, or a quarter; only for elements of 4 bytes.
        """
        full, rest = divmod(elements, self.lanes)
        if vectors <= full:
            yield [self] * vectors
            return
        tail = (self.short_tail if halves else self.tail)(rest) if rest else None
        partial: list[Lanes] = [tail] if tail else []
        yield [*[self] * full, *partial, *[Nothing(self)] * (vectors - full - len(partial))]
        if tail:
            tail.release()

    def move(self, dst: Register, src: Register) -> None:
        self.asm.VMOVAPS(dst, src)

    def load(self, dst: Register, src: Pointer) -> None:
        self.asm.VMOVUPS(dst, src)

    def store(self, dst: Pointer, src: Register) -> None:
        self.asm.VMOVUPS(dst, src)

    def clear_rest(self, x: Register) -> None:
        """There are none."""

    def fill_rest(self, x: Register, filler: Register) -> None:
        """There are none."""

    def broadcast(self, dst: Register, src: Pointer) -> None:
        self.asm.VBROADCASTSS(dst, src)

    def add(self, dst: Register, a: Register, b: Register | Pointer) -> None:
        self.asm.VADDPS(dst, a, b)

    def mul(self, dst: Register, a: Register, b: Register | Pointer) -> None:
        self.asm.VMULPS(dst, a, b)

    def fma(self, acc: Register, a: Register, b: Register | Pointer) -> None:
        """acc += a * b, rounded once."""
        self.asm.VFMADD231PS(acc, a, b)

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

    def store_first(self, dst: Pointer, src: Register, count: int) -> None:
        """The first `count` lanes, a power of two."""
        if count == 1:
            self.asm.VMOVSS(dst.sized(4), src.xmm)
        elif count == 2:
            self.asm.VMOVQ(dst.sized(8), src.xmm)
        else:
            self.asm.VMOVUPS(dst.sized(4 * count), {4: src.xmm, 8: src.ymm}.get(count, src))

    def running(self, x: Register, spare: Register) -> None:
        """Prefix sums: lane j of x = the sum of its lanes 0 to j; by doubling distances within 16 bytes, then across
        them."""
        for distance in (4, 8):
            self.asm.VPSLLDQ(spare, x, distance)
            self.add(x, x, spare)
        self.run_quarters(x, spare)

    def run_quarters(self, x: Register, spare: Register) -> None:
        """The steps of `running` that add the sums of earlier pieces of 128 bits."""
        raise NotImplementedError

    def last_of(self, dst: Register, x: Register) -> None:
        """Every lane of dst = the last one of x."""
        raise NotImplementedError

    def flip(self, dst: Register, x: Register, spare: Register) -> None:
        """The lanes in reverse order; `spare` is overwritten."""
        order = range(self.lanes - 1, -1, -1)
        self.load(spare, self.asm.const(pack(f"<{self.lanes}i", *order), self.bytes, size=self.bytes))
        self.asm.VPERMPS(dst, spare, x)

    def stream(self, dst: Pointer, src: Register) -> None:
        """Store past the caches; dst is aligned to a vector."""
        self.asm.VMOVNTPS(dst, src)

    def splat(self, bits: int) -> Pointer:
        """An operand with these 32 bits in every lane, from the constant pool."""
        raise NotImplementedError

    def splat_at(self, place: Pointer) -> Pointer:
        """The same from other memory, of which `splat_bytes` are copies of the element."""
        raise NotImplementedError

    def round(self, dst: Register, src: Register | Pointer, mode: int) -> None:
        """dst = src rounded to integral values, `mode` as VROUNDPS counts."""
        raise NotImplementedError

    def spread(self, dst: Register, src: Register | Pointer, group: int, part: int) -> None:
        """dst[j] = src[j // group * group + part]: element `part` of every group in all lanes of the group.

        A group is 2, 4 or, of 16 lanes, 8.
        """
        raise NotImplementedError

    def outer_product(self, acc: Sequence[Row], row: Row, column: Sequence[Pointer], spare: Row) -> None:
        """acc[i][j] += row[j] * column[i], column[i] being one f32 in memory, broadcast.

        Spare registers take turns, so that a broadcast does not wait for the multiplies of the one before.
        """
        for i, element in enumerate(column):
            copy = spare[i % len(spare)]
            self.broadcast(copy, element)
            for j, factor in enumerate(row):
                self.fma(acc[i][j], factor, copy)


class Nothing(Lanes):
    """No lane at all: a load gives zeros, a store writes nothing."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    def load(self, dst: Register, src: Pointer) -> None:
        self.vector.zero(dst)

    def store(self, dst: Pointer, src: Register) -> None:
        pass

    def clear_rest(self, x: Register) -> None:
        self.vector.zero(x)

    def fill_rest(self, x: Register, filler: Register) -> None:
        self.vector.move(x, filler)


class End(Lanes):
    """The last `count` lanes of a vector that ends where a row does: it has lanes of the vector before it, too.

    Addresses are those where the `count` elements begin.  A store writes all lanes, which must hold what the vector
    before stores there.
    """

    def __init__(self, vector: Vector, count: int) -> None:
        self.vector, self.count = vector, count
        self.back_bytes = vector.bytes - 4 * count

    def load(self, dst: Register, src: Pointer) -> None:
        self.vector.load(dst, src.shifted(-self.back_bytes))

    def store(self, dst: Pointer, src: Register) -> None:
        self.vector.store(dst.shifted(-self.back_bytes), src)

    def clear_rest(self, x: Register) -> None:
        self.vector.keep_last(x, self.count)

    def fill_rest(self, x: Register, filler: Register) -> None:
        """No lanes that must not be counted twice."""


class Broadcast(Lanes):
    """Broadcasts: every lane is the same element."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    def load(self, dst: Register, src: Pointer) -> None:
        self.vector.broadcast(dst, src)


class TailLanes(Lanes):
    """Some lanes, mostly the first few: loads read no other byte and give zero there, stores write no other byte.

    lanes: a bit for each.
    """

    def __init__(self, vector: Vector, lanes: int) -> None:
        self.vector, self.lanes = vector, lanes

    def release(self) -> None:
        raise NotImplementedError
