"""gelu_erf: x times the normal distribution function; and erf.

The distribution function of -z is e^(-z^2 / 2) g(z), g(z) = erfcx(z / sqrt 2) / 2 being smooth: a quotient of
polynomials with positive coefficients (minimax for the relative error, 2^-26.1).  z^2 is kept in two numbers, since an
error of the exponent is one of the result; so the lower tail has as many correct bits as the rest.

Short forms are for results that are rounded to bf16: z P(z^2) + 1/2 is the distribution function until its tail is
taken as 0.  They are within 4.2e-5 of gelu, and where that is beyond 0.05 within 2^-10 of it, half a rounding of bf16.
"""

from asmdnn.generators.functions.eltwise.exponential import LOWERED, SIGN, lifted_exp_by_table
from asmdnn.generators.functions.expression import Builder, Term

# Of g / SMOOTH; both begin with a sum, not a product, as their leading coefficients are 1.
NUMERATOR = (121.46553802490234, 106.47599029541016, 44.513916015625, 9.871211051940918, 1.0)
DENOMINATOR = (96.91659545898438, 162.28482055664062, 116.54315948486328, 45.49993133544922, 9.8719482421875, 1.0)
SMOOTH = 0.3989468812942505
FURTHEST = 14.5  # the tail is 0 from here on
# erf x = x + x p(x^2) for |x| < SMALL_ERF: p interpolates at Chebyshev's points, relative error of erf 2^-26.
SMALL_ERF = 0.8125
ERF = (
    0.12837916612625122, -0.37612637877464294, 0.11283763498067856, -0.02686360850930214,
    0.005212734453380108, -0.0008292290149256587, 9.086333739105612e-05,
)  # fmt: skip
SQRT_2 = 2.0**0.5
# Least squares of z times the error on Chebyshev's points, reweighted until the largest ones are alike; P ends at 1/2.
SHORT_ERF = (
    0.3987581431865692, -0.06607798486948013, 0.009647700935602188, -0.0010572955943644047, 8.479895041091368e-05,
    -4.783752046932932e-06, 1.7785193051622628e-07, -3.879216503577254e-09, 3.738221537874509e-11,
)  # fmt: skip
SHORT_TANH = (
    0.39876437187194824, -0.06640569120645523, 0.009872624650597572, -0.0011181688169017434, 9.36036667553708e-05,
    -5.529627742362209e-06, 2.1503834091163299e-07, -4.891154148367605e-09, 4.8985360906472764e-11,
)  # fmt: skip
FURTHEST_ERF, FURTHEST_TANH = 4.35, 4.3


def smooth_part(build: Builder, z: Term) -> Term:
    """g(z) / SMOOTH, 0 <= z <= FURTHEST."""
    return build.horner(z, NUMERATOR) / build.horner(z, DENOMINATOR)


def bell(build: Builder, z: Term, factor: Term) -> Term:
    """factor e^(-z^2 / 2) 2^LIFT."""
    square = z * z
    return lifted_exp_by_table(build, square, beyond=build.fnma(z, z, square), scale=-0.5, factor=factor)


def gelu_erf(build: Builder, x: Term) -> Term:
    """x / 2 (1 + erf(x / sqrt 2)): for z = |x| and the tail t(z), -z t(z) below 0, and z - z t(z) above."""
    z = build.op("min", FURTHEST, abs(x))
    return build.fnma(bell(build, z, smooth_part(build, z) * z), SMOOTH * LOWERED, build.op("max", 0.0, x))


def short_gelu_erf(build: Builder, x: Term) -> Term:
    return short_gelu(build, x, SHORT_ERF, FURTHEST_ERF)


def short_gelu_tanh(build: Builder, x: Term) -> Term:
    return short_gelu(build, x, SHORT_TANH, FURTHEST_TANH)


def short_gelu(build: Builder, x: Term, coefficients: tuple[float, ...], furthest: float) -> Term:
    """As `gelu_erf`, with the tail as a polynomial."""
    z = build.op("min", furthest, abs(x))
    tail = build.fnma(build.horner(z * z, coefficients), z, 0.5)
    return build.fnma(z, tail, build.op("max", 0.0, x))


def erf(build: Builder, x: Term) -> Term:
    """The polynomial near 0, else 1 less twice the tail of sqrt(2) |x|, with the sign of x."""
    z = build.op("min", FURTHEST, abs(x) * SQRT_2)
    size = build.fnma(bell(build, z, smooth_part(build, z)), 2.0 * SMOOTH * LOWERED, 1.0)
    signed = build.op("or", size, build.op("and", x, build.bits(SIGN)))
    near = build.fma(x, build.horner(x * x, ERF), x)
    return build.where(abs(x) < SMALL_ERF, near, signed)
