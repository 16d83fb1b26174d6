"""Dwords to bytes and words in the low end of a register, in their order."""

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


def narrow_of(v: Vector) -> Narrow:
    """For the vectors of an ISA level."""
    return _BY_WIDTH[v.bytes](v)


_BY_WIDTH: Final[dict[int, type[Narrow]]] = {Avx2.bytes: Avx2Narrow, Avx512.bytes: Avx512Narrow}
