"""tan, and the inverse and hyperbolic functions, of what the other files have, and three polynomials.

asin x = x + x^3 a(x^2) for |x| <= 1/2; above, with r^2 = (1 - |x|) / 2, it is pi/2 - 2 asin r.  atan x = x + x^3 b(x^2)
for |x| <= tan(pi/8); above, atan x = pi/4 + atan((x - 1) / (x + 1)), and from tan(3 pi/8) on pi/2 - atan(1 / x).
sinh x = x + x^3 c(x^2) for |x| <= 1.  The polynomials are fitted at Chebyshev's points, for a relative error of the
whole function below 2^-27.9.  The inverse hyperbolic ones are log(1 + u), which is log(w) u / (w - 1) with w = 1 + u
rounded (Kahan; HP-15C Advanced Functions Handbook, 1982).  Where a function is not defined results are NaN.
"""

from asmdnn.generators.functions.eltwise.exponential import SIGN, exp
from asmdnn.generators.functions.eltwise.logarithm import NAN_BITS, log
from asmdnn.generators.functions.eltwise.trigonometric import cos, sin
from asmdnn.generators.functions.expression import Builder, Term

ASIN = tuple(map(float.fromhex, (
    "0x1.555554p-3", "0x1.33343cp-4", "0x1.6d58d8p-5", "0x1.fdcec8p-6", "0x1.17cd14p-6", "0x1.14f044p-5",
)))  # fmt: skip
ATAN = tuple(map(float.fromhex, (
    "-0x1.555554p-2", "0x1.99973ep-3", "-0x1.2421a8p-3", "0x1.b82b0ap-4", "-0x1.08934ep-4",
)))  # fmt: skip
SINH = tuple(map(float.fromhex, ("0x1.555556p-3", "0x1.11111ep-7", "0x1.a008fep-13", "0x1.78a7440p-19")))
HALF_PI, HALF_PI_LOW = float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25")
TAN_PI_8, TAN_3_PI_8 = 0.41421356, 2.4142135
LN2, LARGE = 0.6931471805599453, 2.0**12  # from which 1 is nothing beside the square


def signed(build: Builder, size: Term, x: Term) -> Term:
    """With the sign of x."""
    return build.op("xor", size, build.op("and", x, build.bits(SIGN)))


def odd_series(build: Builder, x: Term, coefficients: tuple[float, ...]) -> Term:
    square = x * x
    return build.fma(x * square, build.horner(square, coefficients), x)


def tan(build: Builder, x: Term) -> Term:
    return sin(build, x) / cos(build, x)


def asin(build: Builder, x: Term) -> Term:
    size = abs(x)
    near = odd_series(build, size, ASIN)
    root = build.op("sqrt", build.fma(size, -0.5, 0.5))
    far = build.fma(odd_series(build, root, ASIN), -2.0, HALF_PI_LOW) + HALF_PI
    return signed(build, build.where(size <= 0.5, near, far), x)


def acos(build: Builder, x: Term) -> Term:
    """2 asin(sqrt((1 - |x|) / 2)), or pi minus that, beyond 1/2."""
    size = abs(x)
    near = (HALF_PI_LOW - odd_series(build, x, ASIN)) + HALF_PI
    beyond = odd_series(build, build.op("sqrt", build.fma(size, -0.5, 0.5)), ASIN) * 2.0
    far = build.where(x > 0.0, beyond, (2 * HALF_PI_LOW - beyond) + 2 * HALF_PI)
    return build.where(size <= 0.5, near, far)


def atan(build: Builder, x: Term) -> Term:
    size = abs(x)
    above, far = size > TAN_PI_8, size > TAN_3_PI_8
    over = build.where(far, -1.0, size - 1.0)
    under = build.where(far, size, size + 1.0)
    series = odd_series(build, build.where(above, over / under, size), ATAN)
    high = build.where(far, HALF_PI, build.where(above, HALF_PI / 2, 0.0))
    low = build.where(far, HALF_PI_LOW, build.where(above, HALF_PI_LOW / 2, 0.0))
    return signed(build, (series + low) + high, x)


def sinh(build: Builder, x: Term) -> Term:
    size = abs(x)
    half = exp(build, size * 0.5)  # squared it reaches further than e^x does
    far = build.fma(half * 0.5, half, -0.5 / (half * half))
    return signed(build, build.where(size <= 1.0, odd_series(build, size, SINH), far), x)


def cosh(build: Builder, x: Term) -> Term:
    half = exp(build, abs(x) * 0.5)
    return build.fma(half * 0.5, half, 0.5 / (half * half))


def log_of_1_more(build: Builder, u: Term) -> Term:
    """log(1 + u) of u >= 0, or above -1."""
    whole = u + 1.0
    return build.where(whole == 1.0, u, log(build, whole) * (u / (whole - 1.0)))


def asinh(build: Builder, x: Term) -> Term:
    size = abs(x)
    square = size * size
    near = log_of_1_more(build, size + square / (build.op("sqrt", square + 1.0) + 1.0))
    return signed(build, build.where(size < LARGE, near, log(build, size) + LN2), x)


def acosh(build: Builder, x: Term) -> Term:
    above = x - 1.0
    near = log_of_1_more(build, above + build.op("sqrt", build.fma(above, above, above * 2.0)))
    found = build.where(x < LARGE, near, log(build, x) + LN2)
    return build.where(x >= 1.0, found, build.bits(NAN_BITS))


def atanh(build: Builder, x: Term) -> Term:
    size = abs(x)
    found = log_of_1_more(build, (size * 2.0) / (1.0 - size)) * 0.5
    return signed(build, build.where(size == 1.0, float("inf"), found), x)
