"""Losses of dnn.losses: against definitions in double precision, and their gradients against differences of these."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import losses
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")
STEP = 1e-5


def logs(x: Any, axis: int) -> Any:
    x = x - x.max(axis, keepdims=True)
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


def binary(x: Any, t: Any) -> Any:
    p = 1 / (1 + np.exp(-x))
    return -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean()


def smoothed(x: Any, t: Any, share: float) -> Any:
    """The mean over places of the cross entropy with (1 - share) at the target and share / classes everywhere."""
    aim = np.moveaxis(np.eye(x.shape[1])[t], -1, 1) * (1 - share) + share / x.shape[1]
    return -(aim * logs(x, 1)).sum(1).mean()


TARGETS = np.array([[0, 2, 1], [1, 1, 2]])
CASES: dict[str, tuple[Any, Any, Any, tuple[int, ...]]] = {
    "squares": (losses.mean_squared_error, lambda x, t: ((x - t) ** 2).mean(), random(3, 4), (3, 4)),
    "squares of a row": (losses.mean_squared_error, lambda x, t: ((x - t) ** 2).mean(), random(4), (3, 4)),
    "absolute": (losses.mean_absolute_error, lambda x, t: abs(x - t).mean(), random(3, 4), (3, 4)),
    "binary": (losses.binary_cross_entropy_with_logits, binary, abs(random(3, 4)) % 1, (3, 4)),
    "classes": (losses.cross_entropy, lambda x, t: smoothed(x, t, 0.0), TARGETS, (2, 5, 3)),
    "smoothed": (
        lambda x, t: losses.cross_entropy(x, t, smoothing=0.2), lambda x, t: smoothed(x, t, 0.2), TARGETS, (2, 5, 3),
    ),
}  # fmt: skip


def differences(f: Any, x: Any) -> Any:
    found = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.astype(np.float64)
            moved[place] += sign * STEP
            ends.append(f(moved))
        found[place] = (ends[0] - ends[1]) / (2 * STEP)
    return found


@pytest.mark.parametrize("name", CASES)
def test_losses(name: str) -> None:
    loss, definition, target, dims = CASES[name]
    graph, x = dnn.Graph(name), random(*dims)
    given = graph.input("x", dims), graph.input("t", target.shape, target.dtype)
    made = loss(*given)
    (gradient,) = graph.gradients(made, [given[0]])
    net = graph.compile(loss=made, dx=gradient, engine=engine(2))
    assert net.is_native
    found = net.run({"x": x, "t": target})
    assert found["loss"].shape == ()
    np.testing.assert_allclose(found["loss"], definition(x.astype(np.float64), target), rtol=1e-6)
    np.testing.assert_allclose(found["dx"], differences(lambda v: definition(v, target), x), rtol=1e-4, atol=1e-6)


def test_large_logits() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (4,))
    loss = losses.binary_cross_entropy_with_logits(x, np.float32([0, 1, 0, 1]))
    net = graph.compile(loss=loss, engine=engine())
    assert float(net(np.float32([-200, 200, 300, 500]))) == 75


def paths(x: Any, target: Any, blank: int) -> float:
    """-log of the sum over all ways to write a target, by what they write."""
    total, (steps, classes) = -np.inf, x.shape
    for way in product(range(classes), repeat=steps):
        written = [c for i, c in enumerate(way) if c != blank and (i == 0 or way[i - 1] != c)]
        if written == [*target]:
            total = np.logaddexp(total, sum(x[t, c] for t, c in enumerate(way)))
    return -float(total)


def ctc(x: Any, targets: Any, lengths: Any, steps: Any, blank: int) -> float:
    n = x.shape[1]
    own = logs(x, 2)
    found = [paths(own[: steps[i], i], targets[i, : lengths[i]], blank) / max(lengths[i], 1) for i in range(n)]
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("blank", "targets", "steps"),
    [(0, [[1, 2], [3, 3], [2, 1], [1, 1]], [5, 4, 3, 1]), (2, [[1, 0], [3, 3], [0, 2], [2, 2]], None)],
)
def test_sequences_without_places(blank: int, targets: list[list[int]], steps: list[int] | None) -> None:
    lengths, x, labels = np.array([2, 2, 1, 0]), random(5, 4, 4), np.array(targets)
    graph = dnn.Graph("ctc")
    given = [graph.input("x", x.shape), graph.input("t", (4, 2), np.int64), graph.input("l", (4,), np.int64)]
    feeds = {"x": x, "t": labels, "l": lengths}
    if steps is not None:
        given.append(graph.input("s", (4,), np.int64))
        feeds["s"] = np.array(steps)
    loss = losses.ctc(*given, blank=blank)
    (gradient,) = graph.gradients(loss, given[:1])
    net = graph.compile(loss=loss, dx=gradient, engine=engine(2))
    assert net.is_native
    found = net.run(feeds)

    def definition(v: Any) -> float:
        return ctc(v, labels, lengths, steps or [5] * 4, blank)

    np.testing.assert_allclose(found["loss"], definition(x.astype(np.float64)), rtol=1e-5)
    np.testing.assert_allclose(found["dx"], differences(definition, x), rtol=1e-3, atol=1e-6)


def test_a_target_that_is_too_long_for_its_steps() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (2, 1, 3))
    loss = losses.ctc(x, np.array([[1, 1]]), np.array([2]))
    (gradient,) = graph.gradients(loss, [x])
    found = graph.compile(loss=loss, dx=gradient, engine=engine()).run({"x": random(2, 1, 3)})
    assert found["loss"] > 1e29 and np.isfinite(found["dx"]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, x: losses.mean_squared_error(3, x), "x must be a Symbol of a graph, not 3"),
        (lambda g, x: losses.binary_cross_entropy_with_logits(None, x), "logits must be a Symbol"),
        (lambda g, x: losses.cross_entropy(x, x, smoothing=1), "smoothing must be a number from 0 to below 1, not 1"),
        (lambda g, x: losses.cross_entropy(x, x, smoothing="a"), "smoothing must be a number"),
        (lambda g, x: losses.cross_entropy("x", x), "scores must be a Symbol"),
        (lambda g, x: losses.ctc(x, x, x), "scores has dims .*, ctc takes 3 dims"),
        (lambda g, x: losses.ctc(g.input("s", (5, 2, 3)), np.ones(3, np.int64), x), "targets has dims .*takes 2"),
        (lambda g, x: losses.ctc(g.input("s", (5, 2, 3)), np.ones((2, 2), np.int64), x, blank=3), "blank must be one"),
        (lambda g, x: losses.ctc(g.input("s", ("t", 2, 3)), np.ones((2, 2), np.int64), x), "say its dims"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    graph = dnn.Graph()
    with pytest.raises(dnn.InvalidArguments, match=message):
        call(graph, graph.input("x", (3, 4)))
