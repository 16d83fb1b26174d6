"""Rules of matrix products: each factor's gradient is a product with the other one, transposed."""

from math import prod

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import NOTHING, Node

MATRIX = 2
MOST_MINORS = 32


def transposed(w: GradientWords, x: str) -> str:
    """The last two axes exchanged."""
    n = len(w.shape(x))
    return w.turned(x, *range(n - 2), n - 1, n - 2)


def matmul(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Vectors are matrices of one row or column.  A matrix that all batches read sums over rows of all of them."""
    d, (a, b) = given_of(given), node.inputs
    left, right = w.shape(a), w.shape(b)
    wide = left if len(left) > 1 else (1, *left)
    tall = right if len(right) > 1 else (*right, 1)
    rows = (*w.shape(d), 1) if len(right) == 1 else w.shape(d)
    d = w.reshaped(d, *(rows if len(left) > 1 else (*rows[:-1], 1, rows[-1])))
    x, y = w.reshaped(a, *wide), w.reshaped(b, *tall)
    by_left = w.reshaped(w.summed_to(w("MatMul", d, transposed(w, y)), wide), *left)
    if len(tall) == MATRIX and len(wide) > MATRIX:
        x, d = w.reshaped(x, prod(wide[:-1]), wide[-1]), w.reshaped(d, prod(wide[:-1]), tall[-1])
    by_right = w.reshaped(w.summed_to(w("MatMul", transposed(w, x), d), tall), *right)
    return by_left, by_right


def gemm(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    d, (a, b, *more) = given_of(given), node.inputs
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    scaled = w.mul(d, alpha)
    left = transposed(w, a) if node.get("transA", 0) else a
    right = transposed(w, b) if node.get("transB", 0) else b
    if node.get("transA", 0):
        by_left = w("MatMul", right, transposed(w, scaled))
    else:
        by_left = w("MatMul", scaled, transposed(w, right))
    if node.get("transB", 0):
        by_right = w("MatMul", transposed(w, scaled), left)
    else:
        by_right = w("MatMul", transposed(w, left), scaled)
    shifts = [w.summed_to(w.mul(d, beta), w.shape(c)) if c != NOTHING else None for c in more]
    return by_left, by_right, *shifts


def determinant(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """Cofactors: determinants of what is left without a row and a column, of singular matrices too.

    Raises Unimplemented for large ones, whose minors are too many.
    """
    d, x = given_of(given), node.inputs[0]
    dims = w.shape(x)
    n = dims[-1]
    if n > MOST_MINORS:
        raise w.asked.refused(f"of {n}x{n} it takes all minors, which are for up to {MOST_MINORS}x{MOST_MINORS}")
    if n <= 1:
        return (w.reshaped(d, *dims) if n else w.constant(np.zeros(dims)),)
    rest = w.constant([[j for j in range(n) if j != i] for i in range(n)], np.int64)
    lead = len(dims) - MATRIX
    parts = w("Gather", w("Gather", x, rest, axis=lead), rest, axis=lead + MATRIX)  # row, its others, column, others
    minors = w("Det", w.turned(parts, *range(lead), lead, lead + 2, lead + 1, lead + 3))
    signs = 1 - 2 * (np.add.outer(np.arange(n), np.arange(n)) % 2)
    return (w.mul(w.mul(minors, w.constant(signs)), w.reshaped(d, *dims[:-MATRIX], 1, 1)),)


RULES: dict[str, Rule] = {"MatMul": matmul, "Gemm": gemm, "Det": determinant}
