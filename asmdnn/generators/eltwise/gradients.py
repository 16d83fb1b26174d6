"""diff_src = diff_dst f'(x), for every algorithm that has a derivative; oneDNN's formulas.

Some can start from f's result instead of its source (use_dst_for_bwd), as frameworks do that keep only one of the two.
"""

from collections.abc import Callable
from dataclasses import dataclass

from asmdnn.generators.eltwise import exponential as exponentials
from asmdnn.generators.eltwise.exponential import exp, logistic, negative_size
from asmdnn.generators.eltwise.gauss import FURTHEST, tail
from asmdnn.generators.eltwise.logarithm import power
from asmdnn.generators.expression import Builder, Value

Gradient = Callable[[Builder, Value, Value, float, float], Value]
INVERSE_SQRT_2_PI = 0.3989422804014327


@dataclass(frozen=True, slots=True)
class Gradients:
    """(build, diff_dst, src or dst, alpha, beta) -> diff_src."""

    of_src: Gradient | None
    of_dst: Gradient | None = None


def relu(build: Builder, d: Value, s: Value, alpha: float, _: float) -> Value:
    return build.where(s > 0.0, d, d * alpha)


def tanh(build: Builder, d: Value, s: Value, *_: float) -> Value:
    """1 - tanh^2 = 4 e / (1 + e)^2 with e = e^(-2 |s|), without cancellation."""
    e = exp(build, negative_size(build, s + s))
    return d * (4.0 * e / ((e + 1.0) * (e + 1.0)))


def tanh_dst(build: Builder, d: Value, y: Value, *_: float) -> Value:
    return d * ((1.0 - y) * (1.0 + y))


def elu(build: Builder, d: Value, s: Value, alpha: float, _: float) -> Value:
    return build.where(s > 0.0, d, d * (exp(build, s) * alpha))


def elu_dst(build: Builder, d: Value, y: Value, alpha: float, _: float) -> Value:
    return build.where(y > 0.0, d, d * (y + alpha))


def square(build: Builder, d: Value, s: Value, *_: float) -> Value:
    return d * (s + s)


def absolute(build: Builder, d: Value, s: Value, *_: float) -> Value:
    return build.where(s > 0.0, d, build.where(s < 0.0, -d, s * 0.0))


def sqrt(build: Builder, d: Value, s: Value, *_: float) -> Value:
    return sqrt_dst(build, d, build.op("sqrt", s))


def sqrt_dst(build: Builder, d: Value, y: Value, *_: float) -> Value:
    return d / (y + y)


def linear(build: Builder, d: Value, s: Value, alpha: float, _: float) -> Value:
    return d * alpha


def clip(build: Builder, d: Value, s: Value, alpha: float, beta: float) -> Value:
    """Of clip: alpha < s <= beta."""
    return build.where((s > alpha) & (s <= beta), d, 0.0)


def clip_v2(build: Builder, d: Value, s: Value, alpha: float, beta: float) -> Value:
    """Of clip_v2, from source or result: alpha < s < beta."""
    return build.where((s > alpha) & (s < beta), d, 0.0)


def soft_relu(build: Builder, d: Value, s: Value, alpha: float, _: float) -> Value:
    return d * logistic(build, s if alpha == 1.0 else s * alpha)


def logistic_src(build: Builder, d: Value, s: Value, *_: float) -> Value:
    """e / (1 + e)^2 with e = e^-|s|, without cancellation."""
    e = exp(build, negative_size(build, s))
    return d * (e / ((e + 1.0) * (e + 1.0)))


def logistic_dst(build: Builder, d: Value, y: Value, *_: float) -> Value:
    return d * (y * (1.0 - y))


def exponential(build: Builder, d: Value, s: Value, *_: float) -> Value:
    return d * exp(build, s)


def times_dst(build: Builder, d: Value, y: Value, *_: float) -> Value:
    return d * y


def swish_src(build: Builder, d: Value, s: Value, alpha: float, _: float) -> Value:
    """p + alpha s p (1 - p), p = logistic(alpha s), 1 - p = logistic(-alpha s)."""
    y = s if alpha == 1.0 else s * alpha
    z = exponentials.bounded(build, y, -120.0, 120.0)
    p, q = logistic(build, z), logistic(build, -z)
    return d * build.fma(z * p, q, p)


def gelu_tanh(build: Builder, d: Value, s: Value, *_: float) -> Value:
    """p + s y' p (1 - p), with p = logistic(y) and y = sqrt(8 / pi) (s + 0.044715 s^3)."""
    x = exponentials.bounded(build, s, -11.5, 11.5)
    scale = 1.5957691216057308
    square = x * x
    y = x * build.fma(square, scale * 0.044715, scale)
    slope = x * build.fma(square, 3.0 * scale * 0.044715, scale)
    p, q = logistic(build, y), logistic(build, -y)
    return d * build.fma(slope * p, q, p)


def gelu_erf(build: Builder, d: Value, s: Value, *_: float) -> Value:
    """The normal distribution function of s, plus s times its density."""
    x = exponentials.bounded(build, s, -FURTHEST, FURTHEST)
    lower = tail(build, abs(x))
    density = exp(build, x * x * -0.5) * INVERSE_SQRT_2_PI
    return d * build.fma(x, density, build.where(x > 0.0, 1.0 - lower, lower))


def log(build: Builder, d: Value, s: Value, *_: float) -> Value:
    return d / s


def pow_(build: Builder, d: Value, s: Value, alpha: float, beta: float) -> Value:
    """alpha beta s^(beta - 1)."""
    if beta == 0.0 or alpha == 0.0:
        return d * 0.0
    return d * (power(build, s, beta - 1.0) * (alpha * beta))


def mish(build: Builder, d: Value, s: Value, *_: float) -> Value:
    """t + s (1 - t^2) p, with e = e^s, p = e / (1 + e), t = m / (m + 2), m = e (e + 2)."""
    x = exponentials.bounded(build, s, -120.0, 20.0)
    e = exp(build, x)
    m = e * (e + 2.0)
    t, rest = m / (m + 2.0), 2.0 / (m + 2.0)
    slope = rest * (1.0 + t) * (e / (e + 1.0))
    return d * build.fma(x, slope, t)


def hardsigmoid(build: Builder, d: Value, s: Value, alpha: float, beta: float) -> Value:
    v = build.fma(s, alpha, beta)
    return build.where((v <= 0.0) | (v >= 1.0), 0.0, d * alpha)


def hardswish(build: Builder, d: Value, s: Value, alpha: float, beta: float) -> Value:
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
    "swish": Gradients(swish_src),
    "log": Gradients(log),
    "pow": Gradients(pow_),
    "round": Gradients(None),
    "mish": Gradients(mish),
    "hardswish": Gradients(hardswish),
    "hardsigmoid": Gradients(hardsigmoid),
}
