"""Rules of pooling by windows."""

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node


def max_pool(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """To the first of the largest elements of each window."""
    return w.own("MaxPoolGradient", node.inputs[0], given_of(given[:1]), **node.attributes)


def average_pool(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    dims = w.shape(node.inputs[0])
    return w.own("AveragePoolGradient", given_of(given), image=dims, **node.attributes)


RULES: dict[str, Rule] = {"MaxPool": max_pool, "AveragePool": average_pool}
