"""Rules of losses of classifiers: softmax less the target, times what the loss weighs it."""

import numpy as np

from asmdnn.network.decompositions.looked_at import labels
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import NOTHING, Node


def chosen(w: GradientWords, node: Node, d: str) -> tuple[str, str]:
    """(Where the target is, as a condition of x's dims; how much each place weighs in the loss, with classes of 1)."""
    x, target, *more = node.inputs
    dims, ignored = w.shape(x), node.get("ignore_index")
    ndim = len(dims)
    classes = np.arange(dims[1])
    along = [-1 if i == 1 else 1 for i in range(ndim)]
    place = w.expanded(w.lifted(labels(w, target, dims[1], ignored), 1), *dims)
    hit = w("Equal", place, w.constant(np.broadcast_to(classes.reshape(along), (1, *dims[1:]))))
    weighs = w.constant(np.reshape(classes != ignored, along))
    if more and more[0] != NOTHING:
        weighs = w.mul(w.reshaped(more[0], *(dims[1] if n < 0 else n for n in along)), weighs)
    is_plain = ignored is None and not (more and more[0] != NOTHING)
    kind, count = node.get("reduction", "mean"), int(np.prod(dims)) // dims[1]
    one = [1] * ndim
    if is_plain:
        each = w.lifted(d, 1) if kind == "none" else w.reshaped(d, *one)
        return hit, w.mul(each, 1.0 / count) if kind == "mean" else each
    own = w.reduced("ReduceSum", w.where(hit, w.expanded(weighs, *dims), 0.0), 1)
    if kind == "none":
        return hit, w.mul(w.lifted(d, 1), own)
    whole = w.div(w.reshaped(d, *one), w.reduced("ReduceSum", own, *range(ndim))) if kind == "mean" else d
    return hit, w.mul(own, w.reshaped(whole, *one))


def likelihood_loss(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By logarithms of probabilities; none by targets and by weights of classes."""
    hit, each = chosen(w, node, given_of(given))
    dims = w.shape(node.inputs[0])
    return w.where(hit, w("Neg", w.expanded(each, *dims)), 0.0), *[None] * (len(node.inputs) - 1)


def cross_entropy(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """softmax(x) - target, of the loss; by the logarithms, if somebody reads them, as LogSoftmax has it."""
    x, d, *by_logs = node.inputs[0], *given
    probable = w("Softmax", x, axis=1)
    found = list[str]()
    if d is not None:
        hit, each = chosen(w, node, d)
        found.append(w.mul(w.sub(probable, w.where(hit, w.constant(np.ones(w.shape(x))), 0.0)), each))
    if by_logs and by_logs[0] is not None:
        found.append(w.sub(by_logs[0], w.mul(probable, w.reduced("ReduceSum", by_logs[0], 1))))
    return w.sum_of(found), *[None] * (len(node.inputs) - 1)


RULES: dict[str, Rule] = {
    "NegativeLogLikelihoodLoss": likelihood_loss,
    "SoftmaxCrossEntropyLoss": cross_entropy,
}
