"""sin and cos.

Range reduction after Cody and Waite (Software Manual for the Elementary Functions, 1980): |x| = k pi/2 + r, k integral,
|r| <= 0.82, with pi/2 in three parts of 24 bits.  Each is subtracted with one rounding; with the first there is none,
since |x| and k are so small that the difference has at most 24 bits.  k comes from the low bits of
|x| 2/pi + 1.5 * 2^23, where an addition has rounded it.  Then sin r = r + r^3 s(r^2), cos r = 1 - r^2/2 + r^4 c(r^2)
with minimax polynomials for the relative error, 2^-27.5 and 2^-32.3.  k says which of both, and the sign.

Beyond LARGEST the three parts are too few; results are NaN there, as they are of infinity.
"""

from asmdnn.generators.functions.eltwise.exponential import INTEGERS, SIGN
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.isa.formula import bits_of

LARGEST = 2.0**20
TWO_OVER_PI = float.fromhex("0x1.45f306p-1")
HALF_PI = tuple(map(float.fromhex, ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50")))
S = tuple(map(float.fromhex, ("-0x1.55554p-3", "0x1.110586p-7", "-0x1.98b002p-13")))
C = tuple(map(float.fromhex, ("0x1.555546p-5", "-0x1.6c0a24p-10", "0x1.99587ep-16")))
NAN_BITS = 0x7FC00000


def sin(build: Builder, x: Term) -> Term:
    """Odd: -0 stays -0."""
    sign = build.op("and", x, build.bits(SIGN))
    return build.op("xor", of_quadrant(build, abs(x), 0), sign)


def cos(build: Builder, x: Term) -> Term:
    return of_quadrant(build, abs(x), 1)


def of_quadrant(build: Builder, x: Term, quadrants: int) -> Term:
    """sin(x + quadrants * pi/2) of x >= 0."""
    integer = build.fma(x, TWO_OVER_PI, INTEGERS)
    k, r = integer - INTEGERS, x
    for part in HALF_PI:
        r = build.fnma(k, part, r)
    sine, cosine = of_remainder(build, r)
    if quadrants:
        integer = build.op("iadd", integer, build.bits(quadrants))
    odd = build.op("or", build.op("shl", integer, immediate=31), build.bits(bits_of(1.0)))  # -1 or 1
    sign = build.op("and", build.op("shl", integer, immediate=30), build.bits(SIGN))
    found = build.op("xor", build.where(odd < 0.0, cosine, sine), sign)
    return build.where(x <= LARGEST, found, build.bits(NAN_BITS))


def of_remainder(build: Builder, r: Term) -> tuple[Term, Term]:
    """sin r and cos r of |r| <= 0.82."""
    square = r * r
    sine = build.fma(r * square, build.horner(square, S), r)
    return sine, build.fma(square * square, build.horner(square, C), build.fma(square, -0.5, 1.0))
