"""Remainders of divisions, exact while |x / y| is below 2^46: fmod with the sign of x, and mod with that of y.

x - q y is exact where q is the quotient rounded to f32, since it has at most 24 bits: either q is whole and the
difference is below y, a multiple of y's last place; or q has 24 bits and takes 23 bits of x away.  So two steps leave
the remainder, or, where the second quotient was rounded up, y less.  Beyond, results are NaN.
"""

from asmdnn.generators.functions.eltwise.exponential import SIGN
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Rounding
from asmdnn.isa.formula import bits_of

LARGEST_QUOTIENT = 2.0**46
NAN_BITS = 0x7FC00000


def fmod(build: Builder, x: Term, y: Term) -> Term:
    """C's: x where |x| < |y|, of an infinite y too; NaN of an infinite x or a y of 0."""
    size, divisor = abs(x), abs(y)
    quotient = rest = size
    for step in range(2):
        ratio = rest / divisor
        quotient = quotient if step else ratio
        rest = build.fnma(build.op("round", ratio, immediate=Rounding.towards_zero), divisor, rest)
    rest = build.where(rest < 0.0, rest + divisor, rest)
    rest = build.where(quotient < LARGEST_QUOTIENT, rest, build.bits(NAN_BITS))
    rest = build.where(size < divisor, size, rest)
    return build.op("xor", rest, build.op("and", x, build.bits(SIGN)))


def mod(build: Builder, x: Term, y: Term) -> Term:
    """Python's and numpy's: between 0 and y; fmod plus y, rounded once, where signs differ; a 0 has the sign of y."""
    rest = fmod(build, x, y)
    sign = build.op("and", y, build.bits(SIGN))
    unlike = build.op("or", build.op("and", build.op("xor", rest, y), build.bits(SIGN)), build.bits(bits_of(1.0)))
    moved = build.where(unlike < 0.0, rest + y, rest)
    return build.where(rest == 0.0, sign, moved)
