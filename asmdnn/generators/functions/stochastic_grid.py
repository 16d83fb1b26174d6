"""The numbers of a type, and how a number between two of them becomes one: by random bits that are added to its own.

Normal numbers of a float lack lower bits of an f32, where random ones are added, with a carry into the exponent.
Numbers below the least normal one, and integers, lie at one distance: they are counted in steps of 2^-cut of it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from asmdnn.generators.functions.program import Predicate
from asmdnn.isa.assembler import Register
from asmdnn.isa.formula import bits_of
from asmdnn.isa.vector import Vector
from asmdnn.types import UPPER_FLOATS, DataType, f8_e4m3, f8_e5m2, f16, s8, u8

WORD_BITS: Final = 32
MAGNITUDE, SIGN, ALL_BITS = 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF


class GridSteps(NamedTuple):
    """cut: how many random bits are added.  distance: between two numbers that lie at one.  most: up to which numbers
    they do, 0: nowhere.  of_floats: whether others are floats, which lack `cut` bits of an f32.
    """

    cut: int
    distance: float = 0.0
    most: float = 0.0
    of_floats: bool = True


STEPS: Final[dict[DataType, GridSteps]] = {
    **dict.fromkeys(UPPER_FLOATS, GridSteps(16)),  # f32: numbers of its upper half, which stay wide
    f16: GridSteps(13, 2.0**-24, 2.0**-14),
    f8_e4m3: GridSteps(20, 2.0**-9, 2.0**-6),
    f8_e5m2: GridSteps(21, 2.0**-16, 2.0**-14),
    s8: GridSteps(16, 1.0, 256.0, of_floats=False),
    u8: GridSteps(16, 1.0, 256.0, of_floats=False),
}


class Grid:
    """The emission, with the registers of a vector."""

    def __init__(self, v: Vector, dtype: DataType) -> None:
        self.v, self.asm, self.steps = v, v.asm, STEPS[dtype]

    def cut(self, bits: Register) -> None:
        """As many of 32 random bits as are added."""
        self.asm.VPSRLD(bits, bits, WORD_BITS - self.steps.cut)

    def round(self, x: Register, bits: Register, finite: Register, spare: Sequence[Register]) -> None:
        """x = one of its neighbours.  finite: the condition that it is; bits and three of `spare` are overwritten."""
        v, steps, (evenly, size, other, *_) = self.v, self.steps, spare
        if steps.most:
            self.asm.VANDPS(size, x, v.splat(MAGNITUDE))
            self.count_steps(evenly, size, bits)
            self.asm.VANDPS(other, x, v.splat(SIGN))
            self.asm.VORPS(evenly, evenly, other)
        v.keep(bits, finite, bits)
        if not steps.of_floats:
            v.select(x, finite, evenly, x)
            return
        self.asm.VPADDD(x, x, bits)
        self.asm.VANDPS(x, x, v.splat(ALL_BITS >> steps.cut << steps.cut))
        if steps.most:
            below = v.condition(lambda: other)
            v.compare(below, size, v.splat(bits_of(steps.most)), Predicate.less)
            v.select(x, below, evenly, x)
            v.end_condition(below)

    def count_steps(self, result: Register, size: Register, bits: Register) -> None:
        """A size as a whole number of distances; of what is larger than the most, about that."""
        asm, v = self.asm, self.v
        asm.VMINPS(result, size, v.splat(bits_of(self.steps.most)))
        asm.VMULPS(result, result, v.splat(bits_of(2.0**self.steps.cut / self.steps.distance)))
        asm.VCVTTPS2DQ(result, result)
        asm.VPADDD(result, result, bits)
        asm.VPSRLD(result, result, self.steps.cut)
        asm.VCVTDQ2PS(result, result)
        asm.VMULPS(result, result, v.splat(bits_of(self.steps.distance)))
