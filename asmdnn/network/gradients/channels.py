"""Rules of normalisations of channels, by given statistics."""

from asmdnn.network.gradients.activations import given_of
from asmdnn.network.gradients.table import Gradients, Rule
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node


def batch_norm(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Statistics that are given are no results of x, and have no gradients."""
    d, (x, scale, _, mean, variance) = given_of(given), node.inputs
    ndim = len(w.shape(x))

    def spread(name: str) -> str:
        return w.reshaped(name, *w.shape(name), *[1] * (ndim - 2))

    inverse = w("Reciprocal", w("Sqrt", w.add(variance, node.get("epsilon", 1e-5))))
    by_x = w.mul(d, spread(w.mul(scale, inverse)))
    centred = w.mul(w.sub(x, spread(mean)), spread(inverse))
    axes = [i for i in range(ndim) if i != 1]
    by_scale, by_shift = (w.reduced("ReduceSum", part, *axes, keepdims=False) for part in (w.mul(d, centred), d))
    return by_x, by_scale, by_shift, None, None


RULES: dict[str, Rule] = {"BatchNormalization": batch_norm}
