"""Gradients of biases beside those of weights, in one kernel: which join, values, and what keeps them apart."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn

ENGINE = dnn.Engine(isa="avx2", threads=1)


def network(channels: int = 6, outputs: int = 16, op: str = "Conv", **attributes: Any) -> tuple[dnn.Graph, list[Any]]:
    """A graph, and the gradients of a convolution's weights and bias."""
    graph = dnn.Graph("convolution")
    x = graph.input("x", (2, channels, 7, 7))
    groups = attributes.get("group", 1)
    shape = (outputs, channels // groups, 3, 3) if op == "Conv" else (channels, outputs, 3, 3)
    w, b = graph.input("w", shape), graph.input("b", (outputs,))
    y = graph.apply(op, x, w, b, pads=(1, 1, 1, 1), **attributes)
    loss = graph.apply("ReduceSum", graph.apply("Tanh", y), keepdims=0)
    return graph, graph.gradients(loss, wrt=[w, b])


def test_one_kernel_makes_both() -> None:
    graph, (dw, db) = network()
    net = graph.compile(dw=dw, db=db, engine=ENGINE)
    assert "ConvWeightsGradient" in net.explain()
    assert "ReduceSum" not in net.explain()
    random = np.random.default_rng(0)
    given = {name: random.standard_normal(dims).astype(np.float32) for name, (dims, _) in net.inputs.items()}
    found = net.run(given)
    y = dnn.ops.conv2d(given["x"], given["w"], given["b"], padding=1).astype(float)
    dy = 1 - np.tanh(y) ** 2
    assert np.allclose(found["db"], dy.sum((0, 2, 3)), rtol=0, atol=2e-5)
    wanted, _ = dnn.ops.conv_weight_gradient(given["x"], dy.astype(np.float32), 3, padding=1)
    assert np.allclose(found["dw"], wanted, rtol=0, atol=2e-4)
    net.check()
    net.verify(given)


@pytest.mark.parametrize("fields", [
    {"group": 2},  # no such sums
    {"op": "ConvTranspose"},  # the kernel multiplies the other one as vectors
    {"channels": 64, "outputs": 256},  # large weights, which an update follows
])  # fmt: skip
def test_what_stays_apart(fields: dict[str, Any]) -> None:
    graph, (dw, db) = network(**fields)
    assert "ReduceSum" in graph.compile(dw=dw, db=db, engine=ENGINE).explain()


@pytest.mark.parametrize("name", ["dw", "db"])
def test_one_that_nobody_reads_is_not_computed(name: str) -> None:
    graph, gradients = network()
    text = graph.compile(**{name: gradients[name == "db"]}, engine=ENGINE).explain()
    assert ("ConvWeightsGradient" in text, "ReduceSum" in text) == (name == "dw", name == "db")
