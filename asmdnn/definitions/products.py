"""Products of matrices, and the size of their sums.

The size of a sum is what its rounding is in proportion to: f32 arithmetic is off by at most gamma(roundings) times the
sum of the absolute products (rounding.py), which Cauchy and Schwarz bound by two Euclidean norms.
"""

import numpy as np

from asmdnn.definitions.rounding import Array, Doubles


def product(a: Array, b: Array) -> Doubles:
    """a (.., m, k) times b (.., k, n), in double precision."""
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)))


def product_size(a: Array, b: Array) -> Doubles:
    """|row of a| * |column of b| for each element of the product."""
    rows = np.sqrt(np.square(a, dtype=np.float64).sum(axis=-1))
    columns = np.sqrt(np.square(b, dtype=np.float64).sum(axis=-2))
    return np.asarray(rows[..., :, None] * columns[..., None, :])
