"""The element-wise algorithms by oneDNN's names, with the meaning of alpha and beta, forward."""

from collections.abc import Callable

from asmdnn.generators.functions.eltwise import exponential, gauss, logarithm, simple, trigonometric
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.isa.formula import bits_of, float_of
from asmdnn.records import dataclass

Forward = Callable[[Builder, Term, float, float], Term]


@dataclass(frozen=True, slots=True)
class EltwiseFunction:
    """forward(build, x, alpha, beta); which of alpha and beta matter."""

    forward: Forward
    formula: str
    parameters: str = ""  # "alpha" or "alpha beta"


ALGORITHMS: dict[str, EltwiseFunction] = {
    "relu": EltwiseFunction(lambda b, x, alpha, _: simple.relu(b, x, alpha), "x > 0: x, else alpha x", "alpha"),
    "tanh": EltwiseFunction(lambda b, x, *_: exponential.tanh(b, x), "tanh x"),
    "elu": EltwiseFunction(
        lambda b, x, alpha, _: exponential.elu(b, x, alpha), "x > 0: x, else alpha (e^x - 1)", "alpha"
    ),
    "square": EltwiseFunction(lambda b, x, *_: simple.square(b, x), "x^2"),
    "abs": EltwiseFunction(lambda b, x, *_: simple.absolute(b, x), "x without its sign"),
    "sqrt": EltwiseFunction(lambda b, x, *_: simple.sqrt(b, x), "square root of x"),
    "linear": EltwiseFunction(simple.linear, "alpha x + beta", "alpha beta"),
    "clip": EltwiseFunction(simple.clip, "x between alpha and beta", "alpha beta"),
    "clip_v2": EltwiseFunction(simple.clip, "x between alpha and beta", "alpha beta"),
    "soft_relu": EltwiseFunction(
        lambda b, x, alpha, _: logarithm.soft_relu(b, x, alpha), "log(1 + e^(alpha x)) / alpha", "alpha"
    ),
    "logistic": EltwiseFunction(lambda b, x, *_: exponential.logistic(b, x), "1 / (1 + e^-x)"),
    "exp": EltwiseFunction(lambda b, x, *_: exponential.exp(b, x), "e^x"),
    "gelu_tanh": EltwiseFunction(
        lambda b, x, *_: exponential.gelu_tanh(b, x), "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))"
    ),
    "gelu_erf": EltwiseFunction(lambda b, x, *_: gauss.gelu_erf(b, x), "x / 2 (1 + erf(x / sqrt 2))"),
    "swish": EltwiseFunction(lambda b, x, alpha, _: exponential.swish(b, x, alpha), "x / (1 + e^(-alpha x))", "alpha"),
    "log": EltwiseFunction(lambda b, x, *_: logarithm.log(b, x), "natural logarithm of x"),
    "pow": EltwiseFunction(
        lambda b, x, alpha, beta: logarithm.power(b, x, float_of(bits_of(beta)), alpha), "alpha x^beta", "alpha beta"
    ),
    "round": EltwiseFunction(lambda b, x, *_: simple.round_(b, x), "x to the nearest integer, ties to even"),
    "mish": EltwiseFunction(lambda b, x, *_: exponential.mish(b, x), "x tanh(log(1 + e^x))"),
    "hardswish": EltwiseFunction(simple.hardswish, "x times (alpha x + beta between 0 and 1)", "alpha beta"),
    "hardsigmoid": EltwiseFunction(simple.hardsigmoid, "alpha x + beta between 0 and 1", "alpha beta"),
    "erf": EltwiseFunction(lambda b, x, *_: gauss.erf(b, x), "2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x"),
    "reciprocal": EltwiseFunction(lambda b, x, *_: simple.reciprocal(b, x), "1 / x"),
    "rsqrt": EltwiseFunction(lambda b, x, *_: simple.rsqrt(b, x), "1 / square root of x"),
    "sign": EltwiseFunction(lambda b, x, *_: simple.sign(b, x), "1 where x > 0, -1 where x < 0, else x"),
    "sin": EltwiseFunction(lambda b, x, *_: trigonometric.sin(b, x), "sine of x"),
    "cos": EltwiseFunction(lambda b, x, *_: trigonometric.cos(b, x), "cosine of x"),
    "floor": EltwiseFunction(lambda b, x, *_: simple.floor(b, x), "the largest integer that is not above x"),
    "ceil": EltwiseFunction(lambda b, x, *_: simple.ceil(b, x), "the smallest integer that is not below x"),
    "trunc": EltwiseFunction(lambda b, x, *_: simple.trunc(b, x), "x without its fraction"),
    "not": EltwiseFunction(lambda b, x, *_: simple.not_(b, x), "1 where x is 0, else 0"),
}


def scaled(value: Term, factor: float) -> Term:
    return value if factor == 1.0 else value * factor
