"""Integers that must be in a range, which every call looks at."""

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.operators.own import OWN

INT32 = np.iinfo(np.int32)


def index(w: Decomposer, indices: str, limit: int, axis: int) -> str:
    """Indices along an axis from 0 on; those out of range are said to be the node's."""
    return w("Index", indices, domain=OWN, limit=limit, axis=axis, of=str(w.node))


def within(w: Decomposer, x: str, least: int, count: int, axis: int) -> str:
    """Integers of which no element may be below `least`, which is not negative, or `count` above it.  axis: of what
    they choose from, for the message."""
    return w("Index", x, domain=OWN, limit=least + count, least=least, axis=axis, of=str(w.node))


def labels(w: Decomposer, x: str, classes: int, ignored: int | None) -> str:
    """Numbers of classes, along axis 1 of what a loss scores, as f32.  ignored: the label that none may be, too."""
    is_word = ignored is not None and INT32.min <= ignored <= INT32.max  # kernels read 32 bits
    besides = {"ignored": ignored} if is_word else {}
    return w.number(w("Index", x, domain=OWN, limit=classes, least=0, axis=1, of=str(w.node), **besides))
