"""Lanes of 4 bytes of one vector from anywhere in several vectors in memory: one instruction for each with AVX-512, two
with AVX2."""

from struct import pack
from typing import Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512
from asmdnn.isa.vector import Vector

NOWHERE: Final = -1
Lanes = tuple[int, ...]  # for each lane its place in a vector of src, or NOWHERE


class Permutes:
    """Emits permutations; `spare` may be overwritten."""

    LATER: int  # instructions that bring lanes of a further vector

    def __init__(self, v: Vector, spare: Register) -> None:
        self.v, self.asm, self.spare = v, v.asm, spare

    def control(self, lanes: Lanes, first: bool) -> bytes:
        """What a register must hold to move `lanes`; first: of the first of several vectors."""
        raise NotImplementedError

    def move(self, x: Register, control: Register, source: Pointer, lanes: Lanes, first: bool) -> None:
        """x = these lanes of a vector in memory; the others stay, but for the first one."""
        raise NotImplementedError


class Avx2Permutes(Permutes):
    """VPERMD, and from the second vector on VPBLENDD."""

    LATER = 2

    def control(self, lanes: Lanes, first: bool) -> bytes:
        return pack(f"<{len(lanes)}I", *(max(0, lane) for lane in lanes))

    def move(self, x: Register, control: Register, source: Pointer, lanes: Lanes, first: bool) -> None:
        self.asm.VPERMD(x if first else self.spare, control, source)
        if not first:
            chosen = sum(1 << i for i, lane in enumerate(lanes) if lane != NOWHERE)
            self.asm.VPBLENDD(x, x, self.spare, chosen)


class Avx512Permutes(Permutes):
    """VPERMD, and from the second vector on VPERMT2D, for which the lanes of x are numbered before those of memory."""

    LATER = 1

    def control(self, lanes: Lanes, first: bool) -> bytes:
        count = len(lanes)
        chosen = [max(0, lane) if first else i if lane == NOWHERE else count + lane for i, lane in enumerate(lanes)]
        return pack(f"<{count}I", *chosen)

    def move(self, x: Register, control: Register, source: Pointer, lanes: Lanes, first: bool) -> None:
        (self.asm.VPERMD if first else self.asm.VPERMT2D)(x, control, source)


def permutes_of(v: Vector, spare: Register) -> Permutes:
    """For the vectors of an ISA level."""
    return _BY_WIDTH[v.bytes](v, spare)


def steps_of(vector_bytes: int, vectors: int) -> int:
    """Instructions that bring lanes of so many vectors together."""
    return 1 + (vectors - 1) * _BY_WIDTH[vector_bytes].LATER


_BY_WIDTH: Final[dict[int, type[Permutes]]] = {Avx2.bytes: Avx2Permutes, Avx512.bytes: Avx512Permutes}
