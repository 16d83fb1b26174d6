"""Elements of 4 or 8 bits as f32: a lane holds eight nibbles or four bytes of a column.

Nibble i of a lane is the lower half of byte i, and from 4 on the upper half of byte i - 4, unless they are in order.
"""

from struct import pack
from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.nibbles import NIBBLE_BITS
from asmdnn.isa.small_floats import TABLES
from asmdnn.isa.vector import Vector
from asmdnn.records import dataclass

LANE_BYTES: Final = 4
LANE_BITS: Final = 32
QUARTER_BYTES: Final = 16  # in which VPSHUFB moves
LOW: Final = 15
NOTHING: Final = 0x80  # a zero, as VPSHUFB has it


@dataclass(frozen=True, slots=True)
class Coding:
    """bits: 4 or 8.  signed: in two's complement.  in_order: nibble i of a lane is its bits 4 i and up.  table: of
    small_floats.TABLES, what nibbles are numbers of; "": of themselves."""

    bits: int = NIBBLE_BITS
    signed: bool = False
    in_order: bool = False
    table: str = ""

    @property
    def numbers(self) -> tuple[float, ...]:
        """What nibbles mean."""
        half = 1 << NIBBLE_BITS - 1
        own = tuple(float(i - 2 * half if self.signed and i >= half else i) for i in range(2 * half))
        return TABLES[self.table] if self.table else own

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
        v.load(self.table, v.asm.const(pack("<16f", *coding.numbers), v.bytes, size=v.bytes))

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        if shift := self.coding.shift(i):
            self.asm.VPSRLD(dst, lanes, shift)
        self.asm.VPERMPS(dst, dst if shift else lanes, self.table)


class HalfTableNibbles(Unpacking):
    """Of a table of which a register holds a half: both are looked up, and the upper bit chooses; takes two."""

    def __init__(self, v: Vector, coding: Coding) -> None:
        super().__init__(v, coding)
        self.held = v.registers.take("looked up", 2)
        numbers = coding.numbers
        halves = numbers[: v.lanes], numbers[v.lanes :]
        self.halves = [v.asm.const(pack(f"<{v.lanes}f", *half), v.bytes, size=v.bytes) for half in halves]

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        asm, (lower, upper), shift = self.asm, self.held, self.coding.shift(i)
        index = lanes
        if shift:
            asm.VPSRLD(lower, lanes, shift)
            index = lower
        top = LANE_BITS - NIBBLE_BITS
        if shift < top:
            asm.VPSLLD(dst, lanes, top - shift)
        asm.VPERMPS(upper, index, self.halves[1])
        asm.VPERMPS(lower, index, self.halves[0])
        asm.VBLENDVPS(dst, lower, upper, dst if shift < top else lanes)


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
TABLE_NIBBLES: Final[dict[int, type[Unpacking]]] = {Avx512.bytes: TableNibbles}


def unpacking_of(v: Vector, coding: Coding) -> Unpacking:
    """That of elements so coded, emitted with the registers of `v`."""
    if coding.table:
        return TABLE_NIBBLES.get(v.bytes, HalfTableNibbles)(v, coding)
    return (NIBBLES.get(v.bytes, Nibbles) if coding.bits == NIBBLE_BITS else Octets)(v, coding)
