"""Products of nibbles, from 0 to 15, or of unsigned bytes, with signed ones, four in a lane: exact on every level.

Where there is no VPDPBUSD, VPMADDUBSW adds two products, of at most 2 * 15 * 128, as words, far from saturation; bytes
are multiplied as two nibbles.
"""

from typing import Final

from asmdnn.isa.assembler import Register
from asmdnn.isa.levels import AVX2, AVX2_VNNI, AVX512_CORE, AVX512_CORE_VNNI, Isa, isa_of
from asmdnn.isa.vector import Vector
from asmdnn.types import IsaName

ONES, SIXTEENS = b"\1\0", b"\x10\0"  # words
NIBBLE_BITS: Final = 4


class NibbleDot:
    """acc += four products in every lane; a register of words may be needed meanwhile."""

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm

    def multiply(self, acc: Register, nibbles: Register, octets: Register, spare: Register) -> None:
        raise NotImplementedError

    def ready_for_bytes(self, low: Register) -> None:
        """Before `multiply_bytes`; low: 15 in every byte."""

    def multiply_bytes(self, acc: Register, weights: Register, octets: Register, spare: Register) -> None:
        """As `multiply`, of all unsigned bytes."""
        self.multiply(acc, weights, octets, spare)


class WordsNibbleDot(NibbleDot):
    """By way of words; takes a register for ones."""

    def __init__(self, v: Vector) -> None:
        super().__init__(v)
        self.ones: Register = v.registers.take("ones")
        v.load(self.ones, v.asm.const(ONES * (v.bytes // len(ONES)), v.bytes, size=v.bytes))

    def multiply(self, acc: Register, nibbles: Register, octets: Register, spare: Register) -> None:
        self.add(acc, nibbles, octets, (spare, self.ones))

    def add(self, acc: Register, nibbles: Register, octets: Register, last: tuple[Register, Register]) -> None:
        """last: a spare register, and what words are multiplied with."""
        spare, factors = last
        self.asm.VPMADDUBSW(spare, nibbles, octets)
        self.asm.VPMADDWD(spare, spare, factors)
        self.asm.VPADDD(acc, acc, spare)

    def ready_for_bytes(self, low: Register) -> None:
        """Takes a register for what the upper halves count."""
        v, self.low = self.v, low
        self.sixteens: Register = v.registers.take("sixteens")
        v.load(self.sixteens, v.asm.const(SIXTEENS * (v.bytes // len(SIXTEENS)), v.bytes, size=v.bytes))

    def multiply_bytes(self, acc: Register, weights: Register, octets: Register, spare: Register) -> None:
        self.asm.VANDPS(spare, weights, self.low)
        self.add(acc, spare, octets, (spare, self.ones))
        self.asm.VPSRLW(spare, weights, NIBBLE_BITS)
        self.asm.VANDPS(spare, spare, self.low)
        self.add(acc, spare, octets, (spare, self.sixteens))


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
