"""The element types that there are; see element.py for what each method says.

bf16 is the upper half of an f32.  Integers saturate: what is above the largest value gives that, +inf too; NaN and what
is below the smallest gives the smallest.  bf16 and f16 overflow to infinity, and keep NaN.  Others: small_floats.py.
"""

from collections.abc import Sequence
from struct import pack
from typing import Final

from asmdnn.isa.across import Combine
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.element import Element
from asmdnn.isa.formula import UNORDERED, Operations, V
from asmdnn.isa.levels import AVX512_CORE, AVX512_CORE_BF16, Isa, isa_of
from asmdnn.isa.pieces import low_part
from asmdnn.isa.small_floats import CODED, F8E4M3, F8E5M2
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import f32_level
from asmdnn.types import DataType, bf16, f16, f32, s8, s16, s32, u8

BF16_ROUND, BF16_QUIET = 0x7FFF, 0x400000
DENORMAL_CLASS: Final = 0x20  # of VFPCLASSPS


class F32(Element):
    """What is computed with."""

    dtype, stays = f32, True


class Bits(Element):
    """Plain bits, which stay as they are."""

    stays = True

    def __init__(self, size_bytes: int) -> None:
        self.dtype = DataType(f"b{8 * size_bytes}", size_bytes, f"<u{size_bytes}")

    def widen(self, v: Vector, x: Register, source: Register | Pointer, spare: Sequence[Register] = ()) -> None:
        """They are in x."""

    def narrow(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        """They are."""


class Integer(Element):
    """Exact as f32 but for s32, which is rounded to nearest even."""

    limits: tuple[float, float]

    def widened(self, ops: Operations[V], x: V) -> V:
        return ops.op("to_float", x)

    def narrowed(self, ops: Operations[V], x: V) -> V:
        return self.narrowed_above(ops, ops.op("max", x, self.limits[0]))

    def narrowed_above(self, ops: Operations[V], x: V) -> V:
        """`to_int` makes the least s32 of what is below that, and of NaN."""
        return ops.op("to_int", ops.op("min", self.limits[1], x))

    def to_f32(self, v: Vector, x: Register, spare: Sequence[Register] = ()) -> None:
        v.asm.VCVTDQ2PS(x, x)

    def round(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        """VCVTPS2DQ turns all that is out of range, and NaN, into the least: just the upper end needs care."""
        self.load_largest(v, spare[0])
        v.asm.VMINPS(x, spare[0], x)  # x where it is NaN
        v.asm.VCVTPS2DQ(x, x)


class S32(Integer):
    dtype, limits, signed = s32, (-(2.0**31), 2147483520.0), True  # 2147483520 is the last f32 below 2^31

    def addition(self, v: Vector) -> Combine:
        addition: Combine = v.asm.VPADDD
        return addition

    def widen(self, v: Vector, x: Register, source: Register | Pointer, spare: Sequence[Register] = ()) -> None:
        v.asm.VCVTDQ2PS(x, source)


class S8(Integer):
    dtype, limits, signed, is_upper = s8, (-128.0, 127.0), True, True

    def spread(self, asm: Assembler, x: Register, source: Register | Pointer) -> None:
        asm.VPMOVSXBD(x, source)

    def from_end(self, v: Vector, x: Register, spare: Sequence[Register] = ()) -> None:
        v.asm.VPSRAD(x, x, 24)
        self.to_f32(v, x)


class U8(Integer):
    dtype, limits = u8, (0.0, 255.0)


class S16(Integer):
    """Bytes that are multiplied as words, in scratch."""

    dtype, limits, signed = s16, (-32768.0, 32767.0), True

    def spread(self, asm: Assembler, x: Register, source: Register | Pointer) -> None:
        asm.VPMOVSXWD(x, source)

    def pack(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        self.truncate(v, x)


class BytePairs(Bits):
    """Two s8, as two words in a lane."""

    def __init__(self) -> None:
        self.dtype = DataType("s8s8", 2 * s8.size_bytes, "<u2")

    def spread(self, asm: Assembler, x: Register, source: Register | Pointer) -> None:
        asm.VPMOVSXBW(x, source)


class F16(Element):
    """The lanes are f32."""

    dtype, is_packed = f16, True

    def code(self, number: float) -> int:
        try:
            return int.from_bytes(pack("<e", number), "little")
        except OverflowError:
            return 0x7C00 if number > 0 else 0xFC00

    def spread(self, asm: Assembler, x: Register, source: Register | Pointer) -> None:
        asm.VCVTPH2PS(x, source)

    def narrow(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        self.truncate(v, x)

    def truncate(self, v: Vector, x: Register) -> None:
        v.asm.VCVTPS2PH(low_part(x, self.size_bytes), x, 0)


class Bf16(Element):
    """VCVTNEPS2BF16 would round in one instruction, but makes zeros of denormals: see NativeBf16."""

    dtype, is_upper, cut_bits, rounds_by_steps = bf16, True, 16, True

    def widened(self, ops: Operations[V], x: V) -> V:
        return ops.op("shl", x, immediate=self.cut_bits)

    def narrowed(self, ops: Operations[V], x: V) -> V:
        """The upper half of x + 0x7FFF + the lowest bit of that half; of a NaN the upper half, made quiet."""
        odd = ops.op("and", ops.op("shr", x, immediate=self.cut_bits), ops.bits(1))
        rounded = ops.op("iadd", ops.op("iadd", x, ops.bits(BF16_ROUND)), odd)
        quiet = ops.op("or", x, ops.bits(BF16_QUIET))
        kept = ops.op("select", x, x, quiet, rounded, immediate=UNORDERED)
        return ops.op("shr", kept, immediate=self.cut_bits)

    def to_f32(self, v: Vector, x: Register, spare: Sequence[Register] = ()) -> None:
        v.asm.VPSLLD(x, x, self.cut_bits)

    def from_end(self, v: Vector, x: Register, spare: Sequence[Register] = ()) -> None:
        """It is f32."""

    def round(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        """As `narrowed`, with two shifts for the lowest bit, as constants take registers here."""
        asm, (bits, nan, *_) = v.asm, spare
        condition = v.condition(lambda: nan)
        v.compare(condition, x, x, UNORDERED)
        asm.VPSLLD(bits, x, 31 - self.cut_bits)
        asm.VPSRLD(bits, bits, 31)
        asm.VPADDD(bits, bits, v.splat(BF16_ROUND))
        asm.VPADDD(bits, bits, x)
        asm.VORPS(x, x, v.splat(BF16_QUIET))
        v.select(x, condition, x, bits)
        asm.VPSRLD(x, x, self.cut_bits)
        v.end_condition(condition)


class NativeBf16(Bf16):
    """As AVX512_BF16 rounds: to nearest even, denormals to zero, as the products of the same level take them."""

    narrows_pairs, results = True, f32

    def narrow(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        self.narrow_to(v, x, x)

    def narrow_to(self, v: Vector, x: Register, source: Register) -> None:
        v.asm.VCVTNEPS2BF16(low_part(x, self.size_bytes), source)

    def narrow_both(self, v: Vector, x: Register, low: Register, high: Register) -> None:
        v.asm.VCVTNE2PS2BF16(x, high, low)

    def find_others(self, v: Vector, values: Sequence[Register]) -> None:
        """Denormals, which stay what they are, are for the other code."""
        asm, last = v.asm, len(values) - 1
        found, other = asm.masks.take("denormals", 2)
        for i, source in enumerate(values):
            asm.VFPCLASSPS(other if i else found, source, DENORMAL_CLASS)
            if 0 < i < last:
                asm.KORW(found, found, other)
        asm.KORTESTW(found, other if last else found)
        asm.masks.free(found, other)


class NativeS8(S8):
    """As AVX-512 narrows: what is below the least, and NaN, are the least number of s32, which VPMOVSDB saturates."""

    def narrow(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        self.load_largest(v, spare[0])
        v.asm.VMINPS(x, spare[0], x)  # x where it is NaN
        v.asm.VCVTPS2DQ(x, x)
        v.asm.VPMOVSDB(x.xmm, x)


class NativeU8(U8):
    """As AVX-512 narrows: what is above the largest number of s32 is 2^31, for VPMOVUSDB, which reads no sign."""

    def narrow(self, v: Vector, x: Register, spare: Sequence[Register]) -> None:
        v.asm.VMAXPS(x, x, v.splat(0))  # 0 where x is NaN
        v.asm.VCVTPS2DQ(x, x)
        v.asm.VPMOVUSDB(x.xmm, x)


def element_of(kind: str | DataType) -> Element:
    """The element type of that name, which may be "b32", "b16" or "b8" for plain bits."""
    return _ELEMENTS[str(kind)]


def size_of(kind: str) -> int:
    """Bytes of an element."""
    return element_of(kind).size_bytes


def native_element(kind: str | DataType, isa: str) -> Element:
    """As code of level `isa` rounds to the type in one instruction, if it has that."""
    features = isa_of(isa).features
    return next((e for level, e in _NATIVE.get(str(kind), ()) if level.features <= features), element_of(kind))


def storing_element(kind: str, isa: str) -> Element:
    """As code of level `isa` rounds f32 to that type and stores them: two vectors by one instruction, or by steps."""
    native = native_element(kind, isa)
    return native if native.narrows_pairs else element_of(kind)


def narrowing_level(kind: str, isa: str) -> str:
    """The level of code that narrows f32 to the type, two vectors at once if a CPU of level `isa` does, else f32's."""
    features = isa_of(isa).features
    pairs = (level for level, e in _NATIVE.get(kind, ()) if e.narrows_pairs and level.features <= features)
    return next((level.name for level in pairs), f32_level(isa))


_NUMBERS: Final[tuple[Element, ...]] = (F32(), S32(), Bf16(), F16(), S8(), U8(), F8E5M2(), F8E4M3())
_OTHERS: Final = (*CODED, S16(), Bits(4), Bits(2), Bits(1))
_ELEMENTS: Final[dict[str, Element]] = {each.name: each for each in (*_NUMBERS, *_OTHERS)}
BYTE_PAIRS: Final = BytePairs()
NUMBERS: Final = tuple(each.name for each in _NUMBERS)  # the types but for plain bits
_NATIVE: Final[dict[str, tuple[tuple[Isa, Element], ...]]] = {
    "bf16": ((AVX512_CORE_BF16, NativeBf16()),),
    "s8": ((AVX512_CORE, NativeS8()),),
    "u8": ((AVX512_CORE, NativeU8()),),
}
