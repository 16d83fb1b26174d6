"""Values without axes: whatever makes one, and whatever reads it next."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
X = np.array([[3.0, -1.0], [0.5, 2.0]], np.float32)
Of = Callable[[dnn.Graph, Any], Any]

MAKERS: dict[str, tuple[Of, float]] = {
    "ReduceSum": (lambda g, x: g.apply("ReduceSum", x, keepdims=0), 4.5),
    "ReduceMax": (lambda g, x: g.apply("ReduceMax", x, keepdims=0), 3.0),
    "ReduceL1": (lambda g, x: g.apply("ReduceL1", x, keepdims=0), 6.5),
    "MatMul": (lambda g, x: g.apply("MatMul", *(g.apply("Reshape", x, np.array([4])) for _ in range(2))), 14.25),
    "Gather": (lambda g, x: g.apply("Gather", g.apply("Gather", x, np.array(1)), np.array(0)), 0.5),
    "Squeeze": (lambda g, x: g.apply("Squeeze", g.apply("Slice", x, np.array([0, 1]), np.array([1, 2]))), -1.0),
    "Einsum": (lambda g, x: g.apply("Einsum", x, equation="ij->"), 4.5),
}


def reshaped(*dims: int) -> tuple[Of, Callable[[Any], Any]]:
    return lambda g, y: g.apply("Reshape", y, np.array(dims, np.int64)), lambda v: v.reshape(dims)


READERS: dict[str, tuple[Of, Callable[[Any], Any]]] = {
    **{f"Reshape to {count} axes": reshaped(*(count * (1,))) for count in range(5)},
    "Unsqueeze": (lambda g, y: g.apply("Unsqueeze", y, np.array([0, 1, 2])), lambda v: v.reshape(1, 1, 1)),
    "Expand": (lambda g, y: g.apply("Expand", y, np.array([2, 1, 3])), lambda v: np.full((2, 1, 3), v)),
    "Mul": (lambda g, y: g.apply("Mul", y, np.float32(1.5)), lambda v: v * 1.5),
    "Mul by a row": (lambda g, y: g.apply("Mul", y, np.ones((2, 3), np.float32)), lambda v: np.full((2, 3), v)),
    "Relu": (lambda g, y: g.apply("Relu", y), lambda v: np.maximum(v, 0)),
    "Transpose": (lambda g, y: g.apply("Transpose", y), lambda v: v),
    "ReduceMean": (lambda g, y: g.apply("ReduceMean", y, keepdims=0), lambda v: v),
    "Where": (lambda g, y: g.apply("Where", np.array([True, False]), y, np.float32(7)), lambda v: np.array([v, 7])),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_number(maker: str, reader: str) -> None:
    (make, number), (read, expected) = MAKERS[maker], READERS[reader]
    g = dnn.Graph()
    made = make(g, g.input("x", X.shape))
    between = g.apply("Neg", made)
    net = g.compile(engine=engine(1), made=made, read=read(g, made), after=g.apply("Abs", read(g, between)))
    net.check()
    assert net.is_native
    found = net.run({"x": X})
    value = np.array(number, np.float32)
    for name, right in (("made", value), ("read", expected(value)), ("after", abs(expected(-value)))):
        assert found[name].shape == np.shape(right), name
        np.testing.assert_allclose(found[name], right, rtol=1e-6)
