"""Operators whose constants or dims leave nothing to compute: Where with one truth, powers of 0, ones on a diagonal."""

import numpy as np

from asmdnn.definitions.rounding import MOST_EXACT
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import broadcast_dims
from asmdnn.network.operators.evaluation import results_of

Names = tuple[str, ...] | None


def chosen(w: Decomposer, node: Node, condition: str, a: str, b: str) -> Names:
    """The operand that is chosen everywhere, in the dims that all have together."""
    known = w.data(condition)
    if known is None or (known.any() and not known.all()):
        return None
    dims = broadcast_dims(*map(w.shape, (condition, a, b)))
    return (w.expanded(a if known.all() else b, *dims),)


def power(w: Decomposer, node: Node, x: str, exponent: str) -> Names:
    """1 of every number, NaN too, where the exponent is 0; an integer as the number that it is, if f32 has it: others
    would be even there, which decides the sign."""
    known = w.data(exponent)
    if known is not None and known.any() and known.dtype.kind in "iu":
        is_exact = known.min() >= -MOST_EXACT and known.max() <= MOST_EXACT
        return (w("Pow", x, w.constant(known)),) if is_exact else None
    if known is None or known.any():
        return None
    return (w.constant(np.ones(broadcast_dims(w.shape(x), w.shape(exponent)), np.float32)),)


def eye_like(w: Decomposer, node: Node, x: str) -> Names:
    """What depends on dims alone."""
    like = np.broadcast_to(np.zeros((), w.value(x).dtype), w.shape(x))
    (found,) = results_of(node, [like])
    return (w.constant(found, found.dtype),)


DECOMPOSITIONS = {"Where": chosen, "Pow": power, "EyeLike": eye_like}
