"""A vector of f32 as two registers of f64, its low and its high lanes: what is computed so is rounded to f32 once."""

from struct import pack
from typing import ClassVar, Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.pieces import low_part
from asmdnn.isa.vector import Vector
from asmdnn.types import F32_BYTES

F64_BYTES: Final = 2 * F32_BYTES


class Doubles:
    """Emits into the assembler of a vector; halves: registers of a vector of f32.  Sums and products are VADDPD and the
    like, which numpy's are, too: bits are equal as long as nothing is fused."""

    halves: ClassVar[int] = 2

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm
        self.half_bytes = v.bytes // self.halves  # of f32 in memory

    def load(self, x: Register, src: Pointer) -> None:
        """x = the f32 of half a vector."""
        self.asm.VCVTPS2PD(x, src.sized(self.half_bytes))

    def splat(self, number: float) -> Pointer:
        """An operand with that number in every lane."""
        raise NotImplementedError

    def narrow(self, x: Register, low: Register, high: Register, spare: Register) -> None:
        """x = f32 of both, rounded to nearest even; x may be low, and spare high."""
        first, second = low_part(x, F32_BYTES // 2), low_part(spare, F32_BYTES // 2)
        self.asm.VCVTPD2PS(first, low)
        self.asm.VCVTPD2PS(second, high)
        self.insert(x, second)

    def insert(self, x: Register, half: Register) -> None:
        """The upper half of x."""
        raise NotImplementedError


class Avx2Doubles(Doubles):
    def splat(self, number: float) -> Pointer:
        return self.asm.const(pack("<d", number) * (self.v.bytes // F64_BYTES), self.v.bytes, size=self.v.bytes)

    def insert(self, x: Register, half: Register) -> None:
        self.asm.VINSERTF128(x, x, half, 1)


class Avx512Doubles(Doubles):
    def splat(self, number: float) -> Pointer:
        return self.asm.const(
            pack("<d", number), F64_BYTES, size=F64_BYTES, broadcast=self.v.bytes // F64_BYTES
        )  # fmt: skip

    def insert(self, x: Register, half: Register) -> None:
        self.asm.VINSERTF64X4(x, x, half, 1)


def doubles_of(v: Vector) -> Doubles:
    """For the vectors of an ISA level."""
    return _BY_WIDTH[v.bytes](v)


_BY_WIDTH: Final[dict[int, type[Doubles]]] = {Avx2.bytes: Avx2Doubles, Avx512.bytes: Avx512Doubles}
