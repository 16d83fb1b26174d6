"""Rule of recurrent layers, which a primitive differentiates as a whole."""

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.trained_recurrent import ARGUMENTS, PARTS


def recurrent(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By all operands that are there.  A workspace is not differentiated."""
    if node.get("alpha", 0.0) < 0:
        raise w.asked.refused("a slope below 0 hides which side of 0 a result comes from")
    cell = node.get("cell")
    after = list(given[: len(given) - (PARTS[cell] > 0)])
    d, dh, dc = (*after, None, None)[:3]
    if d is None:
        d = w.constant(np.zeros(w.shape(node.outputs[0])))
    workspace = node.outputs[-1] if PARTS[cell] else NOTHING
    inputs = (*node.inputs, *[NOTHING] * len(ARGUMENTS))[: len(ARGUMENTS)]
    operands = (*inputs, node.outputs[0], workspace, d, dh or NOTHING, dc or NOTHING)
    present = [name != NOTHING for name in node.inputs]
    found = iter(w.own("RecurrentGradient", *operands, results=sum(present), **node.attributes))
    return [next(found) if is_there else None for is_there in present]


RULES: dict[str, Rule] = {f"{OWN}.Recurrent": recurrent}
