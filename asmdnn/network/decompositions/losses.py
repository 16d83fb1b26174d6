"""Losses of classifiers: the element that a target chooses is the only one that a comparison leaves in a sum.

A target that is no class and not ignored is refused before a call, as indices are.
"""

import numpy as np

from asmdnn.network.decompositions.looked_at import labels
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node

Names = tuple[str, ...] | None
MOST_CLASSES = 1 << 24  # whose numbers f32 has


def likelihood_loss(w: Decomposer, node: Node, x: str, target: str, weight: str = NOTHING) -> Names:
    dims, ignored = w.shape(x), node.get("ignore_index")
    if 0 in dims or dims[1] > MOST_CLASSES:
        return None
    chosen = w.lifted(labels(w, target, dims[1], ignored), 1)
    along = [-1 if i == 1 else 1 for i in range(len(dims))]
    classes = np.arange(dims[1])
    number = w.constant(classes.reshape(along))
    hit = w("Equal", w.expanded(chosen, *dims), number)
    used = w.constant(np.reshape(classes != ignored, along))
    each = used if weight == NOTHING else w.mul(w.reshaped(weight, *(dims[1] if n < 0 else n for n in along)), used)
    loss = w("Neg", total(w, hit, w.mul(x, each)))
    kind = node.get("reduction", "mean")
    if kind == "none":
        return (loss,)
    axes = range(len(w.shape(target)))
    whole = w.reduced("ReduceSum", loss, *axes, keepdims=False)
    if kind == "sum":
        return (whole,)
    return (w.div(whole, w.reduced("ReduceSum", total(w, hit, w.expanded(each, *dims)), *axes, keepdims=False)),)


def total(w: Decomposer, hit: str, values: str) -> str:
    """Over classes, of what is chosen."""
    return w.reduced("ReduceSum", w.where(hit, values, 0.0), 1, keepdims=False)


def cross_entropy(w: Decomposer, node: Node, x: str, target: str, weight: str = NOTHING) -> Names:
    if 0 in w.shape(x) or w.shape(x)[1] > MOST_CLASSES:
        return None
    logs = w("LogSoftmax", x, axis=1)
    loss = likelihood_loss(w, node, logs, target, weight)
    return None if loss is None else (*loss, logs)


DECOMPOSITIONS = {"NegativeLogLikelihoodLoss": likelihood_loss, "SoftmaxCrossEntropyLoss": cross_entropy}
