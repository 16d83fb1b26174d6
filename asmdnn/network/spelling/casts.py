"""CastLike as the Cast to the type that its second operand has."""

from asmdnn.network.element_types import CODES
from asmdnn.network.graph import Node
from asmdnn.network.spelling.words import Speller


def cast_like(w: Speller, node: Node, x: str, like: str) -> tuple[str, ...]:
    return (w("Cast", x, to=CODES[w.value(like).dtype.name], **node.attributes),)


SPELLINGS = {"CastLike": cast_like}
