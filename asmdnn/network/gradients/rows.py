"""Rules of softmax and of normalisations of rows."""

from math import prod

from asmdnn.network.gradients.arithmetic import square
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import normal
from asmdnn.network.operators.normalization import softmax_axes


def softmax(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """y (dy - sum of dy y), of logarithms dy - e^y times the sum of dy."""
    d, y = given_of(given), node.outputs[0]
    (axis,) = softmax_axes(node, len(w.shape(y)))
    return (w.own("SoftmaxGradient", y, d, axis=axis, log=int(node.op == "LogSoftmax"))[0],)


def layer_norm(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """With h = (x - mean) / deviation and g = dy scale: (g - mean of g - h mean of g h) / deviation; RMS norms without
    means."""
    d, (x, scale, *shift) = given[0], node.inputs
    if d is None or any(one is not None for one in given[1:]):
        return [None] * len(node.inputs)
    dims, is_rms = w.shape(x), node.op == "RMSNormalization"
    axis = normal(node.get("axis", -1), len(dims))
    rows = (prod(dims[:axis]), prod(dims[axis:]))
    factor = w.reshaped(w.expanded(scale, *dims[axis:]), rows[1])
    flat = (w.reshaped(x, *rows), w.reshaped(d, *rows), factor)
    dx, by_scale, by_shift = w.own(
        "LayerNormGradient", *flat, results=3, epsilon=node.get("epsilon", 1e-5), rms=int(is_rms)
    )
    found: list[str | None] = [w.reshaped(dx, *dims)]
    for name, part in zip((scale, *shift), (by_scale, by_shift), strict=False):
        found.append(w.summed_to(w.reshaped(part, *dims[axis:]), w.shape(name)) if name != NOTHING else None)
    return found


def lengths(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """x / |x|, of p 2: (dy - y sum of dy y) / |x|; of p 1 with the signs of x in the place of y."""
    d, x, y = given_of(given), node.inputs[0], node.outputs[0]
    axis = normal(node.get("axis", -1), len(w.shape(x)))
    along = w.reduced("ReduceSum", w.mul(d, y), axis)
    if node.get("p", 2) == 1:
        return (w.div(w.sub(d, w.mul(w("Sign", x), along)), w.reduced("ReduceL1", x, axis)),)
    size = w("Sqrt", w.reduced("ReduceSum", square(w, x), axis))
    return (w.div(w.sub(d, w.mul(y, along)), size),)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("Softmax", "LogSoftmax"), softmax),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), layer_norm),
    "LpNormalization": lengths,
}
