"""Vectors of elements of 1 and 2 bytes in memory, one in every 4-byte lane of a register.

f16 becomes f32 and is rounded from it to nearest even.  Others are the low part of integers of 32 bits: s8 with its
sign, u8 and bf16 (its bits) with zeros; what is stored are integers that the type has.  What such numbers mean is
arithmetic, which programs do (generators/functions/types.py).
"""

from typing import Final

from asmdnn.isa.assembler import Pointer, Register
from asmdnn.isa.avx2 import Avx2
from asmdnn.isa.avx512 import Avx512, Avx512Tail
from asmdnn.isa.elements import load_bytes, low_part, store_bytes
from asmdnn.isa.vector import Lanes, TailLanes, Vector

SIZE_BYTES: Final = {"f16": 2, "bf16": 2, "s8": 1, "u8": 1}
FIRST_TWO_EVEN: Final = 0b1000  # elements 0 and 2, in front


class Typed(Lanes):
    """The lanes that `part` is of a vector, all or the first few, as elements of type `kind` that touch."""

    def __init__(self, v: Vector, part: Lanes, kind: str) -> None:
        self.v, self.asm, self.part, self.kind = v, v.asm, part, kind
        self.size = SIZE_BYTES[kind]

    @property
    def count(self) -> int:
        """Elements."""
        return self.part.lanes.bit_length() if isinstance(self.part, TailLanes) else self.v.lanes

    def load(self, dst: Register, src: Pointer) -> None:
        if isinstance(self.part, TailLanes):
            self.load_tail(dst, src)
            self.widen(dst, low_part(dst, self.size))
        else:
            self.widen(dst, src.sized(self.v.lanes * self.size))

    def widen(self, dst: Register, source: Register | Pointer) -> None:
        asm = self.asm
        {"f16": asm.VCVTPH2PS, "bf16": asm.VPMOVZXWD, "s8": asm.VPMOVSXBD, "u8": asm.VPMOVZXBD}[self.kind](dst, source)

    def load_tail(self, dst: Register, src: Pointer) -> None:
        """The bytes of the elements into the low part of dst; no other byte is read."""
        raise NotImplementedError

    def store(self, dst: Pointer, src: Register) -> None:
        """src is overwritten."""
        raise NotImplementedError

    def broadcast(self, dst: Register, src: Pointer) -> None:
        """The one element at src in every lane."""
        low = low_part(dst, self.size)
        (self.asm.VPBROADCASTW if self.size == 2 else self.asm.VPBROADCASTB)(low, src.sized(self.size))
        self.widen(dst, low)


class Avx2Typed(Typed):
    """Packed within the halves of a register, whose results are then brought together; tails in pieces."""

    def load_tail(self, dst: Register, src: Pointer) -> None:
        load_bytes(self.asm, dst.xmm, src, self.count * self.size)

    def store(self, dst: Pointer, src: Register) -> None:
        self.narrow(src)
        store_bytes(self.asm, dst, src.xmm, self.count * self.size)

    def narrow(self, x: Register) -> None:
        asm = self.asm
        if self.kind == "f16":
            asm.VCVTPS2PH(x.xmm, x, 0)
            return
        (asm.VPACKSSDW if self.kind == "s8" else asm.VPACKUSDW)(x, x, x)
        if self.size == 1:
            (asm.VPACKSSWB if self.kind == "s8" else asm.VPACKUSWB)(x, x, x)
        asm.VPERMQ(x, x, FIRST_TWO_EVEN)
        if self.size == 1:
            asm.VPSHUFD(x.xmm, x.xmm, FIRST_TWO_EVEN)


class Avx512Typed(Typed):
    """Truncated by one instruction; the mask of a tail counts elements, whatever their size."""

    def load_tail(self, dst: Register, src: Pointer) -> None:
        low = low_part(dst, self.size)
        assert isinstance(self.part, Avx512Tail)
        self.move(low.zeroed(self.part.mask), src.sized(low.size_bytes))

    def store(self, dst: Pointer, src: Register) -> None:
        low = low_part(src, self.size)
        if self.kind == "f16":
            self.asm.VCVTPS2PH(low, src, 0)
        else:
            (self.asm.VPMOVDW if self.size == 2 else self.asm.VPMOVDB)(low, src)
        if isinstance(self.part, Avx512Tail):
            self.move(dst.sized(low.size_bytes).masked(self.part.mask), low)
        else:
            self.asm.VMOVUPS(dst.sized(low.size_bytes), low)

    def move(self, dst: Register | Pointer, src: Register | Pointer) -> None:
        (self.asm.VMOVDQU16 if self.size == 2 else self.asm.VMOVDQU8)(dst, src)


class Repeated(Lanes):
    """One element of type `kind`, in every lane."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed

    def load(self, dst: Register, src: Pointer) -> None:
        self.typed.broadcast(dst, src)


def typed_lanes(v: Vector, part: Lanes, kind: str) -> Lanes:
    """`part` itself where elements have 4 bytes."""
    return _BY_WIDTH[v.bytes](v, part, kind) if kind in SIZE_BYTES else part


def repeated(v: Vector, kind: str) -> Lanes | None:
    """None, which stands for a broadcast of 4 bytes, where elements have so many."""
    return Repeated(_BY_WIDTH[v.bytes](v, v, kind)) if kind in SIZE_BYTES else None


_BY_WIDTH: Final[dict[int, type[Typed]]] = {Avx2.bytes: Avx2Typed, Avx512.bytes: Avx512Typed}
