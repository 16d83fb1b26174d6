"""Gradients of `Graph.map`: functions of a user's own are differentiated, and are a kernel each."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, implementations, random
from tests.network.test_gradients import check

pytestmark = pytest.mark.isa("avx2")


def swirl(x: Any, c: Any) -> Any:
    return dnn.where(x > 0, dnn.tanh(x) * c, dnn.exp(x) - 1.0 + dnn.sqrt(dnn.square(c) + 1.0) * x)


def long(x: Any) -> Any:
    """More steps than a group of operators has."""
    for i in range(40):
        x = dnn.sin(x * (0.9 + 0.01 * i)) + 0.1 * x
    return x


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "itself": (lambda x: x, [(3, 5)]),
    "of all words": (
        lambda x: (
            dnn.logistic(x) * dnn.cos(x) - dnn.log(dnn.absolute(x) + 1.5) / dnn.power(2.5 + dnn.clip(x, -1, 0.2), 1.5)
        ),
        [(4, 7)],
    ),
    "broadcast": (swirl, [(2, 3, 4, 5), (3, 1, 1)]),
    "broadcast both ways": (swirl, [(4, 1), (3, 1, 5)]),
    "powers": (lambda x, y: dnn.power(dnn.absolute(x) + 0.5, y), [(3, 4), (4,)]),
    "remainders": (lambda x, y: dnn.mod(x, dnn.square(y) + 0.3) + dnn.fmod(y, 0.7), [(3, 40), (3, 40)]),
    "steps": (lambda x, y: dnn.floor(x) * y + dnn.maximum(x, y) - dnn.minimum(y, 0.1), [(3, 40), (40,)]),
    "long": (long, [(3, 40)]),
    "many": (lambda *x: sum((i + 1.0) * v * v for i, v in enumerate(x)) * x[0], [(3, 8)] * 9),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_differences(name: str) -> None:
    function, dims = FUNCTIONS[name]
    graph = dnn.Graph(name)
    given = {f"x{i}": random(*one) * np.float32(3) for i, one in enumerate(dims)}
    y = graph.map(function, *(graph.input(name, x.shape) for name, x in given.items()))
    loss = graph.apply("ReduceSum", graph.apply("Sin", y), keepdims=0)
    check(graph, loss, given, [*given])


def test_one_operand_twice_and_constants() -> None:
    graph, other = dnn.Graph("twice"), random(3, 1)
    x = graph.input("x", (3, 5))
    y = graph.map(swirl, x, x) + graph.map(swirl, x, other) + graph.map(swirl, x, 0.25) + graph.map(swirl, 0.5, x)
    check(graph, graph.apply("ReduceSum", y, keepdims=0), {"x": random(3, 5)}, ["x"])


def test_of_what_is_not_wanted_there_is_none() -> None:
    """Operands without influence on a gradient are not read by it."""
    graph = dnn.Graph("sums")
    x, y = graph.input("x", (3, 5)), graph.input("y", (3, 5))
    loss = graph.apply("ReduceSum", graph.map(lambda a, b: 3.0 * a + dnn.exp(b), x, y), keepdims=0)
    (dx,) = graph.gradients(loss, [x])
    net = graph.compile(dx=dx, engine=engine())
    np.testing.assert_array_equal(net.run({"x": random(3, 5), "y": random(3, 5)})["dx"], np.full((3, 5), 3, np.float32))


def test_a_gradient_of_zero() -> None:
    graph = dnn.Graph("steps")
    x = graph.input("x", (3, 5))
    check(graph, graph.apply("ReduceSum", graph.map(dnn.floor, x), keepdims=0), {"x": random(3, 5)}, ["x"])


def test_second_derivatives() -> None:
    graph = dnn.Graph("second")
    x, c = graph.input("x", (3, 4)), graph.input("c", (4,))
    dx, dc = graph.gradients(graph.apply("ReduceSum", graph.map(swirl, x, c), keepdims=0), [x, c])
    loss = graph.apply("ReduceSum", dx * dx, keepdims=0) + graph.apply("ReduceSum", graph.apply("Sin", dc), keepdims=0)
    check(graph, loss, {"x": random(3, 4), "c": random(4)}, ["x", "c"])


def test_each_gradient_is_one_kernel() -> None:
    graph = dnn.Graph("kernels")
    x = graph.input("x", (8, 32))
    (dx,) = graph.gradients(graph.apply("ReduceSum", graph.map(long, x), keepdims=0), [x])
    assert implementations(graph.compile(dx=dx, engine=engine())) == ["eltwise"]


def trained(threads: int) -> dnn.TrainingStep:
    """A perceptron whose activation has a parameter of its own."""
    g = dnn.Graph("own activation", seed=1)
    x, t = g.input("x", (16, 12)), g.input("t", (16,), np.int64)
    slope = g.parameter("slope", (20,), np.full(20, 0.5, np.float32))
    h = g.map(swirl, x @ g.parameter("w", (12, 20)), slope)
    loss = g.apply("SoftmaxCrossEntropyLoss", h @ g.parameter("v", (20, 7)), t)
    return g.train(loss, dnn.optim.SGD(0.3), engine=engine(threads))


def in_numpy(step: dnn.TrainingStep, given: dict[str, Any], steps: int) -> tuple[list[float], dict[str, Any]]:
    w, v, c = (np.array(step.parameters[name], np.float64) for name in ("w", "v", "slope"))
    x, t, losses = given["x"].astype(np.float64), given["t"], []
    for _ in range(steps):
        z = x @ w
        h, positive = swirl(z, c), z > 0
        e = np.exp(h @ v)
        p = e / e.sum(1, keepdims=True)
        losses.append(float(-np.log(p[np.arange(16), t]).mean()))
        d = (p - np.eye(7)[t]) / 16
        dh, root = d @ v.T, np.sqrt(c * c + 1)
        dz = dh * np.where(positive, (1 - np.tanh(z) ** 2) * c, np.exp(z) + root)
        dc = (dh * np.where(positive, np.tanh(z), c / root * z)).sum(0)
        w, v, c = w - 0.3 * x.T @ dz, v - 0.3 * h.T @ d, c - 0.3 * dc
    return losses, {"w": w, "v": v, "slope": c}


def test_a_training_step() -> None:
    step, given = trained(2), {"x": random(16, 12) * np.float32(3), "t": np.arange(16) % 7}
    step.check()
    expected, parameters = in_numpy(step, given, 20)
    losses = [step(**given) for _ in range(20)]
    np.testing.assert_allclose(losses, expected, rtol=5e-5)
    for name, array in parameters.items():
        np.testing.assert_allclose(step.parameters[name], array, rtol=2e-4, atol=2e-5, err_msg=name)
    others = trained(1), trained(3), copy.deepcopy(trained(1)), pickle.loads(pickle.dumps(trained(1)))
    for other in others:
        assert [other(**given) for _ in range(20)] == losses


def test_what_has_no_gradient_is_refused() -> None:
    graph = dnn.Graph("bad")
    x = graph.input("x", (3, 4))
    shifted = graph.map(lambda v: v.builder.op("shl", v, immediate=1) + v, x)
    with pytest.raises(dnn.Unimplemented, match=r"^map of <lambda> '.*' has no gradient: shl has no derivative"):
        graph.gradients(graph.apply("ReduceSum", shifted, keepdims=0), [x])

    def very_long(v: Any) -> Any:
        for _ in range(42):
            v = dnn.tanh(dnn.tanh(v)) * v
        return v

    y = graph.map(very_long, x)
    graph.compile(y=y, engine=engine())
    with pytest.raises(dnn.Unimplemented, match=r"^map of very_long '.*' has no gradient: .* steps, at most 2000 fit"):
        graph.gradients(graph.apply("ReduceSum", y, keepdims=0), [x])
