"""Dwords to bytes and words in the low end of a register, in their order; halves."""

from struct import pack
from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.vector import Vector


class Narrow:
    """Emits into the assembler of a vector; x is overwritten, and so is `spare`."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm

    def to_bytes(self, x: Register, spare: Register, signed: bool) -> None:
        """s32 to s8 or u8, saturated."""
        raise NotImplementedError

    def to_words(self, x: Register, spare: Register) -> None:
        """Numbers below 2^16."""
        raise NotImplementedError

    def sort_halves(self, x: Register, spare: Register) -> None:
        """The lower 8 bytes of every quarter of x to its lower half, the upper ones to the upper half."""
        raise NotImplementedError

    def upper_half(self, x: Register, y: Register) -> None:
        """The upper half of y in the lower one of x."""
        raise NotImplementedError


class Avx2Narrow(Narrow):
    """Packs of both halves."""

    def to_bytes(self, x: Register, spare: Register, signed: bool) -> None:
        asm = self.asm
        asm.VEXTRACTI128(spare.xmm, x, 1)
        (asm.VPACKSSDW if signed else asm.VPACKUSDW)(x.xmm, x.xmm, spare.xmm)
        (asm.VPACKSSWB if signed else asm.VPACKUSWB)(x.xmm, x.xmm, x.xmm)

    def to_words(self, x: Register, spare: Register) -> None:
        self.asm.VEXTRACTI128(spare.xmm, x, 1)
        self.asm.VPACKUSDW(x.xmm, x.xmm, spare.xmm)

    def sort_halves(self, x: Register, spare: Register) -> None:
        self.asm.VPERMQ(x, x, 0b11011000)

    def upper_half(self, x: Register, y: Register) -> None:
        self.asm.VEXTRACTI128(x.xmm, y, 1)


class Avx512Narrow(Narrow):
    """One instruction, which takes dwords as unsigned if the bytes are: what is below zero must go before."""

    def to_bytes(self, x: Register, spare: Register, signed: bool) -> None:
        if signed:
            self.asm.VPMOVSDB(x.xmm, x)
            return
        self.v.zero(spare)
        self.asm.VPMAXSD(x, x, spare)
        self.asm.VPMOVUSDB(x.xmm, x)

    def to_words(self, x: Register, spare: Register) -> None:
        self.asm.VPMOVDW(x.ymm, x)

    def sort_halves(self, x: Register, spare: Register) -> None:
        order = pack("<8Q", *range(0, 8, 2), *range(1, 8, 2))
        self.v.load(spare, self.asm.const(order, self.v.bytes, size=self.v.bytes))
        self.asm.VPERMQ(x, spare, x)

    def upper_half(self, x: Register, y: Register) -> None:
        self.asm.VEXTRACTI64X4(x.ymm, y, 1)


def narrow_of(v: Vector) -> Narrow:
    """For the vectors of an ISA level."""
    return _BY_WIDTH[v.bytes](v)


_BY_WIDTH: Final[dict[int, type[Narrow]]] = {Avx2.bytes: Avx2Narrow, Avx512.bytes: Avx512Narrow}
