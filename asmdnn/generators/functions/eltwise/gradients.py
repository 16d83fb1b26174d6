"""diff_src = diff_dst f'(x), for every algorithm that has a derivative; oneDNN's formulas.

Some can start from f's result instead of its source (use_dst_for_bwd), as frameworks do that keep only one of the two.
"""

from collections.abc import Callable

from asmdnn.generators.functions.eltwise.exponential import (
    GELU_CUBIC,
    GELU_LINEAR,
    GELU_LINEAR_LOW,
    LEAST,
    LEAST_GELU,
    LOWERED,
    SCALES,
    bounded,
    exp,
    exp_of_negative,
    lifted_exp,
    logistic,
    negative_size,
    twice_g,
)
from asmdnn.generators.functions.eltwise.gauss import FURTHEST, SMOOTH, smooth_part
from asmdnn.generators.functions.eltwise.logarithm import power
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.isa.formula import bits_of, float_of
from asmdnn.records import dataclass

Gradient = Callable[[Builder, Term, Term, float, float], Term]
INVERSE_SQRT_2_PI = 0.3989422804014327
MOST_FACTOR = 2.0**8  # times e^LEAST it is 0


@dataclass(frozen=True, slots=True)
class Gradients:
    """(build, diff_dst, src or dst, alpha, beta) -> diff_src."""

    of_src: Gradient | None
    of_dst: Gradient | None = None


def relu(build: Builder, d: Term, s: Term, alpha: float, _: float) -> Term:
    return build.where(s > 0.0, d, d * alpha)


def tanh(build: Builder, d: Term, s: Term, *_: float) -> Term:
    """1 - tanh^2 = 4 e / (1 + e)^2 with e = e^(-2 |s|), without cancellation."""
    e = exp_of_negative(build, build.op("max", LEAST, negative_size(build, s + s)))
    return d * (4.0 * e / ((e + 1.0) * (e + 1.0)))


def tanh_dst(build: Builder, d: Term, y: Term, *_: float) -> Term:
    return d * ((1.0 - y) * (1.0 + y))


def elu(build: Builder, d: Term, s: Term, alpha: float, _: float) -> Term:
    z = build.op("max", LEAST, s)
    if SCALES[0] < abs(alpha) < MOST_FACTOR:
        return build.where(s > 0.0, d, d * exp_of_negative(build, z, factor=alpha))
    return build.where(s > 0.0, d, d * (exp_of_negative(build, z) * alpha))


def elu_dst(build: Builder, d: Term, y: Term, alpha: float, _: float) -> Term:
    return build.where(y > 0.0, d, d * (y + alpha))


def square(build: Builder, d: Term, s: Term, *_: float) -> Term:
    return d * (s + s)


def absolute(build: Builder, d: Term, s: Term, *_: float) -> Term:
    return build.where(s > 0.0, d, build.where(s < 0.0, -d, s * 0.0))


def sqrt(build: Builder, d: Term, s: Term, *_: float) -> Term:
    return sqrt_dst(build, d, build.op("sqrt", s))


def sqrt_dst(build: Builder, d: Term, y: Term, *_: float) -> Term:
    return (d * 0.5) / y


def linear(build: Builder, d: Term, s: Term, alpha: float, _: float) -> Term:
    return d * alpha


def clip(build: Builder, d: Term, s: Term, alpha: float, beta: float) -> Term:
    """Of clip: alpha < s <= beta."""
    return build.where((s > alpha) & (s <= beta), d, 0.0)


def clip_v2(build: Builder, d: Term, s: Term, alpha: float, beta: float) -> Term:
    """Of clip_v2, from source or result: alpha < s < beta."""
    return build.where((s > alpha) & (s < beta), d, 0.0)


def soft_relu(build: Builder, d: Term, s: Term, alpha: float, _: float) -> Term:
    return d * logistic(build, s, alpha)


def logistic_src(build: Builder, d: Term, s: Term, *_: float) -> Term:
    """e / (1 + e)^2 with e = e^-|s|, without cancellation."""
    e = exp_of_negative(build, build.op("max", LEAST, negative_size(build, s)))
    return d * (e / ((e + 1.0) * (e + 1.0)))


def logistic_dst(build: Builder, d: Term, y: Term, *_: float) -> Term:
    return d * (y * (1.0 - y))


def exponential(build: Builder, d: Term, s: Term, *_: float) -> Term:
    return d * exp(build, s)


def times_dst(build: Builder, d: Term, y: Term, *_: float) -> Term:
    return d * y


def swish(build: Builder, d: Term, s: Term, alpha: float, _: float) -> Term:
    """Of y = alpha s alone: logistic(y) + y logistic(y) logistic(-y)."""
    scale = abs(alpha)
    if not SCALES[0] < scale < SCALES[1]:
        return swish(build, d, s * alpha, 1.0, 0.0) if alpha else d * build.fma(s, alpha, 0.5)
    x = s if alpha > 0 else -s
    z = build.op("max", LEAST / scale, negative_size(build, x))
    return d * of_logistic(build, x, z * scale, lifted_exp(build, z, scale=scale))


def of_logistic(build: Builder, x: Term, h: Term, lifted: Term) -> Term:
    """The derivative of x logistic(y(x)) for an odd y: logistic(y) + x y' logistic(y) logistic(-y).

    h is x y' at -|x|, which is negative, and `lifted` is e^y 2^LIFT there.
    """
    e = lifted * LOWERED
    inverse = 1.0 / (e + 1.0)
    upper = inverse * build.fnma(h, e * inverse, 1.0)
    return build.where(x > 0.0, upper, lifted * (inverse * build.fma(h, inverse, 1.0)) * LOWERED)


def gelu_tanh(build: Builder, d: Term, s: Term, *_: float) -> Term:
    """y = sqrt(8 / pi) (s + 0.044715 s^3), in two parts as forward."""
    z = build.op("max", LEAST_GELU, negative_size(build, s))
    y, low = twice_g(build, z)
    h = z * build.fma(z * z, 3.0 * GELU_CUBIC, GELU_LINEAR + GELU_LINEAR_LOW)
    return d * of_logistic(build, s, h, lifted_exp(build, y, low=low))


def gelu_erf(build: Builder, d: Term, s: Term, *_: float) -> Term:
    """The normal distribution function of s, plus s times its density: e^(-z^2 / 2) (g(z) - z / sqrt(2 pi)) at -z."""
    z = build.op("min", FURTHEST, abs(s))
    square, scale = z * z, SMOOTH * LOWERED
    lower = lifted_exp(build, square, low=build.fma(z, z, -square), scale=-0.5)  # a table's error is too much here
    lower *= build.fnma(z, INVERSE_SQRT_2_PI / SMOOTH, smooth_part(build, z))
    return d * build.where(s > 0.0, build.fnma(lower, scale, 1.0), lower * scale)


def log(build: Builder, d: Term, s: Term, *_: float) -> Term:
    return d / s


def pow_(build: Builder, d: Term, s: Term, alpha: float, beta: float) -> Term:
    """alpha beta s^(beta - 1)."""
    alpha, beta = (float_of(bits_of(number)) for number in (alpha, beta))
    if beta == 0.0:
        return d * 0.0
    return d * power(build, s, beta - 1.0, alpha * beta)


def mish(build: Builder, d: Term, s: Term, *_: float) -> Term:
    """e ((e + 2) m + 4 s (1 + e)) / m^2, with e = e^s and m = e^2 + 2 e + 2; 1 for large s."""
    x = bounded(build, s, LEAST, 20.0)
    lifted = lifted_exp(build, x)
    e = lifted * LOWERED
    above = e + 2.0
    m = build.fma(e, above, 2.0)
    numerator = build.fma(above, m, 4.0 * x * (e + 1.0))
    return d * (lifted * (numerator / (m * m)) * LOWERED)


def hardsigmoid(build: Builder, d: Term, s: Term, alpha: float, beta: float) -> Term:
    v = build.fma(s, alpha, beta)
    return build.where((v <= 0.0) | (v >= 1.0), 0.0, d * alpha)


def hardswish(build: Builder, d: Term, s: Term, alpha: float, beta: float) -> Term:
    v = build.fma(s, alpha, beta)
    inside = build.fma(s, 2.0 * alpha, beta)
    return d * build.where(v <= 0.0, 0.0, build.where(v >= 1.0, 1.0, inside))


GRADIENTS: dict[str, Gradients] = {
    "relu": Gradients(relu, relu),
    "tanh": Gradients(tanh, tanh_dst),
    "elu": Gradients(elu, elu_dst),
    "square": Gradients(square),
    "abs": Gradients(absolute),
    "sqrt": Gradients(sqrt, sqrt_dst),
    "linear": Gradients(linear),
    "clip": Gradients(clip),
    "clip_v2": Gradients(clip_v2, clip_v2),
    "soft_relu": Gradients(soft_relu),
    "logistic": Gradients(logistic_src, logistic_dst),
    "exp": Gradients(exponential, times_dst),
    "gelu_tanh": Gradients(gelu_tanh),
    "gelu_erf": Gradients(gelu_erf),
    "swish": Gradients(swish),
    "log": Gradients(log),
    "pow": Gradients(pow_),
    "round": Gradients(None),
    "mish": Gradients(mish),
    "hardswish": Gradients(hardswish),
    "hardsigmoid": Gradients(hardsigmoid),
}
