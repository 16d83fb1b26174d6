"""Functions that networks have beside the element-wise algorithms: within three units of the last place, edges too."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, reference
from tests.support.drawing import RANDOM

pytestmark = pytest.mark.isa("avx2")
EDGES = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0**-149, 1e-40, 4096.0, 1e30, np.inf, -np.inf, np.nan]
UNITS = 3.5
NUMPY = {
    "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh,
    "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", NUMPY)
def test_functions(op: str) -> None:
    parts = [RANDOM.uniform(-1, 1, 2000), RANDOM.uniform(-89, 89, 2000), 10.0 ** RANDOM.uniform(-30, 5, 1000), EDGES]
    x = np.concatenate(parts).astype(np.float32)
    x = np.where(np.isfinite(x) & (abs(x) > 2**20) & (op == "Tan"), np.float32(3), x)
    found = net_of(op, x.shape)(x)
    exact = NUMPY[op](x.astype(np.float64))
    wanted = exact.astype(np.float32)
    special = ~np.isfinite(wanted)
    assert np.array_equal(found[special], wanted[special], equal_nan=True)
    distance = np.abs(found.astype(np.float64) - exact)[~special]
    assert (distance <= UNITS * np.spacing(np.maximum(np.abs(wanted[~special]), np.float32(2.0**-126)))).all()


def net_of(op: str, shape: tuple[int, ...], **attributes: Any) -> dnn.Network:
    g = dnn.Graph(op)
    return g.compile(y=g.apply(op, g.input("x", shape), **attributes), engine=engine())


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("IsInf", {}),
        ("IsInf", {"detect_negative": 0}),
        ("IsInf", {"detect_positive": 0}),
        ("IsInf", {"detect_positive": 0, "detect_negative": 0}),
        ("Shrink", {"bias": 0.3, "lambd": 0.7}),
        ("Celu", {"alpha": 2.0}),
    ],
)
def test_others(op: str, attributes: dict[str, Any]) -> None:
    x = np.concatenate((RANDOM.standard_normal(50) * 3, EDGES[:-1])).astype(np.float32)
    net = net_of(op, x.shape, **attributes)
    with np.errstate(all="ignore"):
        wanted = reference(net, {"x": x})["y"]
    found = net(x)
    assert found.dtype == (wanted.dtype if op == "IsInf" else np.float32)
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
