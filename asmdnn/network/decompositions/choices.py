"""Operators whose constants leave nothing to compute: Where with one truth everywhere, powers of 0."""

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import broadcast_dims

Names = tuple[str, ...] | None


def chosen(w: Decomposer, node: Node, condition: str, a: str, b: str) -> Names:
    """The operand that is chosen everywhere, in the dims that all have together."""
    known = w.data(condition)
    if known is None or (known.any() and not known.all()):
        return None
    dims = broadcast_dims(*map(w.shape, (condition, a, b)))
    return (w.expanded(a if known.all() else b, *dims),)


def power(w: Decomposer, node: Node, x: str, exponent: str) -> Names:
    """1 of every number, NaN too."""
    known = w.data(exponent)
    if known is None or known.any():
        return None
    return (w.constant(np.ones(broadcast_dims(w.shape(x), w.shape(exponent)), np.float32)),)


DECOMPOSITIONS = {"Where": chosen, "Pow": power}
