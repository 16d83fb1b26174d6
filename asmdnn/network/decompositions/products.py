"""Products of vectors, and of two matrices that are data."""

from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node

Names = tuple[str, ...] | None


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


DECOMPOSITIONS = {"MatMul": matmul, "Gemm": gemm}
