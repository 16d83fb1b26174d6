"""Saturation is never silent in `verify`: of integers of any type and scale, wherever they are made, and of f16."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.element_types import CODES
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
X = np.array([[0.5, 400, -400, 3], [7, 90_000, 2, -1]], np.float32)  # beyond 8 bits: 400, -400 and 90000


def saturated(net: dnn.Network, **more: Any) -> float:
    found = net.verify({"x": X, **more})
    assert all(one.fits for one in found)
    assert ("nothing is saturated" in str(found)) == (not found.saturated)
    return found.saturated[0].saturated if found.saturated else 0.0


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize(
    ("zero", "wanted"), [(np.uint8(0), 2 / 8), (np.uint8(9), 3 / 8), (np.int8(0), 3 / 8), (np.int8(-128), 2 / 8)]
)
def test_bytes(zero: Any, wanted: float, is_read: bool) -> None:
    """What is below 0 is no loss where 0 is the least integer; also of integers that stay in registers."""
    g, scale = dnn.Graph(), np.float32(1)
    y = g.apply("QuantizeLinear", g.input("x", X.shape), scale, zero)
    y = g.apply("Relu", g.apply("DequantizeLinear", y, scale, zero)) * 2.0 if is_read else y
    assert saturated(g.compile(y=y, engine=engine())) == wanted


@pytest.mark.parametrize("is_read", [False, True])
@pytest.mark.parametrize(("zero", "wanted"), [(np.uint16(0), 1 / 8), (np.uint16(9), 2 / 8), (np.int16(-30_000), 1 / 8)])
def test_words(zero: Any, wanted: float, is_read: bool) -> None:
    """-1 is 8 where the zero point is 9."""
    g, scale = dnn.Graph(), np.float32(1)
    y = g.apply("QuantizeLinear", g.input("x", X.shape), scale, zero)
    y = g.apply("Relu", g.apply("DequantizeLinear", y, scale, zero)) * 2.0 if is_read else y
    net = g.compile(y=y, engine=engine())
    assert net.is_native and saturated(net) == wanted


def test_scales_along_an_axis() -> None:
    g, scales = dnn.Graph(), np.array([1, 1000, 1, 0.001], np.float32)
    y = g.apply("QuantizeLinear", g.input("x", X.shape), scales, np.zeros(4, np.int8), axis=1)
    assert saturated(g.compile(y=y, engine=engine())) == 3 / 8


def test_a_scale_that_is_data() -> None:
    g = dnn.Graph()
    net = g.compile(y=g.apply("QuantizeLinear", g.input("x", X.shape), g.input("scale", ())), engine=engine())
    assert saturated(net, scale=np.float32(1)) == 2 / 8
    assert saturated(net, scale=np.float32(1000)) == 0


def test_integers_that_numpy_makes() -> None:
    pytest.importorskip("ml_dtypes", reason="numpy types of few bits: pip install ml_dtypes")
    g = dnn.Graph()
    y = g.apply("QuantizeLinear", g.input("x", X.shape), np.float32(1), output_dtype=CODES["int4"])
    net = g.compile(y=g.apply("DequantizeLinear", y, np.float32(1)), engine=engine(), fallback="numpy")
    assert not net.is_native and saturated(net) == 3 / 8


def test_outputs_of_16_bits() -> None:
    g = dnn.Graph()
    net = g.compile(y=g.input("x", X.shape) * 1.0, engine=engine(), io="f16")
    found = net.verify({"x": np.float16(X / 10)})
    assert found.outputs[0].infinite == 0 and "nothing is saturated" in str(found)
    g = dnn.Graph()
    found = g.compile(y=g.input("x", X.shape) * 200.0, engine=engine(), io="f16").verify({"x": np.float16(X % 400)})
    assert found.outputs[0].infinite == 1 / 8
    assert "output y: 12.50% infinite, as its type ends before" in str(found)
