"""The derivatives of the element-wise functions in float64, written from their formulas.

`terms` is a scale for the error of a derivative that is a sum of two terms: the larger one's size.  Where the sum
crosses zero, no relative error of it can be promised.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from tests.support.arena import Doubles

GELU = np.sqrt(2 / np.pi)
Slope = Callable[[Doubles, float, float], Doubles]
Terms = Callable[[Doubles, float], tuple[Doubles, Doubles]]


def between(x: Doubles, slope: Doubles | float, above: float, alpha: float, beta: float) -> Doubles:
    """0 where v = alpha x + beta, which f32 rounds, is not above 0; `above` where it is not below 1; else slope."""
    v = (alpha * x + beta).astype(np.float32)
    return np.where(v <= 0, 0.0, np.where(v >= 1, above, slope))


def in_tails(x: Doubles, term: Doubles) -> Doubles:
    """The limit, 0, at both infinities."""
    return np.where(np.isinf(x), 0.0, term)


def gelu_tanh(s: Doubles, _: float) -> tuple[Doubles, Doubles]:
    y, slope = 2 * GELU * (s + 0.044715 * s**3), 2 * GELU * (1 + 3 * 0.044715 * s**2)
    return special.expit(y), in_tails(s, s * slope * special.expit(y) * special.expit(-y))


def gelu_erf(s: Doubles, _: float) -> tuple[Doubles, Doubles]:
    return special.ndtr(s), in_tails(s, s * np.exp(-s * s / 2) / np.sqrt(2 * np.pi))


def swish(s: Doubles, alpha: float) -> tuple[Doubles, Doubles]:
    y = alpha * s
    return special.expit(y), in_tails(s, y * special.expit(y) * special.expit(-y))


def mish(s: Doubles, _: float) -> tuple[Doubles, Doubles]:
    soft = np.logaddexp(0, s)
    return np.tanh(soft), in_tails(s, s * special.expit(s) / np.cosh(np.minimum(soft, 300)) ** 2)


TERMS: dict[str, Terms] = {"gelu_tanh": gelu_tanh, "gelu_erf": gelu_erf, "swish": swish, "mish": mish}
SLOPES: dict[str, Slope] = {
    "relu": lambda x, a, b: np.where(x > 0, 1.0, a),
    "tanh": lambda x, a, b: 4 * special.expit(2 * x) * special.expit(-2 * x),
    "elu": lambda x, a, b: np.where(x > 0, 1.0, a * np.exp(np.minimum(x, 0))),
    "square": lambda x, a, b: 2 * x,
    "abs": lambda x, a, b: np.sign(x),
    "sqrt": lambda x, a, b: 0.5 / np.sqrt(x),
    "linear": lambda x, a, b: np.full_like(x, a),
    "clip": lambda x, a, b: np.where((x > a) & (x <= b), 1.0, 0.0),
    "clip_v2": lambda x, a, b: np.where((x > a) & (x < b), 1.0, 0.0),
    "soft_relu": lambda x, a, b: special.expit(a * x),
    "logistic": lambda x, a, b: special.expit(x) * special.expit(-x),
    "exp": lambda x, a, b: np.exp(x),
    "log": lambda x, a, b: 1 / x,
    "pow": lambda x, a, b: a * b * np.power(x, b - 1) if b else np.zeros_like(x),
    "hardsigmoid": lambda x, a, b: between(x, a, 0.0, a, b),
    "hardswish": lambda x, a, b: between(x, 2 * a * x + b, 1.0, a, b),
}
SLOPES_FROM_DST: dict[str, Slope] = {  # oneDNN's formulas
    "relu": lambda y, a, b: np.where(y > 0, 1.0, a),
    "elu": lambda y, a, b: np.where(y > 0, 1.0, y + a),
    "tanh": lambda y, a, b: (1 - y) * (1 + y),
    "sqrt": lambda y, a, b: 0.5 / y,
    "logistic": lambda y, a, b: y * (1 - y),
    "exp": lambda y, a, b: y,
    "clip_v2": lambda y, a, b: np.where((y > a) & (y < b), 1.0, 0.0),
}


def slope(alg: str, x: Doubles, alpha: float = 0.0, beta: float = 0.0, from_dst: bool = False) -> Doubles:
    """f'(x), or of f's result x; alpha and beta as f32 has them.  Where it jumps, oneDNN's choice of a side."""
    alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    with np.errstate(all="ignore"):
        if alg in TERMS:
            first, second = TERMS[alg](x, alpha)
            return first + second
        return (SLOPES_FROM_DST if from_dst else SLOPES)[alg](x, alpha, beta)


def terms(alg: str, x: Doubles, alpha: float = 0.0) -> Doubles | float:
    """The larger term of the sum, 0 if the derivative is none."""
    if alg not in TERMS:
        return 0.0
    with np.errstate(all="ignore"):
        return np.maximum(*map(np.abs, TERMS[alg](x, float(np.float32(alpha)))))
