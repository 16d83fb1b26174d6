"""Floats of 8 bits, of the OCP's specification (OFP8, revision 1.0): computed with as f32, and rounded from it once.

A lane holds the byte.  Numbers below the normal ones are made and rounded by an f32 addition that has their last bit at
its end, so that no f32 below its own normal ones is an operand: MXCSR's modes for these change nothing.
"""

from typing import ClassVar

from asmdnn.isa.element import Element
from asmdnn.isa.formula import LESS, NOT_LESS, UNORDERED, Operations, V, bits_of
from asmdnn.types import f8_e4m3, f8_e5m2

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
