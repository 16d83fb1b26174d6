"""Elements that change their place: exact in every type."""

import math

import numpy as np

from asmdnn.definitions.rounding import Array


def shuffled(x: Array, axis: int, rows: int) -> Array:
    """The axis read as a matrix of so many rows, and transposed."""
    if not x.size:
        return x
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    return np.asarray(x.reshape(before, rows, -1, after).swapaxes(1, 2).reshape(x.shape))
