"""Numbers with their places as words whose order as f64 is that of the k best: the code that topk_sorted.py is made of.

The upper half of a pair is a number's bits and 2^20, so that none is subnormal, infinite or NaN as f64; NaN itself is
above or below all numbers.  The lower half is its index, all bits turned unless the number is negative: of equal
numbers that with the lower index is larger.  No two pairs are equal, but for those that stand for nothing.
"""

from collections.abc import Sequence
from struct import pack
from typing import Final

from asmdnn.generators.functions.topk_lists import Order
from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.formula import UNORDERED
from asmdnn.isa.pairs import PairLanes
from asmdnn.isa.vector import Lanes, Vector

NORMAL: Final = 1 << 20  # makes f64 normal; f32's infinity and this are below f64's
FIRST_NAN, LAST_NAN, NOTHING = 0x7FE00000, 0xFFE00000, 0xFFE80000  # upper halves
NOT_UP_TO: Final = 0x16  # VCMPPS: not less or equal, or NaN
ABOVE: Final = 0x1E  # VCMPPD: greater
SIGNS_DOWN: Final = 0b11110101  # of odd lanes into even ones, VPSHUFD


class TopKPairs:
    """Emits with the registers of `v`.  `now` is ~index of every lane, `zero` 0, `nothing` pairs of no number."""

    def __init__(self, v: Vector, pairs: PairLanes, order: Order) -> None:
        self.v, self.asm, self.pairs, self.order = v, v.asm, pairs, order
        self.now, self.zero, self.nothing = v.registers.take("~index", 3)
        v.zero(self.zero)
        pairs.broadcast(self.nothing, self.asm.const(pack("<II", 0, NOTHING), 8, size=8))

    def start_at_zero(self) -> None:
        """The first vector of a row comes next."""
        v = self.v
        data = pack(f"<{v.lanes}i", *(~lane for lane in range(v.lanes)))
        v.load(self.now, self.asm.const(data, v.bytes, size=v.bytes))

    def start_at(self, index: Pointer) -> None:
        """The vector whose first element has this index."""
        v = self.v
        self.start_at_zero()
        with v.registers.taken("first index") as first:
            v.broadcast(first, index)
            self.asm.VPSUBD(self.now, self.now, first)

    def next_vector(self) -> None:
        self.asm.VPSUBD(self.now, self.now, self.v.splat(self.v.lanes))

    def number(self, x: Register) -> None:
        """x or -x, whichever is larger for a better one, without -0."""
        if self.order.largest:
            self.asm.VADDPS(x, x, self.zero)
        else:
            self.asm.VSUBPS(x, self.zero, x)

    def of(self, x: Register, part: Lanes) -> Sequence[Register]:
        """The pairs of a vector of `number`s, of which lanes beside the part stand for nothing: x and another register,
        which is taken."""
        v, asm = self.v, self.asm
        low = v.registers.take("pairs")
        with v.held_condition() as is_nan:
            v.compare(is_nan, x, x, UNORDERED)
            asm.VPADDD(x, x, v.splat(NORMAL))
            self.bits(low, LAST_NAN if self.order.nan_last else FIRST_NAN)
            v.select(x, is_nan, low, x)
        if part is not v:
            self.bits(low, NOTHING)
            part.fill_rest(x, low)
        asm.VPSRAD(low, x, 31)
        asm.VXORPS(low, low, self.now)
        with v.registers.taken("pairs") as other:
            asm.VUNPCKLPS(other, low, x)
            asm.VUNPCKHPS(low, low, x)
            v.move(x, other)
        return x, low

    def bits(self, dst: Register, bits: int) -> None:
        self.v.broadcast(dst, self.asm.const(bits.to_bytes(4, "little"), 4, size=4))

    def limit(self, dst: Register, pair: Pointer) -> None:
        """The number of a pair in every lane, NaN if it has none."""
        self.v.broadcast(dst, pair.shifted(4).sized(4))
        self.asm.VPSUBD(dst, dst, self.v.splat(NORMAL))

    def results(self, x: Register, spare: Sequence[Register]) -> None:
        """Pairs become the index, below, and the number as it was, above."""
        v, asm, (number, sign) = self.v, self.asm, spare
        asm.VPSUBD(number, x, v.splat(NORMAL))
        if not self.order.largest:
            asm.VSUBPS(number, self.zero, number)
        asm.VPSRAD(sign, x, 31)
        asm.VPSHUFD(sign, sign, SIGNS_DOWN)
        asm.VXORPS(x, x, sign)
        asm.VXORPS(x, x, v.splat(0xFFFFFFFF))
        self.pairs.odd(x, x, number)
