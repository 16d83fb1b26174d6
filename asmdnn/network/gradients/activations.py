"""Rules of activation functions: what is multiplied with the gradient of the result.

At a corner, where there are two slopes, the rule takes that of the left side, as torch does.
"""

from math import pi, sqrt

from asmdnn.network.gradients.arithmetic import square, unary
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.activations import CLIP_BY_INPUTS


def sloped(node: str, default: float) -> Rule:
    """Where x is not above 0, `alpha` times as much; node: the attribute."""

    def rule(w: GradientWords, of: Node, given: Gradients) -> Gradients:
        d = given_of(given)
        return (w.where(w.greater(of.inputs[0], 0.0), d, w.mul(d, of.get(node, default))),)

    return rule


def exponential(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Elu and Selu: y + alpha below 0, times gamma; Celu: e^(x / alpha)."""
    d, x, y = given_of(given), node.inputs[0], node.outputs[0]
    if node.op == "Celu":
        below, above = w.mul(d, w("Exp", w.mul(x, 1.0 / node.get("alpha", 1.0)))), d
    elif node.op == "Elu":
        below, above = w.mul(d, w.add(y, node.get("alpha", 1.0))), d
    else:
        alpha, gamma = node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875)
        below, above = w.mul(d, w.add(y, alpha * gamma)), w.mul(d, gamma)
    return (w.where(w.greater(x, 0.0), above, below),)


def gelu(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Phi(x) + x phi(x); of the tanh form its own derivative."""
    d, x = given_of(given), node.inputs[0]
    if node.get("approximate", "none") == "tanh":
        c = sqrt(2 / pi)
        t = w("Tanh", w.mul(w.mul(x, w.add(w.mul(square(w, x), 0.044715), 1.0)), c))
        inner = w.mul(w.add(w.mul(square(w, x), 3 * 0.044715), 1.0), c)
        rest = w.mul(w.mul(x, inner), w.sub(w.constant(1.0), square(w, t)))
        return (w.mul(d, w.mul(w.add(w.add(t, 1.0), rest), 0.5)),)
    share = w.mul(w.add(w("Erf", w.mul(x, sqrt(0.5))), 1.0), 0.5)
    density = w.mul(w("Exp", w.mul(square(w, x), -0.5)), 1 / sqrt(2 * pi))
    return (w.mul(d, w.add(share, w.mul(x, density))),)


def sigmoid(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d, y = given_of(given), node.outputs[0]
    return (w.mul(d, w.mul(y, w.sub(w.constant(1.0), y))),)


def swish(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """s + alpha y (1 - s), with s = sigmoid(alpha x)."""
    d, x, alpha = given_of(given), node.inputs[0], node.get("alpha", 1.0)
    s = w("Sigmoid", w.mul(x, alpha))
    rest = w.mul(w.mul(node.outputs[0], w.sub(w.constant(1.0), s)), alpha)
    return (w.mul(d, w.add(s, rest)),)


def mish(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """t + x (1 - t^2) sigmoid(x), with t = tanh(softplus(x))."""
    d, x = given_of(given), node.inputs[0]
    t = w("Tanh", w("Softplus", x))
    rest = w.mul(w.mul(x, w("Sigmoid", x)), w.sub(w.constant(1.0), square(w, t)))
    return (w.mul(d, w.add(t, rest)),)


def hard_sigmoid(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d, y = given_of(given), node.outputs[0]
    inside = w("And", w.greater(y, 0.0), w("Less", y, w.constant(1.0)))
    return (w.where(inside, w.mul(d, node.get("alpha", 0.2)), 0.0),)


def hard_swish(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """0 up to -3, 1 from 3 on, (2 x + 3) / 6 between."""
    d, x = given_of(given), node.inputs[0]
    slope = w.where(w.greater(x, 3.0), 1.0, w.where(w.greater(x, -3.0), w.add(w.mul(x, 1 / 3), 0.5), 0.0))
    return (w.mul(d, slope),)


def clip(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Nothing where a bound is the result; at a bound all, as torch's clamp does.  Bounds are numbers.

    From 0 up it is relu6 and its kind, nothing at a bound, as torch has that and Relu: the result then says where, so
    that nobody keeps x, and one kernel computes x and clips it."""
    d, x, y = given_of(given), node.inputs[0], node.outputs[0]
    bounds = node.inputs[1:]
    if node.opset < CLIP_BY_INPUTS:
        bounds = tuple(w.constant(n) if n is not None else "" for n in (node.get("min"), node.get("max")))
    least, most = (w.data(bounds[i]) if i < len(bounds) and bounds[i] else None for i in range(2))
    if least is not None and least == 0 and (most is None or most > 0):
        d = w.where(w.greater(y, 0.0), d, 0.0)
        d = d if most is None else w.where(w("Less", y, bounds[1]), d, 0.0)
    else:
        for op, bound in zip(("Less", "Greater"), bounds, strict=False):
            if bound:
                d = w.where(w(op, x, bound), 0.0, d)
    return (d, *[None] * (len(node.inputs) - 1))


def threshold(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    return (w.where(w.greater(node.inputs[0], node.get("alpha", 1.0)), given_of(given), 0.0),)


def shrink(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    bound = node.get("lambd", 0.5)
    return (w.where(w.greater(w("Abs", node.inputs[0]), bound), given_of(given), 0.0),)


def prelu(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d, (x, slope) = given_of(given), node.inputs
    above = w.greater(x, 0.0)
    by_slope = w.where(above, 0.0, w.mul(d, x))
    return w.where(above, d, w.mul(d, slope)), w.summed_to(by_slope, w.shape(slope))


RULES: dict[str, Rule] = {
    "Relu": unary(lambda w, x, y, d: w.where(w.greater(y, 0.0), d, 0.0)),
    "LeakyRelu": sloped("alpha", 0.01),
    "ThresholdedRelu": threshold, "Shrink": shrink, "PRelu": prelu, "Clip": clip,
    **dict.fromkeys(("Elu", "Selu", "Celu"), exponential),
    "Gelu": gelu, "Sigmoid": sigmoid, "Swish": swish, "Mish": mish,
    "HardSigmoid": hard_sigmoid, "HardSwish": hard_swish,
    "Tanh": unary(lambda w, x, y, d: w.mul(d, w.sub(w.constant(1.0), square(w, y)))),
    "Softplus": unary(lambda w, x, y, d: w.mul(d, w("Sigmoid", x))),
    "Softsign": unary(lambda w, x, y, d: w.div(d, square(w, w.add(w("Abs", x), 1.0)))),
}  # fmt: skip
