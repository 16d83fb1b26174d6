"""Elements of 1 and 2 bytes in memory and in the low end of registers, between 4-byte lanes and bytes side by side.

What AVX2 packs within the halves of a register, and then brings together, AVX-512 does in one instruction.
"""

from collections.abc import Sequence
from struct import pack
from typing import ClassVar, Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512, Avx512Tail
from asmdnn.isa.pieces import HALF_BYTES, load_bytes, low_part, store_bytes
from asmdnn.isa.vector import Lanes, TailLanes, Vector

FIRST_TWO_EVEN: Final = 0b1000  # elements 0 and 2, in front


class Packing:
    """Emits into the assembler of a vector; x is overwritten, and so is `spare`.

    saturates: whether `truncate` does what `to_bytes` does.
    """

    saturates: ClassVar[bool] = False

    def __init__(self, v: Vector) -> None:
        self.v, self.asm = v, v.asm

    def load(self, x: Register, src: Pointer, part: Lanes, size: int) -> None:
        """The elements of `size` bytes, one for each of the part's lanes, into the low end of x; no other byte is read.

        `part` is a tail: all elements of a vector are an operand of the instruction that spreads them.
        """
        raise NotImplementedError

    def store(self, dst: Pointer, x: Register, part: Lanes, size: int) -> None:
        """The elements in the low end of x; no other byte is written."""
        raise NotImplementedError

    def truncate(self, x: Register, size: int, signed: bool) -> None:
        """Lanes to elements of `size` bytes, which have these numbers."""
        raise NotImplementedError

    def to_bytes(self, x: Register, spare: Register, signed: bool) -> None:
        """Numbers below 2^16 to s8 or u8, saturated."""
        raise NotImplementedError

    def store_bytes_of_both(self, places: Sequence[Pointer], both: Sequence[Register], signed: bool) -> None:
        """As `to_bytes`, of two vectors, and into memory."""
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

    def count(self, part: Lanes) -> int:
        """Elements of a vector or a tail."""
        return part.lanes.bit_length() if isinstance(part, TailLanes) else self.v.lanes


class Avx2Packing(Packing):
    """Packs of both halves; tails in pieces."""

    saturates: ClassVar[bool] = True

    def load(self, x: Register, src: Pointer, part: Lanes, size: int) -> None:
        load_bytes(self.asm, x.xmm, src, self.count(part) * size)

    def store(self, dst: Pointer, x: Register, part: Lanes, size: int) -> None:
        store_bytes(self.asm, dst, x.xmm, self.count(part) * size)

    def truncate(self, x: Register, size: int, signed: bool) -> None:
        asm = self.asm
        (asm.VPACKSSDW if signed else asm.VPACKUSDW)(x, x, x)
        if size == 1:
            (asm.VPACKSSWB if signed else asm.VPACKUSWB)(x, x, x)
        asm.VPERMQ(x, x, FIRST_TWO_EVEN)
        if size == 1:
            asm.VPSHUFD(x.xmm, x.xmm, FIRST_TWO_EVEN)

    def to_bytes(self, x: Register, spare: Register, signed: bool) -> None:
        asm = self.asm
        asm.VEXTRACTI128(spare.xmm, x, 1)
        (asm.VPACKSSDW if signed else asm.VPACKUSDW)(x.xmm, x.xmm, spare.xmm)
        (asm.VPACKSSWB if signed else asm.VPACKUSWB)(x.xmm, x.xmm, x.xmm)

    def store_bytes_of_both(self, places: Sequence[Pointer], both: Sequence[Register], signed: bool) -> None:
        asm, (x, other), (first, second) = self.asm, both, (place.sized(self.v.lanes) for place in places)
        (asm.VPACKSSDW if signed else asm.VPACKUSDW)(x, x, other)
        (asm.VPACKSSWB if signed else asm.VPACKUSWB)(x, x, x)
        asm.VEXTRACTI128(other.xmm, x, 1)
        asm.VPUNPCKLDQ(x.xmm, x.xmm, other.xmm)
        asm.VMOVQ(first, x.xmm)
        asm.VPEXTRQ(second, x.xmm, 1)

    def to_words(self, x: Register, spare: Register) -> None:
        self.asm.VEXTRACTI128(spare.xmm, x, 1)
        self.asm.VPACKUSDW(x.xmm, x.xmm, spare.xmm)

    def sort_halves(self, x: Register, spare: Register) -> None:
        self.asm.VPERMQ(x, x, 0b11011000)

    def upper_half(self, x: Register, y: Register) -> None:
        self.asm.VEXTRACTI128(x.xmm, y, 1)


class Avx512Packing(Packing):
    """The mask of a tail counts elements, whatever their size; a half or a quarter of a vector needs none."""

    def load(self, x: Register, src: Pointer, part: Lanes, size: int) -> None:
        if isinstance(part, Avx512Tail):
            low = low_part(x, size)
            self.move(low.zeroed(part.mask), src.sized(low.size_bytes), size)
        else:
            load_bytes(self.asm, x.xmm, src, self.count(part) * size)

    def store(self, dst: Pointer, x: Register, part: Lanes, size: int) -> None:
        low, size_bytes = low_part(x, size), self.count(part) * size
        if isinstance(part, Avx512Tail):
            self.move(dst.sized(low.size_bytes).masked(part.mask), low, size)
        elif size_bytes <= HALF_BYTES and part is not self.v:
            store_bytes(self.asm, dst, x.xmm, size_bytes)
        else:
            self.asm.VMOVUPS(dst.sized(low.size_bytes), low)

    def move(self, dst: Register | Pointer, src: Register | Pointer, size: int) -> None:
        (self.asm.VMOVDQU16 if size == 2 else self.asm.VMOVDQU8)(dst, src)

    def truncate(self, x: Register, size: int, signed: bool) -> None:
        (self.asm.VPMOVDW if size == 2 else self.asm.VPMOVDB)(low_part(x, size), x)

    def to_bytes(self, x: Register, spare: Register, signed: bool) -> None:
        """VPMOVUSDB takes dwords as unsigned: what is below zero must go before."""
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


def packing_of(v: Vector) -> Packing:
    """For the vectors of an ISA level."""
    return _BY_WIDTH[v.bytes](v)


_BY_WIDTH: Final[dict[int, type[Packing]]] = {Avx2.bytes: Avx2Packing, Avx512.bytes: Avx512Packing}
