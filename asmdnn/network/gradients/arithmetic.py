"""Rules of arithmetic with broadcasting, and of functions of one operand."""

from collections.abc import Callable
from math import pi, sqrt

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords, is_float
from asmdnn.network.graph import Node

Slope = Callable[[GradientWords, str, str, str], str]  # (words, x, y = f(x), dy): dx


def add(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    return [w.summed_to(d, w.shape(x)) for x in node.inputs]


def sub(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    a, b = node.inputs
    return w.summed_to(d, w.shape(a)), w("Neg", w.summed_to(d, w.shape(b)))


def mul(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    a, b = node.inputs
    return w.summed_to(w.mul(d, b), w.shape(a)), w.summed_to(w.mul(d, a), w.shape(b))


def div(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    (a, b), (y,) = node.inputs, node.outputs
    part = w.div(d, b)
    return w.summed_to(part, w.shape(a)), w.summed_to(w("Neg", w.mul(part, y)), w.shape(b))


def mean(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    share = w.mul(d, 1.0 / len(node.inputs))
    return [w.summed_to(share, w.shape(x)) for x in node.inputs]


def extreme(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """To the first operand that is the result."""
    d = given_of(given)
    found, left = list[str](), d
    dims = w.shape(d)
    for x in node.inputs:
        hit = w("Equal", w.expanded(x, *dims), node.outputs[0])
        found.append(w.summed_to(w.where(hit, left, 0.0), w.shape(x)))
        left = w.where(hit, 0.0, left)
    return found


def modulo(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of a - n b, n whole."""
    d, (a, b), y = given_of(given), node.inputs, node.outputs[0]
    times = w.div(w.sub(y, a), b)
    return w.summed_to(d, w.shape(a)), w.summed_to(w.mul(d, times), w.shape(b))


def power(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By the base and by the exponent, which is often one number."""
    d, x = given_of(given), node.inputs[0]
    number = w.data_of(node, 1)
    if number is None or number.size != 1:
        return powers(w, node, d)
    p = float(number.ravel()[0])
    if p == 2.0:
        return w.summed_to(w.mul(w.mul(d, x), 2.0), w.shape(x)), None
    if p == 0.0:
        return w.summed_to(w.mul(d, 0.0), w.shape(x)), None
    return w.summed_to(w.mul(w.mul(d, w("Pow", x, w.constant(p - 1.0))), p), w.shape(x)), None


def powers(w: GradientWords, node: Node, d: str) -> Gradients:
    """Of many exponents.  An exponent of 0 has no slope by x, and x = 0 none by an exponent from 0 on, as in torch."""
    x, y = node.inputs[0], node.outputs[0]
    p, dims = w.number(node.inputs[1]), w.shape(node.outputs[0])
    slope = w.mul(p, w("Pow", x, w.sub(p, 1.0)))
    is_flat = w.expanded(w("Equal", p, w.constant(0.0)), *dims)
    by_x = w.where(is_flat, 0.0, w.mul(d, slope))
    at_zero = w("And", w("Equal", x, w.constant(0.0)), w("GreaterOrEqual", p, w.constant(0.0)))
    by_p = w.where(w.expanded(at_zero, *dims), 0.0, w.mul(d, w.mul(y, w("Log", x))))
    return w.summed_to(by_x, w.shape(x)), w.summed_to(by_p, w.shape(p))


def where(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    condition, a, b = node.inputs
    parts = w.where(condition, d, 0.0), w.where(condition, 0.0, d)
    return None, w.summed_to(parts[0], w.shape(a)), w.summed_to(parts[1], w.shape(b))


def unary(slope: Slope) -> Rule:
    """Of a function of one operand."""

    def rule(w: GradientWords, node: Node, given: Gradients) -> Gradients:
        d = given_of(given)
        return (slope(w, node.inputs[0], node.outputs[0], d),)

    return rule


def cast(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Between floats, whose gradients are of f32 all of them; integers have none."""
    return given if is_float(w.value(node.inputs[0]).dtype) else (None,)


def square(w: GradientWords, x: str) -> str:
    return w.mul(x, x)


def dropout(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of a node that drops nothing."""
    return given[:1]


RULES: dict[str, Rule] = {
    "Add": add, "Sub": sub, "Mul": mul, "Div": div, "Sum": add, "Mean": mean, "Max": extreme, "Min": extreme,
    "Pow": power, "Where": where, "Mod": modulo, "Cast": cast, "Dropout": dropout,
    **dict.fromkeys(("Floor", "Ceil", "Round", "Sign"), unary(lambda w, x, y, d: w.mul(d, 0.0))),
    "Identity": unary(lambda w, x, y, d: d),
    "Neg": unary(lambda w, x, y, d: w("Neg", d)),
    "Abs": unary(lambda w, x, y, d: w.mul(d, w("Sign", x))),
    "Sqrt": unary(lambda w, x, y, d: w.div(w.mul(d, 0.5), y)),
    "Reciprocal": unary(lambda w, x, y, d: w("Neg", w.mul(d, square(w, y)))),
    "Exp": unary(lambda w, x, y, d: w.mul(d, y)),
    "Log": unary(lambda w, x, y, d: w.div(d, x)),
    "Erf": unary(lambda w, x, y, d: w.mul(w.mul(d, w("Exp", w("Neg", square(w, x)))), 2 / sqrt(pi))),
    "Sin": unary(lambda w, x, y, d: w.mul(d, w("Cos", x))),
    "Cos": unary(lambda w, x, y, d: w("Neg", w.mul(d, w("Sin", x)))),
    "Tan": unary(lambda w, x, y, d: w.mul(d, w.add(square(w, y), 1.0))),
    "Sinh": unary(lambda w, x, y, d: w.mul(d, w("Cosh", x))),
    "Cosh": unary(lambda w, x, y, d: w.mul(d, w("Sinh", x))),
    "Asin": unary(lambda w, x, y, d: w.div(d, w("Sqrt", w.sub(w.constant(1.0), square(w, x))))),
    "Acos": unary(lambda w, x, y, d: w("Neg", w.div(d, w("Sqrt", w.sub(w.constant(1.0), square(w, x)))))),
    "Atan": unary(lambda w, x, y, d: w.div(d, w.add(square(w, x), 1.0))),
    "Asinh": unary(lambda w, x, y, d: w.div(d, w("Sqrt", w.add(square(w, x), 1.0)))),
    "Acosh": unary(lambda w, x, y, d: w.div(d, w("Sqrt", w.sub(square(w, x), 1.0)))),
    "Atanh": unary(lambda w, x, y, d: w.div(d, w.sub(w.constant(1.0), square(w, x)))),
}  # fmt: skip
