"""exp, and what is made of it: expm1, logistic, tanh, and e^x times something.

Range reduction after Cody and Waite (Software Manual for the Elementary Functions, 1980): x = n ln2 + r, n integral,
|r| <= ln2 / 2, with ln2 in two parts, of which the first has so few bits that its products with n are exact.  Then
e^r = 1 + r + r^2 q(r); q is a minimax polynomial for the relative error of e^r - 1, 2^-26.0.
n comes from the low bits of x log2(e) + 1.5 * 2^23, where an addition has rounded it.

2^n itself may be no f32, or a denormal one.  exp_between multiplies twice, for results from 0 to infinity.  Most
functions need e^x of negative numbers alone: lifted_exp adds n + LIFT to the exponent of e^r, as integers, and who
takes the result multiplies by LOWERED in the end.  Either way a result is rounded once where it underflows.
"""

from math import copysign

from asmdnn.generators.functions.expression import Builder, Operable, Term
from asmdnn.isa.formula import bits_of
from asmdnn.records import dataclass

LOG2_E = float.fromhex("0x1.715476p+0")
LN2_HIGH = float.fromhex("0x1.62e4p-1")  # 16 bits
LN2_LOW = float.fromhex("0x1.7f7d1cp-20")
LN2 = float.fromhex("0x1.62e43p-1")
Q = tuple(map(float.fromhex, ("0x1.fffffep-2", "0x1.5554aep-3", "0x1.5556eep-5", "0x1.122a72p-7", "0x1.6ba6d2p-10")))
EIGHTHS = tuple(2.0 ** (i / 8) for i in range(8))
Q_OF_EIGHTHS = (0.5000645, 0.1666686)  # as Q, for |r| <= ln2 / 16: 2^-25.2 of e^r
INTEGERS = 1.5 * 2.0**23  # added to a number below 2^22, this leaves its nearest integer in the low bits
SIGN = 0x80000000
MOST_F32 = float.fromhex("0x1.fffffep+127")
BIAS = 127  # of the exponent of a f32
LEAST, MOST = -112.0, 89.0  # below, |x| e^x is 0; above, e^x is infinite
FURTHEST_SCALED = 170.0  # to both sides, what exp_between can take; below -170, x e^(scale x) is 0 too
LEAST_FLUSHED = -88.0  # its 2^n is 2^-127, which is made as 0
LIFT = 40  # 2^LIFT e^LEAST is a normal number, and so is 2^LIFT e^50
LOWERED = 2.0**-LIFT
LEAST_MINUS_1 = -20.0  # e^x - 1 is -1 below
MOST_MISH = 10.0  # mish is x above
LEAST_GELU = -10.95  # e^(2 g) is above e^LEAST here, and gelu and its derivative are 0 below
GELU_LINEAR, GELU_LINEAR_LOW = float.fromhex("0x1.9884p+0"), float.fromhex("0x1.4cf50ep-18")  # 16 bits first
GELU_CUBIC, GELU_CUBIC_LOW = float.fromhex("0x1.2444f2p-4"), float.fromhex("0x1.49b16ap-29")
SCALES = (2.0**-80, 2.0**80)  # of x, within which bounds divided by the scale are normal numbers
UNITS = (0.5, 1.0, 2.0)  # scales of an exponent that go into the polynomial
LEAST_SCALE = 2.0**-4  # of x, down to which e^(scale x) may be lifted by LIFT before x is multiplied


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """x scale = n ln2 + r unit; the low bits of `integer` are n + offset."""

    r: Term
    integer: Term
    unit: float

    def power(self, build: Builder, low: Operable | None) -> Term:
        """e^((r + low) unit)."""
        r = self.r if low is None else self.r + low
        return build.horner(r, [c * self.unit**k for k, c in enumerate((1.0, 1.0, *Q))])


def reduce_by_ln2(build: Builder, x: Term, offset: int, scale: float = 1.0) -> Reduced:
    """Of x * scale, the product not rounded, below 2^21.  The unit is the scale if that is one of UNITS."""
    integer = build.fma(x, LOG2_E * scale, INTEGERS + offset)
    n = integer - (INTEGERS + offset)
    unit = scale if abs(scale) in UNITS else 1.0
    rest = build.fnma(n, LN2_HIGH / unit, x) if unit == scale else build.fma(x, scale, n * -LN2_HIGH)
    return Reduced(build.fnma(n, LN2_LOW / unit, rest), integer, unit)


def lifted_exp(build: Builder, x: Term, *, low: Term | None = None, scale: float = 1.0) -> Term:
    """e^(scale (x + low)) 2^LIFT where the exponent is between LEAST and 50; any number for NaN, even a finite one."""
    reduced = reduce_by_ln2(build, x, LIFT, scale)
    return build.op("iadd", reduced.power(build, low), build.op("shl", reduced.integer, immediate=23))


def lifted_exp_by_table(build: Builder, x: Term, *, beyond: Term, scale: float, factor: Term) -> Term:
    """factor e^(scale (x - beyond)) 2^LIFT, |beyond| being below the last bits of x: as `lifted_exp`, with two
    multiplications less and half an ulp more of error.

    Powers of 2^(1/8) come from a table, so that the polynomial is of degree 3; |scale| is one of UNITS.
    """
    start = INTEGERS + len(EIGHTHS) * LIFT
    integer = build.fma(x, LOG2_E * len(EIGHTHS) * scale, start)
    n, unit = integer - start, len(EIGHTHS) * scale
    r = build.fnma(n, LN2_LOW / unit, build.fnma(n, LN2_HIGH / unit, x)) - beyond
    near_1 = build.horner(r, [c * scale**k for k, c in enumerate((1.0, 1.0, *Q_OF_EIGHTHS))])
    exponent = build.op("shl", build.op("shr", integer, immediate=3), immediate=23)
    return build.op("iadd", build.table(integer, EIGHTHS), exponent) * (near_1 * factor)


def exp_of_negative(build: Builder, x: Term, scale: float = 1.0, factor: float = 1.0) -> Term:
    """factor e^(x scale), rounded once, where the exponent is between LEAST and 50; NaN stays."""
    return build.fma(lifted_exp(build, x, scale=scale), LOWERED * factor, x - x)


def exp_between(
    build: Builder, x: Term, *, low: Operable | None = None, factor: Operable | None = None, scale: float = 1.0
) -> Term:
    """factor e^(scale (x + low)) where the exponent is between -FURTHEST_SCALED and FURTHEST_SCALED; NaN stays.

    low: |low| is below the last bits of x.  There are two scalings by powers of two, so that the result underflows and
    overflows as if it was rounded once; the factor comes before the second one.
    """
    reduced = reduce_by_ln2(build, x, 2 * BIAS, scale)
    power = reduced.power(build, low)  # before what follows, which would take registers meanwhile
    half = build.op("shr", reduced.integer, immediate=1)
    rest = build.op("isub", reduced.integer, half)
    scaled = power * build.op("shl", half, immediate=23)
    if factor is not None:
        scaled = scaled * factor
    return scaled * build.op("shl", rest, immediate=23)


def exp(build: Builder, x: Term) -> Term:
    """e^x."""
    return exp_between(build, bounded(build, x, LEAST, MOST))


def bounded(build: Builder, x: Term, least: float, most: float) -> Term:
    """x between the bounds; NaN stays."""
    return build.op("min", most, build.op("max", least, x))


def exp_in_parts(build: Builder, x: Term, factor: float = 1.0) -> tuple[Term, Term]:
    """(s, p) with factor e^x = s + s p, s being factor 2^n, for LEAST_MINUS_1 <= x <= 0 and NaN: what is added to it is
    rounded with it.  2^-30 factor is a normal number."""
    reduced = reduce_by_ln2(build, x, BIAS if factor == 1.0 else 0)
    r = reduced.r
    scale = build.op("shl", reduced.integer, immediate=23)
    if factor != 1.0:
        scale = build.op("iadd", scale, build.bits(bits_of(factor)))
    return scale, build.fma(r * r, build.horner(r, Q), r)


def negative_size(build: Builder, x: Term) -> Term:
    """-|x|."""
    return build.op("or", x, build.bits(SIGN))


def tanh(build: Builder, x: Term) -> Term:
    """sign(x) (1 - e) / (1 + e) with e = e^(-2 |x|): 1 + e is below 2, which makes the error of rounding it small."""
    scale, p = exp_in_parts(build, build.op("max", LEAST_MINUS_1, negative_size(build, x + x)))
    size = build.fnma(scale, p, 1.0 - scale) / build.fma(scale, p, scale + 1.0)
    return build.op("or", size, build.op("and", x, build.bits(SIGN)))


def elu(build: Builder, x: Term, alpha: float) -> Term:
    """x > 0: x, else alpha (e^x - 1)."""
    if 0.0 <= alpha <= 1.0:  # then it is the larger of the two, and e^x - 1 is 0 where x is
        return build.op("max", minus_1(build, build.op("min", 0.0, build.op("max", LEAST_MINUS_1, x)), alpha), x)
    return build.where(x >= 0.0, x, minus_1(build, build.op("max", LEAST_MINUS_1, x), alpha))


def minus_1(build: Builder, x: Term, alpha: float) -> Term:
    """alpha (e^x - 1), for LEAST_MINUS_1 <= x <= 0 and NaN."""
    if not SCALES[0] < abs(alpha) < SCALES[1]:
        return minus_1(build, x, 1.0) * alpha
    scale, p = exp_in_parts(build, x, alpha)
    return build.fma(scale, p, scale - alpha)


def logistic(build: Builder, x: Term, alpha: float = 1.0) -> Term:
    """1 / (1 + e^(-alpha x)), computed from e^-|alpha x|, so that it underflows gradually."""
    scale = abs(alpha)
    if not SCALES[0] < scale < SCALES[1]:
        return logistic(build, x * alpha)
    e = exp_of_negative(build, build.op("max", LEAST / scale, negative_size(build, x)), scale)
    return build.where(x > 0.0 if alpha > 0 else x < 0.0, 1.0, e) / (e + 1.0)


def swish(build: Builder, x: Term, alpha: float) -> Term:
    """x logistic(alpha x); 0 where alpha x is minus infinity, its limit; NaN where that is 0 times infinity."""
    scale = abs(alpha)
    if alpha == 0:
        return build.fma(x, 0.5, x * alpha)
    if not SCALES[0] < scale < SCALES[1]:
        finite = build.op("max", -MOST_F32, x) if alpha > 0 else build.op("min", MOST_F32, x)
        return finite * logistic(build, x * alpha)
    z = build.op("max", (LEAST if scale >= LEAST_SCALE else -FURTHEST_SCALED) / scale, negative_size(build, x))
    larger = "max" if alpha > 0 else "min"  # in size: z e^(scale z) is smaller than z
    if scale >= LEAST_SCALE:
        lifted = lifted_exp(build, z, scale=scale)
        part = lifted * z * copysign(LOWERED, alpha)
        return build.op(larger, part, x) / build.fma(lifted, LOWERED, 1.0)
    part = exp_between(build, z, scale=scale, factor=z if alpha > 0 else -z)
    return build.op(larger, part, x) / (exp_between(build, z, scale=scale) + 1.0)


def gelu_tanh(build: Builder, x: Term) -> Term:
    """x / 2 (1 + tanh(g)), which is x logistic(2 g), with g = sqrt(2 / pi) (x + 0.044715 x^3).

    2 g is a sum of two numbers (Dekker 1971), since its error is one of the result; it is computed for -|x|.
    """
    z = build.op("max", LEAST_GELU, negative_size(build, x))
    y, low = twice_g(build, z)
    lifted = lifted_exp(build, y, low=low)
    return build.op("max", lifted * z * LOWERED, x) / build.fma(lifted, LOWERED, 1.0)


def twice_g(build: Builder, z: Term) -> tuple[Term, Term]:
    """The exponent of gelu_tanh and its low part."""
    square = z * z
    square_low = build.fma(z, z, -square)
    factor = build.fma(square, GELU_CUBIC, GELU_LINEAR)
    factor_low = build.fma(square, GELU_CUBIC, GELU_LINEAR - factor)  # exact: GELU_LINEAR has few bits
    factor_low = build.fma(square, GELU_CUBIC_LOW, factor_low + GELU_LINEAR_LOW)
    factor_low = build.fma(square_low, GELU_CUBIC, factor_low)
    y = z * factor
    return y, build.fma(z, factor_low, build.fma(z, factor, -y))


def mish(build: Builder, x: Term) -> Term:
    """x tanh(log(1 + e^x)), which is x e^x (e^x + 2) / (m + 2) with m = e^x (e^x + 2)."""
    z = build.op("max", LEAST, x)
    y = build.op("min", z, MOST_MISH)
    lifted = lifted_exp(build, y)
    above = build.fma(lifted, LOWERED, 2.0)
    part = lifted * y * above / build.fma(lifted, above, 2.0 / LOWERED)
    return part - (y - z)  # which is 0 below MOST_MISH, the sign of part's zeros being kept


def flushed_exp(build: Builder, x: Term) -> Term:
    """e^x where x <= 80, and 0 below 2^-127; NaN stays.  ln2 is one number: e^x is off by 4 ulp at most, which is less
    than what rounding x, a difference of numbers up to 88, makes of it."""
    integer = build.fma(build.op("max", LEAST_FLUSHED, x), LOG2_E, INTEGERS + BIAS)
    r = build.fnma(integer - (INTEGERS + BIAS), LN2, build.op("max", LEAST_FLUSHED, x))
    return build.horner(r, (1.0, 1.0, *Q)) * build.op("shl", integer, immediate=23)
