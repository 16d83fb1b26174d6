"""Elements of 4 or 8 bits as f32: a lane holds eight nibbles or four unsigned bytes of a column.

Nibble i of a lane is the lower half of byte i, and from 4 on the upper half of byte i - 4.
"""

from struct import pack
from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.nibbles import NIBBLE_BITS
from asmdnn.isa.vector import Vector

LANE_BYTES: Final = 4
LOW: Final = 15
NOTHING: Final = 0x80  # a zero, as VPSHUFB has it


class Unpacking:
    """Numbers of packed lanes."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm
        self.held: list[Register] = []  # what to free

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        """dst = element i of every lane, as f32."""
        raise NotImplementedError


class Nibbles(Unpacking):
    """By shifts; takes a register for a mask."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.low: Register = v.registers.take("lower halves")
        self.held = [self.low]
        v.broadcast(self.low, v.asm.const(pack("<I", LOW), LANE_BYTES, size=LANE_BYTES))

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        if shift := shift_of(i):
            self.asm.VPSRLD(dst, lanes, shift)
        self.asm.VANDPS(dst, dst if shift else lanes, self.low)
        self.asm.VCVTDQ2PS(dst, dst)


class TableNibbles(Unpacking):
    """VPERMPS looks 4 bits up and ignores what is above them; takes a register for the table."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.table: Register = v.registers.take("numbers of nibbles")
        self.held = [self.table]
        numbers = range(1 << NIBBLE_BITS)
        v.load(self.table, v.asm.const(pack(f"<{len(numbers)}f", *numbers), v.bytes, size=v.bytes))

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        if shift := shift_of(i):
            self.asm.VPSRLD(dst, lanes, shift)
        self.asm.VPERMPS(dst, dst if shift else lanes, self.table)


class Octets(Unpacking):
    """One byte of each lane, with zeros above it."""

    def number(self, dst: Register, lanes: Register, i: int) -> None:
        order = bytes(x for lane in range(0, 16, LANE_BYTES) for x in (lane + i, *[NOTHING] * (LANE_BYTES - 1)))
        self.asm.VPSHUFB(dst, lanes, self.asm.const(order * (self.v.bytes // 16), self.v.bytes, size=self.v.bytes))
        self.asm.VCVTDQ2PS(dst, dst)


def shift_of(nibble: int) -> int:
    """Bits below it in its lane."""
    upper, byte = divmod(nibble, LANE_BYTES)
    return 8 * byte + NIBBLE_BITS * upper


NIBBLES: Final[dict[int, type[Unpacking]]] = {Avx512.bytes: TableNibbles}  # by the vector's size


def unpacking_of(v: Vector, bits: int) -> Unpacking:
    """That of elements of so many bits, emitted with the registers of `v`."""
    return (NIBBLES.get(v.bytes, Nibbles) if bits == NIBBLE_BITS else Octets)(v)
