"""What has no kernel is said of the node that a user has written, not of those that stand in its place."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
I64 = np.int64
FAR = r"whose numbers may be beyond 2\^24 here, and f32 has none of these exactly$"


def scattered(op: str, reduction: str, dtype: Any, *, count: int = 7) -> tuple[dnn.Graph, Any]:
    g = dnn.Graph()
    x, updates = g.input("x", (5, 3), dtype), g.input("updates", (count, 3), dtype)
    places = g.input("places", (count, 1 if op == "ScatterND" else 3), I64)
    return g, g.apply(op, x, places, updates, reduction=reduction, name="put")


@pytest.mark.parametrize(
    "graph, says",
    [
        (scattered("ScatterND", "mul", I64), rf"ScatterND 'put' \(as ScatterRows\): x is int64, {FAR}"),
        (scattered("ScatterElements", "mul", np.int32), rf"ScatterElements 'put' \(as ScatterRows\): .* int32, {FAR}"),
        (scattered("ScatterND", "add", I64, count=40_000), rf"ScatterND 'put' \(as ScatterRows\): x is int64, {FAR}"),
        (scattered("ScatterND", "add", np.int8), "ScatterND 'put': reduction 'add' of int8 has no kernel$"),
        (
            scattered("ScatterElements", "max", np.bool_),
            "ScatterElements 'put': reduction 'max' of bool has no kernel$",
        ),
    ],
)
def test_scatters(graph: tuple[dnn.Graph, Any], says: str) -> None:
    g, y = graph
    with pytest.raises(dnn.Unimplemented, match=f"^1 of the nodes has no kernel, .*: {says}"):
        g.compile(engine=engine(), y=y)
