"""Products of vectors, and of two matrices that are data; determinants."""

from functools import reduce
from itertools import combinations

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node

Names = tuple[str, ...] | None
MOST_ROWS = 4  # of a determinant: of more, elimination takes fewer products, and pivots


def matmul(w: Decomposer, node: Node, a: str, b: str) -> Names:
    """Of a vector, which is a row in front and a column after."""
    left, right = w.shape(a), w.shape(b)
    if len(left) > 1 and len(right) > 1:
        return None
    rows = w.lifted(a, 0) if len(left) == 1 else a
    columns = w.lifted(b, 1) if len(right) == 1 else b
    dims = list(w.shape(product := w("MatMul", rows, columns)))
    if len(right) == 1:
        dims.pop()
    if len(left) == 1:
        dims.pop(-1 if len(right) == 1 else -2)
    return (w.reshaped(product, *dims),)


def gemm(w: Decomposer, node: Node, a: str, b: str, c: str = NOTHING) -> Names:
    """With b or c that are data."""
    if w.data(b) is not None and (c == NOTHING or w.data(c) is not None):
        return None
    a = w.turned(a, 1, 0) if node.get("transA", 0) else a
    b = w.turned(b, 1, 0) if node.get("transB", 0) else b
    y = w.mul(w("MatMul", a, b), node.get("alpha", 1.0))
    return (y if c == NOTHING or not node.get("beta", 1.0) else w.add(y, w.mul(c, node.get("beta", 1.0))),)


def determinant(w: Decomposer, node: Node, x: str) -> Names:
    """Of few rows, by minors of the last ones, by their columns: sums of products of an element and a smaller minor."""
    *batch, n = w.shape(x)[:-1]
    if not 1 <= n <= MOST_ROWS:
        return None
    dims = len(batch)
    rows = [w.part(x, dims, i, i + 1) for i in range(n)]
    elements = [[w.part(row, dims + 1, j, j + 1) for j in range(n)] for row in rows]
    minors: dict[tuple[int, ...], str] = {(j,): element for j, element in enumerate(elements[-1])}
    for count, row in enumerate(reversed(elements[:-1]), 2):
        minors = {
            columns: alternating(
                w, [w.mul(row[j], minors[columns[:at] + columns[at + 1 :]]) for at, j in enumerate(columns)]
            )
            for columns in combinations(range(n), count)
        }
    return (w.reshaped(minors[tuple(range(n))], *batch),)


def alternating(w: Decomposer, terms: list[str]) -> str:
    """The first one minus the second one plus the third one, and so on."""
    first, *others = terms
    return reduce(lambda total, i: (w.add if i % 2 else w.sub)(total, others[i]), range(len(others)), first)


DECOMPOSITIONS = {"MatMul": matmul, "Gemm": gemm, "Det": determinant}
