"""Integers that must be in a range, which every call looks at."""

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.operators.own import OWN


def index(w: Decomposer, indices: str, limit: int, axis: int) -> str:
    """Indices along an axis from 0 on; those out of range are said to be the node's."""
    return w("Index", indices, domain=OWN, limit=limit, axis=axis, of=str(w.node))


def within(w: Decomposer, x: str, least: int, count: int, axis: int) -> str:
    """Integers of which no element may be below `least`, which is not negative, or `count` above it.  axis: of what
    they choose from, for the message."""
    return w("Index", x, domain=OWN, limit=least + count, least=least, axis=axis, of=str(w.node))
