"""Rules of normalisations of channels: by given statistics, by those of groups, by neighbours."""

from asmdnn.network.gradients.table import Gradients, Rule, given_of
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


def group_norm(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d, (x, scale, _) = given_of(given), node.inputs
    c, (count,) = w.shape(x)[1], w.shape(scale)
    each = scale if count == c else w.reshaped(w.expanded(w.reshaped(scale, count, 1), count, c // count), c)
    numbers = {"num_groups": node.get("num_groups", c), "epsilon": node.get("epsilon", 1e-5)}
    dx, *sums = w.own("GroupNormGradient", x, d, each, results=3, **numbers)
    by_scale, by_shift = (of_parameter(w, part, count) for part in sums)
    return dx, by_scale, by_shift


def of_parameter(w: GradientWords, by_channel: str, count: int) -> str:
    """Of one value a channel, or, in operator set 18, a group of channels."""
    (c,) = w.shape(by_channel)
    return w.summed_to(w.reshaped(by_channel, count, c // count), (count, 1)) if count != c else by_channel


def local_response(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    numbers = {"alpha": node.get("alpha", 0.0001), "beta": node.get("beta", 0.75), "bias": node.get("bias", 1.0)}
    return w.own("LRNGradient", node.inputs[0], given_of(given), size=node.get("size"), **numbers)


RULES: dict[str, Rule] = {
    "BatchNormalization": batch_norm,
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization"), group_norm),
    "LRN": local_response,
}
