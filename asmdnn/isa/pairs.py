"""Vectors of 64-bit lanes, compared as f64: permutations by lanes, and the lanes of a condition moved together."""

from collections.abc import Mapping
from struct import pack
from types import MappingProxyType
from typing import Final

from asmdnn.isa.assembler import Pointer, Register, low32, mem
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Vector

PAIR_BYTES: Final = 8
HALVES, BACKWARDS = 0x4E, 0x1B  # two and two of four, or four, in another order


class PairLanes:
    """Emits with the registers of `v`."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm, self.lanes = v, v.asm, v.bytes // PAIR_BYTES

    def swap(self, dst: Register, x: Register, distance: int) -> None:
        """Lane i of dst = lane i ^ distance of x: a power of two below the lanes, or one less."""
        if distance == 1:
            self.asm.VPERMILPS(dst, x, HALVES)
        else:
            self.asm.VPERMPD(dst, x, {2: HALVES, 3: BACKWARDS}[distance])

    def upper(self, dst: Register, bit: int, low: Register, high: Register) -> None:
        """dst = high in the lanes whose number has this bit, else low."""
        raise NotImplementedError

    def odd(self, dst: Register, even: Register, odd: Register) -> None:
        """The upper halves of the lanes of `odd`, the lower ones of `even`."""
        raise NotImplementedError

    def together(self, x: Register, condition: Register, count: Register) -> None:
        """The lanes of x where the condition holds become its first ones; count = how many."""
        raise NotImplementedError

    def count_ones(self, count: Register, lanes: Register) -> None:
        """count = how many bits of the lanes are set, all others of which are cleared.  POPCNT is no part of AVX2."""
        asm = self.asm
        asm.AND(lanes, (1 << self.lanes) - 1)
        with asm.gp.taken("table") as table:
            asm.LEA(table, asm.const(bytes(chosen.bit_count() for chosen in range(1 << self.lanes))))
            asm.MOVZX(low32(count), mem(table, index=lanes, size=1))

    def broadcast(self, dst: Register, src: Pointer) -> None:
        self.asm.VBROADCASTSD(dst, src)


class YmmPairs(PairLanes):
    """Four lanes."""

    def upper(self, dst: Register, bit: int, low: Register, high: Register) -> None:
        self.asm.VBLENDPD(dst, low, high, {1: 0b1010, 2: 0b1100}[bit])

    def odd(self, dst: Register, even: Register, odd: Register) -> None:
        self.asm.VBLENDPS(dst, even, odd, 0b10101010)

    def together(self, x: Register, condition: Register, count: Register) -> None:
        """By a table of permutations, a row for each choice of lanes."""
        asm = self.asm
        with asm.gp.taken("table") as table, asm.gp.taken("row") as row:
            asm.XOR(row, row)
            asm.VMOVMSKPD(low32(row), condition)
            self.count_ones(count, row)
            asm.IMUL(row, row, self.v.bytes)
            asm.LEA(table, asm.const(self.orders(), self.v.bytes))
            asm.VMOVUPS(condition, mem(table, index=row, size=self.v.bytes))
            asm.VPERMPS(x, condition, x)

    def orders(self) -> bytes:
        rows = []
        for chosen in range(1 << self.lanes):
            order = sorted(range(self.lanes), key=lambda lane: not chosen >> lane & 1)
            rows += [half for lane in order for half in (2 * lane, 2 * lane + 1)]
        return pack(f"<{len(rows)}i", *rows)


class ZmmPairs(PairLanes):
    """Eight lanes, and masks of constants."""

    masks: Mapping[int, int] = MappingProxyType({1: 0b10101010, 2: 0b11001100, 4: 0b11110000})
    odd_halves = 0xAAAA

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.held = {bits: self.mask(bits) for bits in (*self.masks.values(), self.odd_halves)}

    def swap(self, dst: Register, x: Register, distance: int) -> None:
        if distance < 4:
            super().swap(dst, x, distance)
            return
        if distance == 7:
            self.asm.VPERMPD(dst, x, BACKWARDS)
            x = dst
        self.asm.VSHUFF64X2(dst, x, x, HALVES)

    def mask(self, bits: int) -> Register:
        """A mask register with these bits."""
        mask: Register = self.asm.masks.take("lanes")
        with self.asm.gp.taken("bits") as number:
            self.asm.MOV(low32(number), bits)
            self.asm.KMOVW(mask, low32(number))
        return mask

    def upper(self, dst: Register, bit: int, low: Register, high: Register) -> None:
        self.asm.VBLENDMPD(dst.masked(self.held[self.masks[bit]]), low, high)

    def odd(self, dst: Register, even: Register, odd: Register) -> None:
        self.asm.VBLENDMPS(dst.masked(self.held[self.odd_halves]), even, odd)

    def together(self, x: Register, condition: Register, count: Register) -> None:
        self.asm.VCOMPRESSPD(x.zeroed(condition), x)
        with self.asm.gp.taken("lanes") as lanes:
            self.asm.XOR(lanes, lanes)
            self.asm.KMOVW(low32(lanes), condition)
            self.count_ones(count, lanes)


def pair_lanes_of(v: Vector) -> PairLanes:
    """Those of a level's vectors."""
    return (ZmmPairs if v.bytes == LINE_BYTES else YmmPairs)(v)
