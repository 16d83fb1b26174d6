"""log, soft_relu and pow.

x = 2^e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), by integer arithmetic on the bits of x; then
log x = e ln2 + f - f^2 / 2 + f^3 p(f), p being a minimax polynomial for the relative error of
log(1 + f), 2^-27.3.  The order of the additions is Cephes' (logf.c, Moshier 1989).
"""

from asmdnn.generators.functions.eltwise.exponential import (
    FURTHEST_SCALED,
    LEAST,
    LN2_HIGH,
    LN2_LOW,
    LOWERED,
    SCALES,
    SIGN,
    bounded,
    exp_between,
    lifted_exp,
    negative_size,
)
from asmdnn.generators.functions.expression import Builder, Condition, Operable, Term
from asmdnn.isa.formula import bits_of, float_of
from asmdnn.records import dataclass

P = tuple(
    map(
        float.fromhex,
        (
            "0x1.555554p-2", "-0x1.000226p-2", "0x1.99a01ep-3", "-0x1.54728cp-3", "0x1.22d8f8p-3", "-0x1.0d81f2p-3",
            "0x1.05602ep-3", "-0x1.38cf20p-4",
        ),
    )
)  # fmt: skip
SQRT_HALF_BITS = 0x3F3504F3
SQRT_2_MINUS_1 = 0.41421357
LEAST_NORMAL = 2.0**-126
INFINITY, NAN_BITS = float("inf"), 0x7FC00000


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """x = 2^exponent (1 + f)."""

    exponent: Term
    f: Term


def split(build: Builder, x: Term) -> Split:
    """Of a positive finite x, denormal numbers too."""
    denormal = x < LEAST_NORMAL
    normal = build.where(denormal, x * 2.0**23, x)
    return split_normal(build, normal, denormal)


def split_normal(build: Builder, x: Term, scaled: Condition | None = None) -> Split:
    """Of a positive normal x, which is 2^23 times the number where it is `scaled`."""
    centred = build.op("isub", x, build.bits(SQRT_HALF_BITS))
    exponent = build.op("to_float", build.op("sar", centred, immediate=23))
    exponent = exponent if scaled is None else exponent - build.where(scaled, 23.0, 0.0)
    mantissa = build.op("and", centred, build.bits(0x7FFFFF))
    return Split(exponent, build.op("iadd", mantissa, build.bits(SQRT_HALF_BITS)) - 1.0)


def log_of_1_plus(build: Builder, f: Term, exponent: Term) -> Term:
    """exponent * ln2 + log(1 + f)."""
    square = f * f
    tail = build.fma(f * square, build.horner(f, P), exponent * LN2_LOW)
    tail = build.fnma(square, 0.5, tail)
    return build.fma(exponent, LN2_HIGH, tail + f)


def log(build: Builder, x: Term) -> Term:
    """-infinity at +-0, NaN below."""
    parts = split(build, x)
    result = build.where(x < INFINITY, log_of_1_plus(build, parts.f, parts.exponent), x)
    edge = build.where(x == 0.0, -INFINITY, build.bits(NAN_BITS))
    return build.where(x > 0.0, result, edge)


def soft_relu(build: Builder, x: Term, alpha: float) -> Term:
    """log(1 + e^y) / alpha, y = alpha x: max(y, 0) / alpha, and log(1 + e^-|y|) / alpha, which underflows gradually."""
    scale = abs(alpha)
    if SCALES[0] < scale < SCALES[1]:
        z = build.op("max", LEAST / scale, negative_size(build, x))
        e = lifted_exp(build, z, scale=scale) * LOWERED
    else:
        e = lifted_exp(build, build.op("max", LEAST, negative_size(build, x * alpha))) * LOWERED
    upper = e > SQRT_2_MINUS_1  # then 1 + e = 2 (1 + (e - 1) / 2)
    f = build.where(upper, build.fma(e, 0.5, -0.5), e)
    log_part = log_of_1_plus(build, f, build.where(upper, 1.0, 0.0))
    linear_part = build.op("max" if alpha > 0 else "min", 0.0, x)
    return linear_part + log_part if alpha == 1.0 else build.fma(log_part, 1.0 / alpha, linear_part)


def power(build: Builder, x: Term, beta: float, factor: float = 1.0) -> Term:
    """factor x^beta, the power as C's pow has it: products, roots and quotients where that is exact, else
    e^(beta log x) in extra precision.  beta may need two f32 numbers.  A factor of 0 makes NaN of an infinite power."""
    scaled = x if factor == 1.0 else x * factor
    root = build.op("sqrt", x)
    simple: dict[float, Operable] = {
        0.0: factor, 1.0: scaled, 2.0: scaled * x, 0.5: root if factor == 1.0 else root * factor, -1.0: factor / x,
    }  # fmt: skip
    if beta in simple:
        return build.value(simple[beta])
    integral, odd = float(beta).is_integer(), float(beta) % 2 == 1
    size = abs(x)
    result = positive_power(build, size, beta, factor)
    limits = [at * factor for at in (0.0, INFINITY)]
    at_0, at_infinity = limits if beta > 0 else limits[::-1]
    result = build.where(size < INFINITY, result, build.where(size == INFINITY, at_infinity, x))
    result = build.where(size == 0.0, at_0, result)
    if odd:
        return build.op("xor", result, build.op("and", x, build.bits(SIGN)))
    if integral:
        return result
    negative = build.where(size == INFINITY, at_infinity, build.bits(NAN_BITS))
    return build.where(x < 0.0, negative, result)


def positive_power(build: Builder, x: Term, beta: float | Term, factor: float) -> Term:
    """For positive finite x.  log x and its product with beta are sums of two numbers (Dekker 1971)."""
    parts = split(build, x)
    f, square = parts.f, parts.f * parts.f
    half = square * 0.5
    half_error = build.fma(f * 0.5, f, -half)
    mantissa = f - half
    mantissa_error = (f - mantissa) - half
    whole = build.fma(parts.exponent, LN2_HIGH, mantissa)  # rounded once
    whole_error = build.fma(parts.exponent, LN2_HIGH, -whole) + mantissa
    tail = build.fma(f * square, build.horner(f, P), parts.exponent * LN2_LOW)
    tail = tail + (mantissa_error - half_error) + whole_error
    high = whole + tail
    low = (whole - high) + tail
    y = high * beta
    error = build.fma(low, beta, build.fma(high, beta, -y))
    beta_low = 0.0 if isinstance(beta, Term) else beta - float_of(bits_of(beta))
    if beta_low:
        error = build.fma(high, beta_low, error)
    error = build.op("max", build.op("min", error, 1.0), -1.0)  # where y overflows, it is NaN or infinite
    return exp_between(
        build, bounded(build, y, -FURTHEST_SCALED, FURTHEST_SCALED), low=error, factor=None if factor == 1.0 else factor
    )
