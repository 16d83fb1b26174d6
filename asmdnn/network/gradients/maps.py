"""The rule of functions that users write: each gradient is such a function, too, of operands and dy."""

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node
from asmdnn.network.operators.mapped import MAP
from asmdnn.primitives.attributes.derivatives import derivatives
from asmdnn.primitives.attributes.user_post_op import trace


def mapped(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d = given_of(given)
    try:
        found = derivatives(node.get("function"), len(node.inputs))
        for one in found:
            if one is not None:
                trace(one[0], tuple(map(str, one[1])))
    except (InvalidArguments, Unimplemented) as error:
        raise w.asked.refused(str(error)) from None
    parts = list[str]()
    for x, one in zip(node.inputs, found, strict=True):
        if one is None:
            part = w.mul(d, 0.0)
        else:
            function, read = one
            part = w(MAP, *(node.inputs[i] for i in read), d, function=function)
        parts.append(w.summed_to(part, w.shape(x)))
    return parts


RULES: dict[str, Rule] = {MAP: mapped}
