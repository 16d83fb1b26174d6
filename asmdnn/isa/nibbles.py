"""Products of nibbles, from 0 to 15, and signed bytes, four in a lane: exact on every level.

Where there is no VPDPBUSD, VPMADDUBSW adds two products, of at most 2 * 15 * 128, as words, far from saturation.
"""

from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.levels import AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_VNNI, Isa, isa_of
from asmdnn.isa.vector import Vector
from asmdnn.types import IsaName

ONES: Final = b"\1\0"  # a word


class NibbleDot:
    """acc += four products in every lane; a register of words may be needed meanwhile."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm

    def multiply(self, acc: Register, nibbles: Register, octets: Register, spare: Register) -> None:
        raise NotImplementedError


class WordsNibbleDot(NibbleDot):
    """By way of words; takes a register for ones."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.ones: Register = v.registers.take("ones")
        v.load(self.ones, v.asm.const(ONES * (v.bytes // len(ONES)), v.bytes, size=v.bytes))

    def multiply(self, acc: Register, nibbles: Register, octets: Register, spare: Register) -> None:
        self.asm.VPMADDUBSW(spare, nibbles, octets)
        self.asm.VPMADDWD(spare, spare, self.ones)
        self.asm.VPADDD(acc, acc, spare)


class VnniNibbleDot(NibbleDot):
    def multiply(self, acc: Register, nibbles: Register, octets: Register, spare: Register) -> None:
        self.asm.VPDPBUSD(acc, nibbles, octets)


class AvxVnniNibbleDot(NibbleDot):
    def multiply(self, acc: Register, nibbles: Register, octets: Register, spare: Register) -> None:
        self.asm.VPDPBUSD_VEX(acc, nibbles, octets)


DOTS: Final[dict[Isa, type[NibbleDot]]] = {
    AVX2: WordsNibbleDot, AVX2_VNNI: AvxVnniNibbleDot, AVX512_CORE: WordsNibbleDot, AVX512_CORE_VNNI: VnniNibbleDot,
}  # fmt: skip


def nibble_level(isa: str) -> IsaName:
    """The level whose products of nibbles are the best for a CPU of level `isa`."""
    features = isa_of(isa).features
    return max((level for level in DOTS if level.features <= features), key=lambda level: level.rank).name


def nibble_dot(isa: str, v: Vector) -> NibbleDot:
    """That of a level that has one, emitted with the registers of `v`."""
    return DOTS[isa_of(isa)](v)
