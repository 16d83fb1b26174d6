"""Products of integers by constant weights of more than two dims: a matrix for each batch, or for each of some axes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine
from tests.support.drawing import integers

BATCHES = [
    ((2, 3, 7, 40), (2, 3, 40, 5)),
    ((2, 3, 7, 40), (3, 40, 5)),
    ((2, 3, 7, 40), (1, 40, 5)),
    ((2, 3, 7, 40), (2, 1, 40, 5)),
    ((7, 40), (2, 3, 40, 5)),
    ((3, 1, 40), (2, 1, 40, 5)),
]
POINTS: dict[str, Any] = {
    "s8": np.int8(0),
    "s8 far": np.int8(100),
    "u8": np.uint8(128),
    "u8 far": np.uint8(3),
    "u8 by column": np.array([128, 0, 9, 255, 77], np.uint8),
}


def kinds_of_weights(net: dnn.Network) -> list[str]:
    """Of its products."""
    steps = net.segments[0].steps  # type: ignore[union-attr]
    return [str(step.pd.plan.tensors["weights"].dtype) for step in steps if "weights" in step.pd.plan.tensors]


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core_vnni")])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("rows", "matrices"), BATCHES)
def test_floats_of_integers(rows: tuple[int, ...], matrices: tuple[int, ...], point: str, isa: str) -> None:
    """Scales are powers of two and sums below 2^24, so every bit is known."""
    g, zero = dnn.Graph(), POINTS[point]
    weights = integers(zero.dtype, *matrices)
    scales = np.array([0.5, 1, 2, 0.25, 4], np.float32) if zero.size > 1 else np.float32(0.5)
    x = g.apply("DequantizeLinear", g.input("x", rows, np.uint8), np.float32(0.25), np.uint8(9))
    w = g.apply("DequantizeLinear", weights, scales, zero, axis=-1)
    y = g.apply("Relu", g.apply("Add", g.apply("MatMul", x, w), np.arange(1, 6, dtype=np.float32)))
    net = g.compile(y=y, engine=engine(isa=isa))
    net.check()
    assert net.is_native and kinds_of_weights(net) == ["s8"] * (2 if "far" in point or zero.size > 1 else 1)
    given = integers(np.uint8, *rows)
    exact = (given.astype(np.float64) - 9) / 4 @ ((weights.astype(np.float64) - zero) * scales) + [1, 2, 3, 4, 5]
    assert np.array_equal(net.run({"x": given})["y"], np.maximum(exact, 0))


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core_vnni")])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("rows", "matrices"), BATCHES)
def test_sums_of_integers(rows: tuple[int, ...], matrices: tuple[int, ...], point: str, isa: str) -> None:
    """MatMulInteger, as sums, and as floats."""
    g, zero = dnn.Graph(), POINTS[point]
    weights, given = integers(zero.dtype, *matrices), integers(np.uint8, *rows)
    sums = g.apply("MatMulInteger", g.input("x", rows, np.uint8), weights, np.uint8(9), zero)
    floats = g.apply("MatMulInteger", g.input("z", rows, np.uint8), weights, g.input("point", (), np.uint8), zero)
    net = g.compile(sums=sums, y=g.apply("Mul", g.apply("Cast", floats, to=1), np.float32(0.5)), engine=engine(isa=isa))
    net.check()
    assert net.is_native and {*kinds_of_weights(net)} == {"s8"}
    exact = (given.astype(np.int64) - 9) @ (weights.astype(np.int64) - zero)
    found = net.run({"x": given, "z": given, "point": np.uint8(9)})
    assert np.array_equal(found["sums"], exact)
    assert np.array_equal(found["y"], exact / 2)
