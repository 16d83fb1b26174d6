"""Elements of 4 or 8 bits as f32: a lane holds eight nibbles or four bytes of a column.

Nibble i of a lane is the lower half of byte i, and from 4 on the upper half of byte i - 4, unless they are in order.
"""

from struct import pack
from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.nibbles import NIBBLE_BITS
from asmdnn.isa.vector import Vector
from asmdnn.records import dataclass

LANE_BYTES: Final = 4
LANE_BITS: Final = 32
QUARTER_BYTES: Final = 16  # in which VPSHUFB moves
LOW: Final = 15
NOTHING: Final = 0x80  # a zero, as VPSHUFB has it


@dataclass(frozen=True, slots=True)
class Coding:
    """bits: 4 or 8.  signed: in two's complement.  in_order: nibble i of a lane is its bits 4 i and up."""

    bits: int = NIBBLE_BITS
    signed: bool = False
    in_order: bool = False

    def shift(self, nibble: int) -> int:
        """Bits below it in its lane."""
        if self.in_order:
            return NIBBLE_BITS * nibble
        upper, byte = divmod(nibble, LANE_BYTES)
        return 8 * byte + NIBBLE_BITS * upper


class Unpacking:
    """Numbers of packed lanes."""

    def __init__(self, v: Vector, coding: Coding) -> None:
        self.v, self.asm, self.coding = v, v.asm, coding
        self.held: list[Register] = []  # what to free

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        """dst = element i of every lane, as f32."""
        raise NotImplementedError


class Nibbles(Unpacking):
    """By shifts; takes a register for a mask."""

    def __init__(self, v: Vector, coding: Coding) -> None:
        super().__init__(v, coding)
        self.low: Register = v.registers.take("lower halves")
        self.held = [self.low]
        v.broadcast(self.low, v.asm.const(pack("<I", LOW), LANE_BYTES, size=LANE_BYTES))

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        shift = self.coding.shift(i)
        if self.coding.signed:
            top = LANE_BITS - NIBBLE_BITS
            if shift < top:
                self.asm.VPSLLD(dst, lanes, top - shift)
            self.asm.VPSRAD(dst, dst if shift < top else lanes, top)
        else:
            if shift:
                self.asm.VPSRLD(dst, lanes, shift)
            self.asm.VANDPS(dst, dst if shift else lanes, self.low)
        self.asm.VCVTDQ2PS(dst, dst)


class TableNibbles(Unpacking):
    """VPERMPS looks 4 bits up and ignores what is above them; takes a register for the table."""

    def __init__(self, v: Vector, coding: Coding) -> None:
        super().__init__(v, coding)
        self.table: Register = v.registers.take("numbers of nibbles")
        self.held = [self.table]
        half = 1 << NIBBLE_BITS - 1
        numbers = [i - 2 * half if coding.signed and i >= half else i for i in range(2 * half)]
        v.load(self.table, v.asm.const(pack(f"<{len(numbers)}f", *numbers), v.bytes, size=v.bytes))

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        if shift := self.coding.shift(i):
            self.asm.VPSRLD(dst, lanes, shift)
        self.asm.VPERMPS(dst, dst if shift else lanes, self.table)


class Octets(Unpacking):
    """One byte of each lane, with zeros above it; a signed one first at the top."""

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        nothing = [NOTHING] * (LANE_BYTES - 1)
        order = bytes(
            x
            for lane in range(0, QUARTER_BYTES, LANE_BYTES)
            for x in ((*nothing, lane + i) if self.coding.signed else (lane + i, *nothing))
        )
        everywhere = order * (self.v.bytes // QUARTER_BYTES)
        self.asm.VPSHUFB(dst, lanes, self.asm.const(everywhere, self.v.bytes, size=self.v.bytes))
        if self.coding.signed:
            self.asm.VPSRAD(dst, dst, LANE_BITS - 8)
        self.asm.VCVTDQ2PS(dst, dst)


NIBBLES: Final[dict[int, type[Unpacking]]] = {Avx512.bytes: TableNibbles}  # by the vector's size


def unpacking_of(v: Vector, coding: Coding) -> Unpacking:
    """That of elements so coded, emitted with the registers of `v`."""
    return (NIBBLES.get(v.bytes, Nibbles) if coding.bits == NIBBLE_BITS else Octets)(v, coding)
