"""Element-wise operators as expressions of traced values: what a kernel computes on its result before it stores it.

Values are f32 lanes (generators/functions/expression.py) or Python numbers.  The accuracy is that of the element-wise
algorithms (docs/eltwise.md).  Div by a number multiplies by its reciprocal where that is exact to half a unit in the
last place of f32, so within one unit of the quotient.
"""

from collections.abc import Callable
from functools import reduce
from math import isfinite
from typing import Any

from asmdnn.generators.functions.eltwise import arcs, gauss
from asmdnn.generators.functions.eltwise.algorithms import ALGORITHMS
from asmdnn.generators.functions.expression import Condition, Term
from asmdnn.network.graph import Node
from asmdnn.network.operators.activations import CLIP_BY_INPUTS
from asmdnn.network.operators.mapped import MAP
from asmdnn.primitives.attributes import functions as f

Expression = Callable[..., Any]  # (node, *values), None for an input that is left out


def algorithm(name: str, x: Any, alpha: float = 0.0, beta: float = 0.0) -> Any:
    """One of the library's element-wise algorithms."""
    return ALGORITHMS[name].forward(x.builder, x, alpha, beta)


def quotient(node: Node, a: Any, b: Any) -> Any:
    return a * (1.0 / b) if isinstance(b, float) and b else a / b


def power(node: Node, x: Any, exponent: Any) -> Any:
    if not isinstance(exponent, float):
        return f.power(x, exponent)
    if isinstance(x, Term) and not isfinite(exponent):
        return f.power(x, x.builder.value(exponent))  # as of a tensor: the algorithm of a number takes finite ones
    if exponent in (2.0, 3.0):
        return x * x if exponent == 2.0 else x * x * x
    return f.sqrt(x) if exponent == 0.5 else f.power(x, exponent)


def clip(node: Node, x: Any, least: Any = None, most: Any = None) -> Any:
    if node.opset < CLIP_BY_INPUTS:
        least, most = node.get("min"), node.get("max")
    x = x if least is None else f.maximum(x, least)
    return x if most is None else f.minimum(x, most)


SHORT_GELUS = {"none": gauss.short_gelu_erf, "tanh": gauss.short_gelu_tanh}
SHORT = "short"  # an attribute of operators whose result is rounded to bf16


def gelu(node: Node, x: Any) -> Any:
    if node.get(SHORT, 0):
        return SHORT_GELUS[node.get("approximate", "none")](x.builder, x)
    return algorithm("gelu_tanh" if node.get("approximate", "none") == "tanh" else "gelu_erf", x)


def leaky(node: Node, x: Any) -> Any:
    return f.where(x > 0.0, x, node.get("alpha", 0.01) * x)


def selu(node: Node, x: Any) -> Any:
    alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
    return gamma * algorithm("elu", x, alpha)


def truth(*values: Any) -> tuple[Condition, ...]:
    """Operands of logic as conditions: comparisons, tensors of 0 and 1, numbers."""
    build = f.builder_of(*values)
    assert build is not None, "a group has a value to start from"
    return tuple(x if isinstance(x, Condition) else build.value(x) != 0.0 for x in values)


def both(node: Node, a: Any, b: Any) -> Condition:
    a, b = truth(a, b)
    return a & b  # type: ignore[no-any-return]


def either(node: Node, a: Any, b: Any) -> Condition:
    a, b = truth(a, b)
    return a | b  # type: ignore[no-any-return]


def one_of_both(node: Node, a: Any, b: Any) -> Condition:
    a, b = truth(a, b)
    return (a & ~b) | (~a & b)  # type: ignore[no-any-return]


def equal(node: Node, a: Any, b: Any) -> Condition:
    if isinstance(a, Condition) or isinstance(b, Condition):
        return ~one_of_both(node, a, b)
    return a == b  # type: ignore[no-any-return]


def remainder(node: Node, a: Any, b: Any) -> Any:
    return (f.fmod if node.get("fmod", 0) else f.mod)(a, b)


def infinite(node: Node, x: Any) -> Condition:
    """Either infinity, or the one that is asked for."""
    signs = [sign for sign, name in ((1, "positive"), (-1, "negative")) if node.get(f"detect_{name}", 1)]
    found = [x == sign * float("inf") for sign in signs]
    either: Condition = reduce(lambda a, b: a | b, found) if found else x < -float("inf")
    return either


def shrunk(node: Node, x: Any) -> Any:
    bias, bound = node.get("bias", 0.0), node.get("lambd", 0.5)
    return f.where(x < -bound, x + bias, f.where(x > bound, x - bias, 0.0))


def celu(node: Node, x: Any) -> Any:
    alpha = node.get("alpha", 1.0)
    return f.where(x > 0.0, x, alpha * algorithm("elu", x / alpha, 1.0))


def arc(name: str) -> Expression:
    """A function of arcs.py."""
    return lambda node, x: getattr(arcs, name)(x.builder, x)


LOGIC: dict[str, Expression] = {
    "Equal": equal,
    "Less": lambda node, a, b: a < b,
    "LessOrEqual": lambda node, a, b: a <= b,
    "Greater": lambda node, a, b: a > b,
    "GreaterOrEqual": lambda node, a, b: a >= b,
    "And": both,
    "Or": either,
    "Xor": one_of_both,
    "Not": lambda node, x: ~truth(x)[0],
    "IsNaN": lambda node, x: x != x,
    "IsInf": infinite,
    "Where": lambda node, condition, a, b: f.where(truth(condition)[0], a, b),
}
# Their operands and results may be truths: conditions inside of a kernel, tensors of 1 and 0 from outside.

EXPRESSIONS: dict[str, Expression] = {
    **LOGIC,
    "Add": lambda node, a, b: a + b,
    "Sub": lambda node, a, b: a - b,
    "Mul": lambda node, a, b: a * b,
    "Div": quotient,
    "Pow": power,
    "Sum": lambda node, *x: reduce(lambda a, b: a + b, x),
    "Mean": lambda node, *x: reduce(lambda a, b: a + b, x) * (1.0 / len(x)),
    "Max": lambda node, *x: reduce(f.maximum, x),
    "Min": lambda node, *x: reduce(f.minimum, x),
    "Neg": lambda node, x: -x,
    "Abs": lambda node, x: abs(x),
    "Sqrt": lambda node, x: f.sqrt(x),
    "Reciprocal": lambda node, x: 1.0 / x,
    "Exp": lambda node, x: f.exp(x),
    "Log": lambda node, x: f.log(x),
    "Floor": lambda node, x: f.floor(x),
    "Ceil": lambda node, x: f.ceil(x),
    "Round": lambda node, x: f.rint(x),
    "Sign": lambda node, x: f.sign(x),
    "Sin": lambda node, x: f.sin(x),
    "Cos": lambda node, x: f.cos(x),
    **{name.title(): arc(name) for name in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh")},
    "Shrink": shrunk,
    "Celu": celu,
    "Erf": lambda node, x: algorithm("erf", x),
    "Mod": remainder,
    "Relu": lambda node, x: f.maximum(x, 0.0),
    "LeakyRelu": leaky,
    "ThresholdedRelu": lambda node, x: f.where(x > node.get("alpha", 1.0), x, 0.0),
    "PRelu": lambda node, x, slope: f.where(x > 0.0, x, slope * x),
    "Elu": lambda node, x: algorithm("elu", x, node.get("alpha", 1.0)),
    "Selu": selu,
    "Gelu": gelu,
    "Sigmoid": lambda node, x: f.logistic(x),
    "Tanh": lambda node, x: f.tanh(x),
    "HardSigmoid": lambda node, x: algorithm("hardsigmoid", x, node.get("alpha", 0.2), node.get("beta", 0.5)),
    "HardSwish": lambda node, x: algorithm("hardswish", x, 1 / 6, 0.5),
    "Swish": lambda node, x: algorithm("swish", x, node.get("alpha", 1.0)),
    "Mish": lambda node, x: algorithm("mish", x),
    "Softplus": lambda node, x: algorithm("soft_relu", x, 1.0),
    "Softsign": lambda node, x: x / (1.0 + abs(x)),
    "Clip": clip,
    MAP: lambda node, *x: node.get("function")(*x),
}
