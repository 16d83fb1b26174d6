"""Rules of arithmetic with broadcasting, and of functions of one operand."""

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
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


def power(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By the base; the exponent is one number."""
    d = given_of(given)
    exponent = w.data_of(node, 1)
    if exponent is None or exponent.size != 1:
        return None, None
    p = float(exponent.ravel()[0])
    x = node.inputs[0]
    if p == 2.0:
        return w.mul(w.mul(d, x), 2.0), None
    return w.mul(w.mul(d, w("Pow", x, w.constant(p - 1.0))), p), None


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
    """Between floats of one type, which is none; integers have no gradients."""
    return given if w.value(node.inputs[0]).dtype == np.float32 else (None,)


def square(w: GradientWords, x: str) -> str:
    return w.mul(x, x)


def dropout(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of a node that drops nothing."""
    return given[:1]


RULES: dict[str, Rule] = {
    "Add": add, "Sub": sub, "Mul": mul, "Div": div, "Sum": add, "Mean": mean, "Max": extreme, "Min": extreme,
    "Pow": power, "Where": where, "Cast": cast, "Dropout": dropout,
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
