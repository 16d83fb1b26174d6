"""Training steps, whose weights are states that gradients update in place: against numpy in double precision."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")
ROWS, SIZES, MOMENTUM, STEPS = 16, (12, 20, 7), 0.9, 20
Arrays = dict[str, Any]


def initial() -> Arrays:
    rng = np.random.default_rng(5)
    return {f"w{i}": rng.normal(0, 0.4, dims).astype(np.float32) for i, dims in enumerate(pairwise(SIZES))}


def step_of(threads: int) -> dnn.Network:
    """A perceptron, and stochastic gradient descent with momentum."""
    g = dnn.Graph("perceptron")
    x, t, rate = g.input("x", (ROWS, SIZES[0])), g.input("t", (ROWS,), np.int64), g.input("rate", (1,))
    weights = {name: g.state(name, array.shape, initial=array) for name, array in initial().items()}
    scores = g.apply("Tanh", x @ weights["w0"]) @ weights["w1"]
    loss = g.apply("SoftmaxCrossEntropyLoss", scores, t)
    for (name, w), d in zip(weights.items(), g.gradients(loss, [*weights.values()]), strict=True):
        moment = g.state(f"moment of {name}", initial()[name].shape)
        g.update(w, w - rate * g.update(moment, MOMENTUM * moment + d))
    return g.compile(loss=loss, engine=engine(threads))


def feeds() -> Arrays:
    given = {"x": random(ROWS, SIZES[0]), "t": np.arange(ROWS) % SIZES[-1], "rate": np.array([0.3], np.float32)}
    return {**given, "t": given["t"].astype(np.int64)}


def in_numpy(given: Arrays) -> tuple[list[float], Arrays]:
    """The losses and the weights after all steps."""
    w = {name: array.astype(np.float64) for name, array in initial().items()}
    m, losses = {name: np.zeros_like(array) for name, array in w.items()}, []
    x, t, rate = given["x"].astype(np.float64), given["t"], float(given["rate"][0])
    for _ in range(STEPS):
        h = np.tanh(x @ w["w0"])
        e = np.exp(h @ w["w1"])
        p = e / e.sum(1, keepdims=True)
        losses.append(float(-np.log(p[np.arange(ROWS), t]).mean()))
        d = (p - np.eye(SIZES[-1])[t]) / ROWS
        found = {"w1": h.T @ d, "w0": x.T @ (d @ w["w1"].T * (1 - h * h))}
        for name, gradient in found.items():
            m[name] = MOMENTUM * m[name] + gradient
            w[name] = w[name] - rate * m[name]
    return losses, w


def test_steps_are_those_of_numpy() -> None:
    step, given = step_of(2), feeds()
    step.check()
    assert step.is_native
    expected, weights = in_numpy(given)
    losses = [float(step.run(given)["loss"]) for _ in range(STEPS)]
    np.testing.assert_allclose(losses, expected, rtol=2e-5)
    assert losses[-1] < losses[0] / 2
    for name, array in weights.items():
        np.testing.assert_allclose(step.state[name], array, rtol=1e-4, atol=1e-5)
    step.reset()
    assert float(step.run(given)["loss"]) == losses[0]


def test_bits_are_those_of_every_number_of_threads() -> None:
    found, given = [], feeds()
    for threads in (1, 2, 3, 7):
        step = step_of(threads)
        for _ in range(STEPS):
            step.run(given)
        found.append({name: np.array(step.state[name]) for name in initial()})
    assert all(np.array_equal(other[name], array) for other in found for name, array in found[0].items())
