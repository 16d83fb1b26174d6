"""The algorithms without a series: piecewise linear ones, powers, rounding."""

from math import copysign

from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Rounding


def relu(build: Builder, x: Term, alpha: float) -> Term:
    """x > 0: x, else alpha x."""
    if alpha == 0.0:
        return build.op("max", 0.0, x)
    return build.where(x > 0.0, x, x * alpha)


def square(build: Builder, x: Term) -> Term:
    return x * x


def absolute(build: Builder, x: Term) -> Term:
    return abs(x)


def sqrt(build: Builder, x: Term) -> Term:
    return build.op("sqrt", x)


def reciprocal(build: Builder, x: Term) -> Term:
    return 1.0 / x


def rsqrt(build: Builder, x: Term) -> Term:
    """Rounded twice; the instruction that approximates it would need as long to be made exact."""
    return 1.0 / build.op("sqrt", x)


def sign(build: Builder, x: Term) -> Term:
    """Zeros keep their sign; NaN stays."""
    return build.where(x > 0.0, 1.0, build.where(x < 0.0, -1.0, x))


def linear(build: Builder, x: Term, alpha: float, beta: float) -> Term:
    """alpha x + beta, rounded once.  1 and -0 leave every x as it is; 1 and 0 make 0 of -0, as the sum does."""
    is_same = alpha == 1 and beta == 0 and copysign(1, beta) < 0
    return x if is_same else build.fma(x, alpha, beta)


def clip(build: Builder, x: Term, alpha: float, beta: float) -> Term:
    """alpha where x is below it, beta where x is above it; NaN stays."""
    return build.op("min", beta, build.op("max", alpha, x))


def round_(build: Builder, x: Term) -> Term:
    """To nearest, ties to even."""
    return build.op("round", x, immediate=Rounding.nearest_even)


def floor(build: Builder, x: Term) -> Term:
    return build.op("round", x, immediate=Rounding.down)


def ceil(build: Builder, x: Term) -> Term:
    return build.op("round", x, immediate=Rounding.up)


def trunc(build: Builder, x: Term) -> Term:
    """To the integer next to it on the side of zero."""
    return build.op("round", x, immediate=Rounding.towards_zero)


def not_(build: Builder, x: Term) -> Term:
    """1 where x is 0, else 0: numbers are true but for 0."""
    return build.where(x == 0.0, 1.0, 0.0)


def hardsigmoid(build: Builder, x: Term, alpha: float, beta: float) -> Term:
    """alpha x + beta, between 0 and 1."""
    return clip(build, linear(build, x, alpha, beta), 0.0, 1.0)


def hardswish(build: Builder, x: Term, alpha: float, beta: float) -> Term:
    """x hardsigmoid(x)."""
    return x * hardsigmoid(build, x, alpha, beta)
