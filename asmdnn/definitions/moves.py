"""Elements that change their place, or are added up where indices say: exact in every type but for sums."""

import math
from typing import Final

import numpy as np

from asmdnn.definitions.rounding import Array


def shuffled(x: Array, axis: int, rows: int) -> Array:
    """The axis read as a matrix of so many rows, and transposed."""
    if not x.size:
        return x
    before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    return np.asarray(x.reshape(before, rows, -1, after).swapaxes(1, 2).reshape(x.shape))


UPDATES: Final = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scattered(x: Array, indices: Array, updates: Array, axis: int, alg: str) -> Array:
    """x, of which indices name parts along an axis that become updates, or combine with them, in row-major order."""
    if not updates.size:
        return x.copy()
    result = np.moveaxis(x, axis, 0).copy()
    count = indices.ndim
    rows = np.moveaxis(updates, range(axis, axis + count), range(count)).reshape(-1, *result.shape[1:])
    places = indices.ravel() + len(result) * (indices.ravel() < 0)
    if alg == "none":
        for place, row in zip(places, rows, strict=True):  # numpy does not say which of equal places stays
            result[place] = row
    else:
        UPDATES[alg].at(result, places, rows)
    return np.ascontiguousarray(np.moveaxis(result, 0, axis))
