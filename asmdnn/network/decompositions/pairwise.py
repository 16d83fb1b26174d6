"""Probabilities of classes from those of pairs of them, as libsvm couples them.

Wu, Lin, Weng, Probability estimates for multi-class classification by pairwise coupling, JMLR 5 (2004), algorithm 2:
p minimises p^T Q p with the sum 1, by one class after another until no error is above a limit.
"""

from itertools import combinations

import numpy as np

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import Array

SWEEPS = 5  # over all classes: of 15,000 random matrices of 2 to 10 classes none took more than four
LIMIT = 0.005  # of all classes together
LEAST = 1e-7  # of a pair
MOST_CLASSES = 10  # a sweep is some 13 nodes for each


def probabilities(w: Decomposer, y: str, slopes: Array, shifts: Array) -> str:
    """(rows, classes) of the scores of pairs, (rows, pairs)."""
    r = w("Sigmoid", w("Neg", w.add(w("Mul", y, w.like(y, slopes)), w.like(y, shifts))))
    r = w("Min", w("Max", r, w.like(y, LEAST)), w.like(y, 1 - LEAST))
    return coupled(w, r, classes=int(np.sqrt(2 * len(slopes))) + 1)


def coupled(w: Decomposer, r: str, classes: int) -> str:
    """r: (rows, pairs), how probable the first class of each pair is."""
    q = rows_of_q(w, r, classes)
    p = w.like(r, np.full((1, classes), 1 / classes))
    qp = w.mul(w.joined(1, *(w.reduced("ReduceSum", row, 1) for row in q)), 1 / classes)
    for _ in range(SWEEPS):
        total = w.reduced("ReduceSum", w("Mul", p, qp), 1)
        worst = w.reduced("ReduceMax", w("Abs", w("Sub", qp, total)), 1)
        is_far = w.number(w("GreaterOrEqual", worst, w.like(r, LIMIT / classes)))
        for i, row in enumerate(q):
            by = w("Div", w("Sub", total, w.part(qp, 1, i, i + 1)), w.part(row, 1, i, i + 1))
            by = w("Mul", by, is_far)
            size = w.add(by, 1.0)
            p = w("Div", w("Add", p, w("Mul", by, w.like(r, np.eye(classes)[i : i + 1]))), size)
            qp = w("Div", w("Add", qp, w("Mul", by, row)), size)
            total = w.reduced("ReduceSum", w("Mul", p, qp), 1)
    return p


def rows_of_q(w: Decomposer, r: str, classes: int) -> list[str]:
    """(rows, classes) each: -r[j, i] r[i, j] beside the diagonal, and on it the sum of r[j, i]^2 over all others j."""
    other, at = w("Sub", w.like(r, 1), r), {pair: i for i, pair in enumerate(combinations(range(classes), 2))}

    def beside(i: int, j: int) -> str:
        pair = at[min(i, j), max(i, j)]
        return w.part(w("Neg", w("Mul", r, other)), 1, pair, pair + 1)

    def square(j: int, i: int) -> str:
        pair = at[min(i, j), max(i, j)]
        found = w.part(r if j < i else other, 1, pair, pair + 1)
        return w("Mul", found, found)

    found = []
    for i in range(classes):
        own, *rest = (square(j, i) for j in range(classes) if j != i)
        for one in rest:
            own = w("Add", own, one)
        found.append(w.joined(1, *(own if i == j else beside(i, j) for j in range(classes))))
    return found
