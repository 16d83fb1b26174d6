"""Functions of one or two elements.

They take complex numbers too, where they are differentiable: the derivative is the imaginary part of f(x + ih) / h
(Squire and Trapp, SIAM Review 40, 1998), without cancellation.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asmdnn.definitions.rounding import UNIT, UNIT_ROUNDOFF, Array, as_f32

STEP = 1e-30
ULPS, FLOOR = 8, 2.0**-12
GELU = math.sqrt(2 / math.pi)
Function = Callable[[Any, float, float], Any]

_normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), otypes=[float])
_erf = np.vectorize(math.erf, otypes=[float])


def logistic(x: Any) -> Any:
    """1 / (1 + e^-x), without overflow."""
    power = np.exp(np.where(x.real < 0, x, -x))
    return np.where(x.real < 0, power, 1) / (1 + power)


def softplus(x: Any) -> Any:
    """log(1 + e^x), without overflow."""
    return np.where(x.real > 0, x, 0) + np.log1p(np.exp(np.where(x.real > 0, -x, x)))


def elu(x: Any, alpha: float, divisor: float = 1.0) -> Any:
    """x where it is positive, else alpha (e^(x / divisor) - 1), without overflow: CELU where both are one number."""
    return np.where(x.real > 0, x, alpha * np.expm1(np.where(x.real > 0, 0, x) / divisor))


def softsign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return x / (1 + np.abs(x))


def above(x: Any, threshold: float) -> Any:
    """x where it is larger, else 0."""
    return np.where(x > threshold, x, 0)


def prelu(x: Array, slope: Any) -> Array:
    """x where it is positive, else slope x."""
    return np.where(x > 0, x, slope * x)


def prelu_gradient(x: Array, slope: Any, d: Array) -> tuple[Array, Array]:
    """Of x, and what is summed for the slope, of d that of the result."""
    return np.where(x > 0, d, slope * d), np.where(x > 0, 0, x * d)


def _relu(x: Any, slope: float) -> Any:
    """Without a slope -infinity is 0, not NaN."""
    return np.where(x.real > 0, x, slope * x) if slope else np.where((x.real > 0) | np.isnan(x.real), x, 0)


def _clip(x: Any, least: float, most: float) -> Any:
    return np.where(x.real <= least, least, np.where(x.real > most, most, x))


def _between(x: Any, least: float, most: float) -> Any:
    """As _clip, and its slope is 0 where x is `most`, too."""
    return np.where(x.real >= most, most, _clip(x, least, most))


def _power(x: Any, exponent: float) -> Any:
    """x^exponent, which only whole exponents have where x < 0: of -infinity too, where numpy's versions differ."""
    return np.power(x if float(exponent).is_integer() else np.where(x.real < 0, np.nan, x), exponent)


def _gelu_erf(x: Any) -> Any:
    """With the normal distribution function's first-order expansion in the imaginary part."""
    density = np.exp(-x.real * x.real / 2) / math.sqrt(2 * math.pi)
    return x * (_normal(x.real) + 1j * x.imag * density) if np.iscomplexobj(x) else x * _normal(x)


FORWARD: dict[str, Function] = {
    "relu": lambda x, a, b: _relu(x, a),
    "tanh": lambda x, a, b: np.tanh(x),
    "elu": lambda x, a, b: elu(x, a),
    "square": lambda x, a, b: x * x,
    "abs": lambda x, a, b: np.where(x.real < 0, -x, x),
    "sqrt": lambda x, a, b: np.sqrt(x),
    "linear": lambda x, a, b: a * x + b,
    "clip": _clip,
    "clip_v2": _between,
    "soft_relu": lambda x, a, b: softplus(a * x) / a,
    "logistic": lambda x, a, b: logistic(x),
    "exp": lambda x, a, b: np.exp(x),
    "gelu_tanh": lambda x, a, b: x * logistic(2 * GELU * (x + 0.044715 * x * x * x)),
    "gelu_erf": lambda x, a, b: _gelu_erf(x),
    "swish": lambda x, a, b: x * logistic(a * x),
    "log": lambda x, a, b: np.log(x),
    "pow": lambda x, a, b: a * _power(x, b),
    "round": lambda x, a, b: np.rint(x),
    "mish": lambda x, a, b: x * np.tanh(softplus(x)),
    "hardswish": lambda x, a, b: x * _between(a * x + b, 0, 1),
    "hardsigmoid": lambda x, a, b: _between(a * x + b, 0, 1),
    "erf": lambda x, a, b: _erf(x.real) if x.size else x,
    "reciprocal": lambda x, a, b: 1 / x,
    "rsqrt": lambda x, a, b: 1 / np.sqrt(x),
    "sign": lambda x, a, b: np.sign(x.real),
    "sin": lambda x, a, b: np.sin(x),
    "cos": lambda x, a, b: np.cos(x),
    "floor": lambda x, a, b: np.floor(x.real),
    "ceil": lambda x, a, b: np.ceil(x.real),
    "trunc": lambda x, a, b: np.trunc(x.real),
    "not": lambda x, a, b: np.equal(x.real, 0),
}
SLOPE_OF_DST: dict[str, Function] = {
    "relu": lambda y, a, b: np.where(y > 0, 1, a),
    "tanh": lambda y, a, b: 1 - y * y,
    "elu": lambda y, a, b: np.where(y > 0, 1, y + a),
    "sqrt": lambda y, a, b: 0.5 / y,
    "logistic": lambda y, a, b: y * (1 - y),
    "exp": lambda y, a, b: y,
    "clip_v2": lambda y, a, b: np.where((y > a) & (y < b), 1, 0),
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less, "eq": np.equal, "ne": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "fmod": np.fmod, "mod": np.mod,
}  # fmt: skip


def forward(alg: str, x: Array, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """f(x), by oneDNN's name; of floats, in their type."""
    return np.asarray(FORWARD[alg](x, alpha, beta), x.dtype)


def slope(alg: str, x: Array, alpha: float, beta: float, of_dst: bool) -> Array:
    """f'(x) of float64, or f' where f's value is x."""
    if of_dst:
        return np.asarray(SLOPE_OF_DST[alg](x, alpha, beta), np.float64)
    return np.asarray(FORWARD[alg](x + 1j * STEP, alpha, beta).imag / STEP, np.float64)


def weighted_sum(terms: Sequence[Array], scales: Sequence[float]) -> Array:
    """Each with its factor, as f32 has it."""
    return np.asarray(sum(as_f32(scale) * x for x, scale in zip(terms, scales, strict=True)))


def weighted_sum_error(terms: Sequence[Array], scales: Sequence[float]) -> Array:
    """A rounding of every product and partial sum."""
    size = weighted_sum([np.abs(x) for x in terms], [abs(scale) for scale in scales])
    return np.asarray(UNIT_ROUNDOFF * 2 * len(terms) * size)


def rounding_error(values: Array, scale: Array | float = 0.0) -> Array:
    """Of a function's values: some units of the last place, of a floor near 0, or of `scale`.

    Bounds over the whole range of f32, function by function, are in docs/eltwise.md; tests hold kernels to them.
    """
    size = np.maximum(np.maximum(np.abs(values), np.abs(scale)), FLOOR)
    return np.asarray(ULPS * UNIT * size, np.float64)
