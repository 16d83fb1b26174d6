"""Losses of classifiers: what files of training contain."""

import numpy as np

from asmdnn.definitions.softmax import softmax
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value


def likelihood_loss(node: Node, x: Array, target: Array, weight: Array | None = None) -> Array:
    """-x[n, target] weight[target], of all places that are not ignored; their sum, their weighted mean, or each.

    Raises ValueError for a target that is no class."""
    ignored = node.get("ignore_index")
    is_used = np.ones(target.shape, bool) if ignored is None else target != ignored
    chosen = np.where(is_used, target, 0)
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < x.shape[1]:
        raise ValueError(f"targets are from {chosen.min()} to {chosen.max()}, of {x.shape[1]} classes")
    own = (np.ones(x.shape[1], x.dtype) if weight is None else weight)[chosen] * is_used
    loss = -np.take_along_axis(x, chosen[:, None], 1)[:, 0] * own
    kind = node.get("reduction", "mean")
    if kind == "none":
        return np.asarray(loss, x.dtype)
    return np.asarray(loss.sum() if kind == "sum" else loss.sum() / own.sum(), x.dtype)


def cross_entropy(node: Node, x: Array, target: Array, weight: Array | None = None) -> tuple[Array, Array]:
    """The loss of log(softmax(x)), and these logarithms."""
    logs = softmax(x, 1, log=True)
    return likelihood_loss(node, logs, target, weight), logs


def loss_types(node: Node, x: Value, target: Value, *_: Value | None) -> list[Type]:
    shape = target.shape if node.get("reduction", "mean") == "none" else ()
    return [(shape, x.dtype), (x.shape, x.dtype)]


OPERATORS = {
    "NegativeLogLikelihoodLoss": Operator(likelihood_loss, lambda *x: loss_types(*x)[:1]),
    "SoftmaxCrossEntropyLoss": Operator(cross_entropy, loss_types),
}
