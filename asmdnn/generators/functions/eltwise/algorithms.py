"""The element-wise algorithms by oneDNN's names, with the meaning of alpha and beta, forward."""

from collections.abc import Callable
from dataclasses import dataclass

from asmdnn.generators.functions.eltwise import exponential, gauss, logarithm, simple, trigonometric
from asmdnn.generators.functions.expression import Builder, Value
from asmdnn.generators.functions.program import bits_of, float_of

Forward = Callable[[Builder, Value, float, float], Value]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """forward(build, x, alpha, beta); which of alpha and beta have a say."""

    forward: Forward
    formula: str
    parameters: str = ""  # "alpha" or "alpha beta"


ALGORITHMS: dict[str, Algorithm] = {
    "relu": Algorithm(lambda b, x, alpha, _: simple.relu(b, x, alpha), "x > 0: x, else alpha x", "alpha"),
    "tanh": Algorithm(lambda b, x, *_: exponential.tanh(b, x), "tanh x"),
    "elu": Algorithm(lambda b, x, alpha, _: exponential.elu(b, x, alpha), "x > 0: x, else alpha (e^x - 1)", "alpha"),
    "square": Algorithm(lambda b, x, *_: simple.square(b, x), "x^2"),
    "abs": Algorithm(lambda b, x, *_: simple.absolute(b, x), "x without its sign"),
    "sqrt": Algorithm(lambda b, x, *_: simple.sqrt(b, x), "square root of x"),
    "linear": Algorithm(simple.linear, "alpha x + beta", "alpha beta"),
    "clip": Algorithm(simple.clip, "x between alpha and beta", "alpha beta"),
    "clip_v2": Algorithm(simple.clip, "x between alpha and beta", "alpha beta"),
    "soft_relu": Algorithm(
        lambda b, x, alpha, _: logarithm.soft_relu(b, x, alpha), "log(1 + e^(alpha x)) / alpha", "alpha"
    ),
    "logistic": Algorithm(lambda b, x, *_: exponential.logistic(b, x), "1 / (1 + e^-x)"),
    "exp": Algorithm(lambda b, x, *_: exponential.exp(b, x), "e^x"),
    "gelu_tanh": Algorithm(
        lambda b, x, *_: exponential.gelu_tanh(b, x), "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"
    ),
    "gelu_erf": Algorithm(lambda b, x, *_: gauss.gelu_erf(b, x), "x / 2 (1 + erf(x / sqrt 2))"),
    "swish": Algorithm(lambda b, x, alpha, _: exponential.swish(b, x, alpha), "x / (1 + e^(-alpha x))", "alpha"),
    "log": Algorithm(lambda b, x, *_: logarithm.log(b, x), "natural logarithm of x"),
    "pow": Algorithm(
        lambda b, x, alpha, beta: logarithm.power(b, x, float_of(bits_of(beta)), alpha), "alpha x^beta", "alpha beta"
    ),
    "round": Algorithm(lambda b, x, *_: simple.round_(b, x), "x to the nearest integer, ties to even"),
    "mish": Algorithm(lambda b, x, *_: exponential.mish(b, x), "x tanh(log(1 + e^x))"),
    "hardswish": Algorithm(simple.hardswish, "x times (alpha x + beta between 0 and 1)", "alpha beta"),
    "hardsigmoid": Algorithm(simple.hardsigmoid, "alpha x + beta between 0 and 1", "alpha beta"),
    "erf": Algorithm(lambda b, x, *_: gauss.erf(b, x), "2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x"),
    "reciprocal": Algorithm(lambda b, x, *_: simple.reciprocal(b, x), "1 / x"),
    "rsqrt": Algorithm(lambda b, x, *_: simple.rsqrt(b, x), "1 / square root of x"),
    "sign": Algorithm(lambda b, x, *_: simple.sign(b, x), "1 where x > 0, -1 where x < 0, else x"),
    "sin": Algorithm(lambda b, x, *_: trigonometric.sin(b, x), "sine of x"),
    "cos": Algorithm(lambda b, x, *_: trigonometric.cos(b, x), "cosine of x"),
    "floor": Algorithm(lambda b, x, *_: simple.floor(b, x), "the largest integer that is not above x"),
    "ceil": Algorithm(lambda b, x, *_: simple.ceil(b, x), "the smallest integer that is not below x"),
    "trunc": Algorithm(lambda b, x, *_: simple.trunc(b, x), "x without its fraction"),
    "not": Algorithm(lambda b, x, *_: simple.not_(b, x), "1 where x is 0, else 0"),
}


def scaled(value: Value, factor: float) -> Value:
    return value if factor == 1.0 else value * factor
