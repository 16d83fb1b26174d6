"""Integers that must be in a range, which every call looks at."""

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.operators.own import OWN


def index(w: Decomposer, indices: str, limit: int, axis: int) -> str:
    """Indices along an axis from 0 on; those out of range are said to be the node's."""
    return w("Index", indices, domain=OWN, limit=limit, axis=axis, of=str(w.node))


def within(w: Decomposer, x: str, least: int, count: int, axis: int) -> str:
    """x, of which no element may be below `least`, which is not negative, or `count` above it.  axis: of what x chooses
    from, for the message.

    Indices may count from the end, which others must not.  So what is looked at is twice as far from the middle as x,
    and x is the larger one of itself and of something less than it that is made of the former.
    """
    dtype = w.value(x).dtype
    distance = w("Sub", w("Mul", x, w.constant(2, dtype)), w.constant(2 * least + count, dtype))
    looked_at = index(w, distance, count, axis)
    return w("Max", x, w("Sub", looked_at, w.constant(count, dtype)))
