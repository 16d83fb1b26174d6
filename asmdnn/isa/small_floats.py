"""Floats of 8 and of 4 bits, computed with as f32, and rounded from it once.

Those of 8 bits are of the OCP's specification (OFP8, revision 1.0).  A lane holds the byte.  Numbers below the normal
ones are made and rounded by an f32 addition that has their last bit at its end, so that no f32 below its own normal
ones is an operand: MXCSR's modes for these change nothing.

Those of 4 bits are numbers of a table: f4_e2m1 of the OCP's MX specification (1.0), with a sign, and nf4, which has
what cuts a normal distribution into sixteen parts of equal weight, scaled to 1: Dettmers and others, QLoRA, 2023.  An
element is a byte that holds the four bits here; pairs of these share a byte once reorders have packed them.
"""

from struct import pack, unpack
from typing import Any, ClassVar, Final

from asmdnn.isa.element import Element
from asmdnn.isa.formula import LESS, NOT_LESS, UNORDERED, Operations, V, bits_of
from asmdnn.types import DataType, f4_e2m1, f8_e4m3, f8_e5m2, nf4

F32_BIAS, F32_MANTISSA, F32_MAGNITUDE, F32_INFINITY = 127, 23, 0x7FFFFFFF, 0x7F800000
SIGN = 0x80000000


class Float8(Element):
    """A sign, an exponent with a bias, and the first bits of a mantissa.

    special: the first number that the exponent and the mantissa would mean, and which is infinity or NaN.
    """

    mantissa: ClassVar[int]
    bias: ClassVar[int]
    special: ClassVar[float]
    rounds_by_steps = True
    converts_alone = False

    @property
    def shift(self) -> int:
        """How many bits of an f32's mantissa the type lacks."""
        return F32_MANTISSA - self.mantissa

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    def widened(self, ops: Operations[V], x: V) -> V:
        up = ops.op("sar", ops.op("shl", x, immediate=24), immediate=1 + self.mantissa)
        bits = ops.op("and", up, ops.bits(SIGN | 0x7F << self.shift))
        normal = ops.op("iadd", bits, ops.bits((F32_BIAS - self.bias) << F32_MANTISSA))

        def part(mask: int) -> V:
            return ops.op("and", normal, ops.bits(mask))

        first = ops.op("or", part(SIGN), self.least_normal)  # the bit before the mantissa, which small ones lack
        small = ops.op("sub", ops.op("iadd", normal, ops.bits(1 << F32_MANTISSA)), first)
        small = ops.op("or", small, part(SIGN))  # of zero
        number = ops.op("select", part(F32_MAGNITUDE), self.least_normal, small, normal, immediate=LESS)
        magnitude = part(F32_MAGNITUDE)
        special = ops.op("or", normal, ops.bits(F32_INFINITY))
        return ops.op("select", magnitude, self.special, special, number, immediate=NOT_LESS)

    def narrowed(self, ops: Operations[V], x: V) -> V:
        """Normal numbers are rounded as integers, with a carry into the exponent, and up to the special ones."""
        size = ops.op("min", ops.op("and", x, ops.bits(F32_MAGNITUDE)), self.special)  # this where x is NaN
        odd = ops.op("and", ops.op("shr", size, immediate=self.shift), ops.bits(1))
        half = (1 << self.shift - 1) - 1 - ((F32_BIAS - self.bias) << F32_MANTISSA)
        normal = ops.op("iadd", ops.op("iadd", size, ops.bits(half % 2**32)), odd)
        normal = ops.op("shr", normal, immediate=self.shift)
        unit = self.least_normal * 2.0**self.shift  # whose last bit is the type's
        small = ops.op("isub", ops.op("add", size, unit), ops.bits(bits_of(unit)))
        number = ops.op("select", size, self.least_normal, small, normal, immediate=LESS)
        sign = ops.op("and", ops.op("shr", x, immediate=24), ops.bits(0x80))
        return ops.op("or", self.with_nan(ops, number, x), sign)

    def with_nan(self, ops: Operations[V], number: V, x: V) -> V:
        """The byte without its sign; `number` is the first special one where x is NaN."""
        return number


class F8E5M2(Float8):
    """What is too large becomes infinite, NaN stays NaN, quiet."""

    dtype, mantissa, bias, special = f8_e5m2, 2, 15, 65536.0

    def with_nan(self, ops: Operations[V], number: V, x: V) -> V:
        return ops.op("select", x, x, ops.bits(0x7E), number, immediate=UNORDERED)


class F8E4M3(Float8):
    """There is no infinity: it and all that is too large become NaN, as oneDNN and ml_dtypes' float8_e4m3fn have it."""

    dtype, mantissa, bias, special = f8_e4m3, 3, 7, 480.0


MAGNITUDES: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
NORMAL: Final = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
TABLES: Final[dict[str, tuple[float, ...]]] = {
    f4_e2m1.name: (*MAGNITUDES, *(-x for x in MAGNITUDES)),
    nf4.name: NORMAL,
}
CODE_SHIFT, SIGN_OF_CODE = 28, 8


def byte_of(dtype: DataType) -> DataType:
    """The type of a byte that holds one element."""
    return DataType(f"{dtype}_byte", 1, "|u1")


def next_above(number: float) -> float:
    """The f32 after a positive one."""
    (bits,) = unpack("<I", pack("<f", number))
    (found,) = unpack("<f", pack("<I", bits + 1))
    return float(found)


class CodedFloat(Element):
    """numbers: ascending from code 0.  What lies beyond the last becomes that, and so does NaN."""

    numbers: ClassVar[tuple[float, ...]]
    rounds_by_steps = True
    converts_alone = False

    def least(self, code: int) -> float:
        """The least number that is rounded to a code above 0 or a larger one: the middle, rounded to f32."""
        return (self.numbers[code - 1] + self.numbers[code]) / 2

    def looked_up(self, ops: Operations[V], code: V) -> V:
        """The number of a code, an integer."""
        index = ops.op("to_float", code)
        found = ops.op("or", ops.op("and", code, ops.bits(0)), self.numbers[0])
        for i, number in enumerate(self.numbers[1:], 1):
            found = ops.op("select", index, i - 0.5, number, found, immediate=NOT_LESS)
        return found

    def ranked(self, ops: Operations[V], x: V) -> V:
        """The code of a number."""
        code = ops.op("and", x, ops.bits(0))
        for i in range(1, len(self.numbers)):
            code = ops.op("select", x, self.least(i), ops.bits(i), code, immediate=NOT_LESS)
        return code


class F4E2M1(CodedFloat):
    """The bits are a sign and a code, rounded to nearest even."""

    dtype, numbers = byte_of(f4_e2m1), MAGNITUDES

    def least(self, code: int) -> float:
        """A middle belongs to the even code."""
        middle = super().least(code)
        return middle if code % 2 == 0 else next_above(middle)

    def widened(self, ops: Operations[V], x: V) -> V:
        sign = ops.op("and", ops.op("shl", x, immediate=CODE_SHIFT), ops.bits(SIGN))
        return ops.op("or", self.looked_up(ops, ops.op("and", x, ops.bits(SIGN_OF_CODE - 1))), sign)

    def narrowed(self, ops: Operations[V], x: V) -> V:
        sign = ops.op("and", ops.op("shr", x, immediate=CODE_SHIFT), ops.bits(SIGN_OF_CODE))
        return ops.op("or", self.ranked(ops, ops.op("and", x, ops.bits(F32_MAGNITUDE))), sign)


class Nf4(CodedFloat):
    """The nearest; a middle belongs to the upper one."""

    dtype, numbers = byte_of(nf4), NORMAL

    def widened(self, ops: Operations[V], x: V) -> V:
        return self.looked_up(ops, x)

    def narrowed(self, ops: Operations[V], x: V) -> V:
        return self.ranked(ops, x)


CODED: Final[tuple[Any, ...]] = (F4E2M1(), Nf4())
