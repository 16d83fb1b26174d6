"""Rules of reductions: the gradient goes back to every element, times what the element weighs."""

from math import prod

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
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
        "ReduceL2": lambda: w.mul(x, w.div(d, w.where(w("Equal", y, w.constant(0.0)), 1.0, y))),  # 0 where all are
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


def whole_extreme(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Of whole planes, as ReduceMax."""
    x, d = node.inputs[0], given_of(given)
    dims = w.shape(x)
    hit = w.where(w("Equal", x, w.expanded(node.outputs[0], *dims)), w.constant(np.ones(dims)), 0.0)
    return (w.mul(hit, w.div(d, w.reduced("ReduceSum", hit, *range(2, len(dims))))),)


def product(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """The product of all others, y / x: where an element is 0 that of the others, computed beside."""
    x, y, d = node.inputs[0], node.outputs[0], given_of(given)
    dims = w.shape(x)
    axes = axes_to_reduce(node, len(dims), w.data_of(node, 1))
    kept = tuple(1 if i in axes else n for i, n in enumerate(dims))
    zero = w.where(w("Equal", x, w.constant(0.0)), w.constant(np.ones(dims)), 0.0)
    zeros = w.reduced("ReduceSum", zero, *axes) if axes else zero
    rest = w.reduced("ReduceProd", w.add(x, zero), *axes) if axes else w.add(x, zero)
    alone = w("And", w("Equal", zero, w.constant(1.0)), w("Equal", w.expanded(zeros, *dims), w.constant(1.0)))
    others = w.where(alone, w.expanded(rest, *dims), w.div(w.expanded(w.reshaped(y, *kept), *dims), w.add(x, zero)))
    return w.mul(others, w.expanded(w.reshaped(d, *kept), *dims)), *[None] * (len(node.inputs) - 1)


def running_sum(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """From the other end."""
    flags = {"exclusive": node.get("exclusive", 0), "reverse": 1 - node.get("reverse", 0)}
    return w("CumSum", given_of(given), node.inputs[1], **flags), None


def running_product(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """In front of the first 0 of a row the sum of dy y from the other end, over x; at it, of dy times what y were with
    a 1 there; after it 0."""
    d, (x, axis), y = given_of(given), node.inputs, node.outputs[0]
    flags = {name: node.get(name, 0) for name in ("exclusive", "reverse")}
    back = flags | {"reverse": 1 - flags["reverse"]}
    is_zero = w("Equal", x, w.constant(0.0))
    zeros = w("CumSum", w.where(is_zero, w.constant(np.ones(w.shape(x))), 0.0), axis, reverse=flags["reverse"])
    is_first = w("And", is_zero, w("Equal", zeros, w.constant(1.0)))
    others = w.where(is_first, 1.0, x)
    at_first = w("CumSum", w.mul(d, w("CumProd", others, axis, **flags)), axis, **back)
    before = w.div(w("CumSum", w.mul(d, y), axis, **back), w.where(is_zero, 1.0, x))
    behind = w.where(is_first, at_first, 0.0)
    return w.where(w("Equal", zeros, w.constant(0.0)), before, behind), None


SUMS = (
    "ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
)  # fmt: skip
RULES: dict[str, Rule] = {
    **dict.fromkeys(SUMS, reduction),
    "ReduceMax": extreme, "ReduceMin": extreme, "GlobalAveragePool": whole, "CumSum": running_sum,
    "CumProd": running_product,
    "GlobalMaxPool": whole_extreme, "ReduceProd": product,
}  # fmt: skip
