"""Rules of forward passes of training, which are operators of the library's own."""

from math import prod

from asmdnn.errors import InvalidArguments
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.own import OWN


def channel_norm(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """The statistics are results of x, so that the gradient goes through them, too; none by what they are.

    Raises InvalidArguments for channels of one value, which is its own mean."""
    d, dims = given[0], w.shape(node.inputs[0])
    if prod(dims) == dims[1]:
        said = f"{w.asked.text} normalises channels of one value each, of dims {dims}"
        raise InvalidArguments(f"{said}: give it a larger batch")
    if d is None or any(one is not None for one in given[1:]):
        return [None] * len(node.inputs)
    operands = (node.inputs[0], d, node.inputs[1], *node.outputs[1:])
    return w.own("ChannelNormGradient", *operands, results=3, epsilon=node.get("epsilon"))


def random_dropout(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """The same elements again."""
    (found,) = w.own("RandomDropout", given_of(given), node.inputs[1], **node.attributes)
    return found, None


RULES: dict[str, Rule] = {f"{OWN}.ChannelNorm": channel_norm, f"{OWN}.RandomDropout": random_dropout}
