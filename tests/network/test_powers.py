"""Powers whose exponents are a tensor: C's pow at every edge, a few units of the last place elsewhere."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import compiled, engine
from tests.support.drawing import RANDOM

pytestmark = pytest.mark.isa("avx2")
EDGES = np.array([
    0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 3, -3, 2.5, -2.5, 7, -7, 1e-40, -1e-40, 1e-30, 1e30, -1e30, 3e38, -3e38,
    2**23 + 1, -(2**23) - 1, 2**24 + 2, np.inf, -np.inf, np.nan,
], np.float32)  # fmt: skip
UNITS = 7.0  # of exponents up to some hundreds, whose products with a logarithm have as many digits less


def net_of(x: Any, p: Any, constant: bool = False) -> dnn.Network:
    g = dnn.Graph("powers")
    exponents = p if constant else g.input("p", p.shape)
    return g.compile(y=g.apply("Pow", g.input("x", x.shape), exponents), engine=engine())


def check(found: Any, x: Any, p: Any, units: float = UNITS) -> None:
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), p.astype(np.float64))
        wanted = exact.astype(np.float32)
    special = ~np.isfinite(wanted) | (wanted == 0)
    assert np.array_equal(found[special], wanted[special], equal_nan=True)
    numbers = special & ~np.isnan(wanted)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))
    distance = np.abs(found[~special].astype(np.float64) - exact[~special])
    room = units * np.spacing(np.maximum(np.abs(wanted[~special]), np.float32(2.0**-126)))
    assert (distance <= room).all()


def test_edges() -> None:
    x, p = (each.ravel() for each in np.meshgrid(EDGES, EDGES))
    net = net_of(x, p)
    net.check()
    assert net.is_native
    check(net.run({"x": x, "p": p})["y"], x, p)


@pytest.mark.parametrize(
    ("bases", "most", "units"), [((-38, 38), 1.2, 2.0), ((-0.3, 0.3), 120, UNITS), ((-4e-4, 4e-4), 8e4, UNITS)]
)
def test_numbers(bases: tuple[float, float], most: float, units: float) -> None:
    """Bases by their logarithm; exponents on both sides of 0."""
    x = (10.0 ** RANDOM.uniform(*bases, 5000)).astype(np.float32)
    p = RANDOM.uniform(-most, most, 5000).astype(np.float32)
    check(net_of(x, p).run({"x": x, "p": p})["y"], x, p, units)


def test_broadcast_and_fused() -> None:
    """Constant exponents, a column of them, a number as the base, in one kernel with what stands around."""
    x = np.abs(RANDOM.standard_normal((6, 19))).astype(np.float32)
    for p in (np.float32(RANDOM.uniform(-2, 2, 19)), np.float32(RANDOM.uniform(-2, 2, (6, 1)))):
        check(net_of(x, p, constant=True)(x), x, np.broadcast_to(p, x.shape))
    g = dnn.Graph("fused")
    symbol = g.input("x", x.shape)
    net = g.compile(y=g.apply("Relu", g.apply("Pow", np.float32(2.5), symbol) - 2.0), engine=engine())
    assert len(compiled(net).steps) == 1
    np.testing.assert_allclose(net(x), np.maximum(2.5 ** x.astype(np.float64) - 2, 0), 2e-6, 2e-6)


@pytest.mark.parametrize("exponent", [np.inf, -np.inf, np.nan])
def test_one_number_that_is_not_finite(exponent: float) -> None:
    p = np.full(1, exponent, np.float32)
    check(net_of(EDGES, p, constant=True)(EDGES), EDGES, p)


def test_post_op(isa: str) -> None:
    """`dnn.power` of two traced values, or of numbers."""
    a, b = np.abs(RANDOM.standard_normal((2, 5, 19))).astype(np.float32)
    op = dnn.PostOp(lambda x, c: dnn.power(x, c), c=b)
    found = dnn.ops.eltwise(a, "linear", alpha=1.0, post_ops=[op], engine=dnn.Engine(isa=isa))
    check(found, a, b)
    assert dnn.power(2.0, 3.0) == 8.0
