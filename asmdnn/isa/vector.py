"""f32 vector operations as generators use them: everything in which AVX2 and AVX-512 differ, and nothing else:
registers by purpose, loads, stores, tails and multiplies of what `vector_of(isa, asm)` gives.

Lanes are moved and summed in across.py, compared in conditions.py, counted at run time in counted.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

from asmdnn.isa.across import Across
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.conditions import Conditions
from asmdnn.isa.counted import Counted
from asmdnn.isa.registers import Shaped, flat

Row = Sequence[Register]  # of vectors side by side, or of one that takes several


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


class Vector(Across, Conditions, Counted, Lanes):
    """Operations on f32 vectors of `bytes` bytes, emitted into `asm`; `registers` hands out vector registers."""

    bytes: ClassVar[int]
    count: ClassVar[int]
    splat_bytes: ClassVar[int]
    most_pixels: ClassVar[Mapping[int, int]]  # of a convolution's tile for each number of vectors, if registers allow

    def __init__(self, asm: Assembler) -> None:
        self.asm = asm
        self.registers = asm.vectors(self.bytes, self.count)

    def zero(self, dst: Register) -> None:
        raise NotImplementedError

    def zeros(self, registers: Shaped) -> None:
        """0 in all of them."""
        for x in flat(registers):
            self.zero(x)

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

    def load_first(self, x: Register, src: Pointer, count: int) -> None:
        """The first `count` lanes, a power of two; zeros in the others."""
        if count == 1:
            self.asm.VMOVSS(x.xmm, src.sized(4))
        elif count == 2:
            self.asm.VMOVQ(x.xmm, src.sized(8))
        else:
            self.asm.VMOVUPS({4: x.xmm, 8: x.ymm}.get(count, x), src.sized(4 * count))

    def store_first(self, dst: Pointer, src: Register, count: int) -> None:
        """The first `count` lanes, a power of two."""
        if count == 1:
            self.asm.VMOVSS(dst.sized(4), src.xmm)
        elif count == 2:
            self.asm.VMOVQ(dst.sized(8), src.xmm)
        else:
            self.asm.VMOVUPS(dst.sized(4 * count), {4: src.xmm, 8: src.ymm}.get(count, src))

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
