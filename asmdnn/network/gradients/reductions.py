"""Rules of reductions: the gradient goes back to every element, times what the element weighs."""

from math import prod

import numpy as np

from asmdnn.network.gradients.activations import given_of
from asmdnn.network.gradients.table import Gradients, Rule
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.reductions import axes_to_reduce


def reduction(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Axes that the result has not are 1 again, so that all else broadcasts."""
    x, y, d = node.inputs[0], node.outputs[0], given_of(given)
    dims = w.shape(x)
    axes = axes_to_reduce(node, len(dims), w.data_of(node, 1))
    kept = tuple(1 if i in axes else n for i, n in enumerate(dims))
    d, y = w.reshaped(d, *kept), w.reshaped(y, *kept)
    found = {
        "ReduceSum": lambda: d,
        "ReduceMean": lambda: w.mul(d, 1.0 / prod(dims[axis] for axis in axes)),
        "ReduceSumSquare": lambda: w.mul(x, w.mul(d, 2.0)),
        "ReduceL1": lambda: w.mul(w("Sign", x), d),
        "ReduceL2": lambda: w.mul(x, w.div(d, y)),
        "ReduceLogSum": lambda: w.div(d, w("Exp", y)),
        "ReduceLogSumExp": lambda: w.mul(w("Exp", w.sub(x, y)), d),
    }[node.op]()
    return w.expanded(found, *dims), *[None] * (len(node.inputs) - 1)


def extreme(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Elements that are equally large share it, as in torch's amax."""
    x, d = node.inputs[0], given_of(given)
    dims = w.shape(x)
    axes = axes_to_reduce(node, len(dims), w.data_of(node, 1))
    kept = tuple(1 if i in axes else n for i, n in enumerate(dims))
    best = w.reshaped(node.outputs[0], *kept)
    hit = w.where(w("Equal", x, w.expanded(best, *dims)), w.constant(np.ones(dims)), 0.0)
    share = w.div(w.reshaped(d, *kept), w.reduced("ReduceSum", hit, *axes) if axes else hit)
    return w.mul(hit, share), *[None] * (len(node.inputs) - 1)


def whole(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Means of whole planes."""
    dims = w.shape(node.inputs[0])
    return (w.expanded(w.mul(given_of(given), 1.0 / prod(dims[2:])), *dims),)


def running_sum(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """From the other end."""
    flags = {"exclusive": node.get("exclusive", 0), "reverse": 1 - node.get("reverse", 0)}
    return w("CumSum", given_of(given), node.inputs[1], **flags), None


SUMS = (
    "ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
RULES: dict[str, Rule] = {
    **dict.fromkeys(SUMS, reduction),
    "ReduceMax": extreme, "ReduceMin": extreme, "GlobalAveragePool": whole, "CumSum": running_sum,
}  # fmt: skip
