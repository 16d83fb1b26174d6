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


def pooled(pads: tuple[int, ...], engine: dnn.Engine) -> dnn.TrainingStep:
    g = dnn.Graph("pooled")
    x, t = g.input("x", (4, 3, 12, 12)), g.input("t", (4,), np.int64)
    h = g.apply("Relu", g.apply("Conv", x, g.parameter("w", (16, 3, 3, 3)), pads=(1, 1, 1, 1)))
    h = g.apply("MaxPool", h, kernel_shape=(3, 3), strides=(2, 2), pads=pads)
    size = 36 if any(pads) else 25
    scores = g.apply("Flatten", h) @ g.parameter("v", (16 * size, 5))
    return g.train(g.apply("SoftmaxCrossEntropyLoss", scores, t), dnn.optim.SGD(0.1), engine=engine)


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 1, 1)])
def test_maxima_are_found_once(pads: tuple[int, ...]) -> None:
    """The forward pass writes where they are, in the format of its result, and the gradient reads it."""
    step = pooled(pads, engine())
    step.check()
    (segment,) = step._nets.main.planned("looked at").segments
    names = [one.pd.implementation.removesuffix(":avx2") for one in segment.steps]
    assert [name for name in names if "indexed" in name or "maxima" in name] == ["indexed", "maxima"]
    given = {"x": random(4, 3, 12, 12), "t": np.arange(4)}
    assert all(found.fits for found in step.verify(given))


def test_norms_clip_what_they_write() -> None:
    """No step keeps what is clipped from 0 up: gradients read the result."""
    g = dnn.Graph("clipped")
    x, weights = (g.input(name, (2, 3, 6, 6)) for name in ("x", "weights"))
    scale, shift = g.parameter("scale", (3,), "ones"), g.parameter("shift", (3,), "zeros")
    mean, variance = g.state("mean", (3,)), g.state("variance", (3,), initial=1)
    h, *_ = g.apply("BatchNormalization", x, scale, shift, mean, variance, results=3, training_mode=1)
    loss = g.apply("ReduceSum", g.apply("Mul", g.apply("Clip", h, 0.0, 6.0), weights), keepdims=0)
    lines = g.train(loss, dnn.optim.SGD(0.1), engine=engine(1)).explain()
    assert lines.count("+ Clip: batch_norm") == 1 and "Clip '" not in lines


def test_planning_looks_at_each_step_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which states may be written in place is asked of one graph of steps, however many states there are."""
    from asmdnn.network.joining.state_order import StepGraph

    counts, plain = [0], StepGraph.buffers

    def counted(self: StepGraph, step: Any, is_output: bool) -> set[str]:
        counts[0] += 1
        return plain(self, step, is_output)

    monkeypatch.setattr(StepGraph, "buffers", counted)
    found = []
    for layers in (4, 8):
        g, counts[0] = dnn.Graph("deep"), 0
        h, t = g.input("x", (ROWS, 8)), g.input("t", (ROWS,), np.int64)
        for i in range(layers):
            h = g.apply("Tanh", h @ g.parameter(f"w{i}", (8, 8)))
        g.train(g.apply("SoftmaxCrossEntropyLoss", h, t), dnn.optim.SGD(0.1, momentum=0.9), engine=engine())
        found.append(counts[0])
    assert found[1] < 2.2 * found[0]


def test_only_the_networks_that_a_step_needs_are_planned() -> None:
    step = pooled((0, 0, 0, 0), engine())
    assert {"update", "forward", "halves"}.isdisjoint(step._nets.__dict__)


def test_a_step_keeps_its_arena() -> None:
    """Also where it is larger than what the pool of scratchpads keeps between calls."""
    step, given = pooled((0, 0, 0, 0), engine()), {"x": random(4, 3, 12, 12), "t": np.arange(4)}
    step(**given)
    calls = step._placed.of(step._nets.main)
    assert calls is not None
    first = calls._call._scratch_address
    dnn.clear_caches()
    step(**given)
    assert calls._call._scratch_address == first != 0
