"""CastLike as the Cast to the type that its second operand has."""

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import Node


def cast_like(w: Decomposer, node: Node, x: str, like: str) -> tuple[str, ...]:
    return (w("Cast", x, to=CODES[w.value(like).dtype.name], **node.attributes),)


DECOMPOSITIONS = {"CastLike": cast_like}
