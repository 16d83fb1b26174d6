"""Element-wise functions for the answers of bench: in numpy, from their formulas, in float64.

They take complex numbers too, where they are differentiable: the derivative is the imaginary part of f(x + ih) / h
(Squire and Trapp, SIAM Review 40, 1998), without cancellation.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.bench.driver import Array

STEP = 1e-30
UNIT, ULPS, FLOOR = 2.0**-23, 8, 2.0**-12
GELU = math.sqrt(2 / math.pi)
Function = Callable[[Any, float, float], Any]

_normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), otypes=[float])

_erf = np.vectorize(math.erf, otypes=[float])


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _clip(x: Any, least: float, most: float) -> Any:
    return np.where(x.real <= least, least, np.where(x.real > most, most, x))


def _between(x: Any, least: float, most: float) -> Any:
    """As _clip, and its slope is 0 where x is `most`, too."""
    return np.where(x.real >= most, most, _clip(x, least, most))


def _power(x: Any, exponent: float) -> Any:
    """x^exponent, which only whole exponents have where x < 0: of -infinity too, where numpy's versions differ."""
    return np.power(x if float(exponent).is_integer() else np.where(x.real < 0, np.nan, x), exponent)


def _gelu_erf(x: Any, *_: float) -> Any:
    """With the normal distribution function's first-order expansion in the imaginary part."""
    density = np.exp(-x.real * x.real / 2) / math.sqrt(2 * math.pi)
    return x * (_normal(x.real) + 1j * x.imag * density)


FORWARD: dict[str, Function] = {
    "relu": lambda x, a, b: np.where(x.real > 0, x, a * x),
    "tanh": lambda x, a, b: np.tanh(x),
    "elu": lambda x, a, b: np.where(x.real > 0, x, a * np.expm1(x)),
    "square": lambda x, a, b: x * x,
    "abs": lambda x, a, b: np.where(x.real < 0, -x, x),
    "sqrt": lambda x, a, b: np.sqrt(x),
    "linear": lambda x, a, b: a * x + b,
    "clip": _clip,
    "clip_v2": _between,
    "soft_relu": lambda x, a, b: np.log1p(np.exp(a * x)) / a,
    "logistic": lambda x, a, b: _logistic(x),
    "exp": lambda x, a, b: np.exp(x),
    "gelu_tanh": lambda x, a, b: x * _logistic(2 * GELU * (x + 0.044715 * x * x * x)),
    "gelu_erf": _gelu_erf,
    "swish": lambda x, a, b: x * _logistic(a * x),
    "log": lambda x, a, b: np.log(x),
    "pow": lambda x, a, b: a * _power(x, b),
    "round": lambda x, a, b: np.rint(x),
    "mish": lambda x, a, b: x * np.tanh(np.log1p(np.exp(x))),
    "hardswish": lambda x, a, b: x * _between(a * x + b, 0, 1),
    "hardsigmoid": lambda x, a, b: _between(a * x + b, 0, 1),
    "erf": lambda x, a, b: _erf(x.real),
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


def forward(alg: str, x: Array, alpha: float, beta: float) -> Array:
    """f(x)."""
    return np.asarray(FORWARD[alg](x.astype(np.float64), *_as_f32(alpha, beta)).real, np.float64)


def slope(alg: str, x: Array, alpha: float, beta: float, of_dst: bool) -> Array:
    """f'(x), or f' where f's value is x."""
    if of_dst:
        return np.asarray(SLOPE_OF_DST[alg](x.astype(np.float64), *_as_f32(alpha, beta)), np.float64)
    return np.asarray(FORWARD[alg](x.astype(np.float64) + 1j * STEP, *_as_f32(alpha, beta)).imag / STEP, np.float64)


def rounding(values: Array, scale: Array | float = 0.0) -> Array:
    """By how much a result may be off: some units of the last place, of a floor near 0, or of `scale`.

    Bounds over the whole range of f32, function by function, are in docs/eltwise.md; tests hold kernels to them.
    """
    size = np.maximum(np.maximum(np.abs(values), np.abs(scale)), FLOOR)
    return np.asarray(ULPS * UNIT * size, np.float64)


def _as_f32(*numbers: float) -> tuple[float, ...]:
    return tuple(float(np.float32(number)) for number in numbers)
