"""gelu_erf: x times the normal distribution function.

The distribution function of -z is e^(-z^2 / 2) g(z), g(z) = erfcx(z / sqrt 2) / 2 being smooth: a quotient of
polynomials with positive coefficients (minimax for the relative error, 2^-26.7).  z^2 is kept in two numbers, since an
error of the exponent is one of the result; so the lower tail has as many correct bits as the rest.
"""

from asmdnn.generators.functions.eltwise.exponential import LOWERED, lifted_exp
from asmdnn.generators.functions.expression import Builder, Value

NUMERATOR = (0.9376141428947449, 0.8219072222709656, 0.34361085295677185, 0.07619764655828476, 0.007719178218394518)
DENOMINATOR = (
    1.8752282857894897, 3.140030860900879, 2.2549808025360107, 0.8803728818893433, 0.19101126492023468,
    0.019348885864019394,
)  # fmt: skip
FURTHEST = 14.5  # the tail is 0 from here on


def smooth_part(build: Builder, z: Value) -> Value:
    """g(z), 0 <= z <= FURTHEST."""
    return build.horner(z, NUMERATOR) / build.horner(z, DENOMINATOR)


def bell(build: Builder, z: Value, factor: Value) -> Value:
    """factor e^(-z^2 / 2) 2^LIFT."""
    square = z * z
    low = build.fma(z, z, -square)
    return lifted_exp(build, square, low=low, scale=-0.5) * factor


def gelu_erf(build: Builder, x: Value) -> Value:
    """x / 2 (1 + erf(x / sqrt 2)): for z = |x| and the tail t(z), -z t(z) below 0, and z - z t(z) above."""
    z = build.op("min", FURTHEST, abs(x))
    return build.fnma(bell(build, z, smooth_part(build, z) * z), LOWERED, build.op("max", 0.0, x))
