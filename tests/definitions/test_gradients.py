"""Definitions of gradients against differences of what they are gradients of, in double precision."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from asmdnn.definitions import elementwise, moves, normalization, resampling, softmax, windows
from asmdnn.definitions.windows import SlidingWindow

RANDOM = np.random.default_rng(8)
X = RANDOM.uniform(-2, 2, (2, 4, 5, 6))
QUERY, KEY, VALUE = (RANDOM.uniform(-1, 1, (2, heads, rows, 3)) for heads, rows in ((4, 5), (2, 7), (2, 7)))
SCALE, MEAN, VARIANCE = (RANDOM.uniform(0.5, 2, (1, 4, 1, 1)) for _ in range(3))
WINDOW = SlidingWindow((2, 3), (2, 1), (1, 2), (1, 0), (0, 3))
NUMBERS = np.arange(30).reshape(1, 1, 5, 6)
SIZES, LARGER, FACTORS = (5, 6), (9, 8), (1.75, 1.25)
STEP = 1e-5

Function = Callable[[Any], Any]
Gradient = Callable[[Any, Any], Any]  # of x, and the gradient of the result


def norm(axes: tuple[int, ...], rms: bool = False) -> tuple[Function, Gradient]:
    """By statistics of x."""

    def forward(x: Any) -> Any:
        return normalization.normalized(x, *normalization.moments(x, axes, rms=rms), 0.125) * SCALE

    def backward(x: Any, d: Any) -> Any:
        mean, variance = normalization.moments(x, axes, rms=rms)
        statistics = (None if rms else mean, variance)
        return normalization.normalization_gradient(x, d, statistics, 0.125, SCALE, axes)[0][0]

    return forward, backward


def attention(place: int) -> tuple[Function, Gradient]:
    """By the query, the key or the value."""
    given = [QUERY, KEY, VALUE]

    def having(x: Any) -> list[Any]:
        return [*given[:place], x.reshape(given[place].shape), *given[place + 1 :]]

    return (
        lambda x: softmax.attention(*having(x), 0.5),
        lambda x, d: softmax.attention_gradient(*having(x), d, 0.5)[place],
    )


def soft(log: bool) -> tuple[Function, Gradient]:
    def forward(x: Any) -> Any:
        return softmax.softmax(x, 2, log=log)

    return forward, lambda x, d: softmax.softmax_gradient(forward(x), d, 2, log)[0]


def means(includes: bool) -> tuple[Function, Gradient]:
    return (
        lambda x: windows.window_means(x, WINDOW, includes)[0],
        lambda x, d: windows.means_gradient(d, WINDOW, SIZES, includes),
    )


def largest(x: Any) -> tuple[Any, Any]:
    return windows.largest(x, WINDOW, np.broadcast_to(NUMBERS, x.shape))[:2]


def resized(alg: str) -> tuple[Function, Gradient]:
    return (
        lambda x: resampling.resampled(x, alg, LARGER, FACTORS)[0],
        lambda x, d: resampling.resampled_gradient(d, alg, SIZES, FACTORS)[0],
    )


GRADIENTS: dict[str, tuple[Any, Function, Gradient]] = {
    "softmax": (X, *soft(False)),
    "log softmax": (X, *soft(True)),
    "query": (QUERY, *attention(0)),
    "key": (KEY, *attention(1)),
    "value": (VALUE, *attention(2)),
    "batch norm": (X, *norm((0, 2, 3))),
    "layer norm": (X, *norm((3,))),
    "rms": (X, *norm((3,), rms=True)),
    "given statistics": (
        X, lambda x: normalization.normalized(x, MEAN, VARIANCE, 0.125) * SCALE,
        lambda x, d: normalization.normalization_gradient(x, d, (MEAN, VARIANCE), 0.125, SCALE, ())[0][0]),
    "scale": (
        SCALE, lambda s: normalization.normalized(X, MEAN, VARIANCE, 0.125) * s,
        lambda s, d: normalization.normalization_gradient(X, d, (MEAN, VARIANCE), 0.125, s, ())[1][0].sum(
            (0, 2, 3), keepdims=True)),
    "lrn": (X, lambda x: normalization.local_response(x, (1,), 3, 0.5, 0.75, 2.0),
            lambda x, d: normalization.local_response_gradient(x, d, (1,), 3, 0.5, 0.75, 2.0)[0]),
    "means": (X, *means(True)),
    "means inside": (X, *means(False)),
    "largest": (X, lambda x: largest(x)[0], lambda x, d: windows.largest_gradient(d, largest(x)[1], WINDOW, SIZES)),
    "positions": (
        X, lambda x: largest(x)[0], lambda x, d: windows.position_gradient(
            d, windows.positions_of(largest(x)[1], WINDOW, SIZES), WINDOW, SIZES)),
    "linear": (X, *resized("linear")),
    "cubic": (X, *resized("cubic")),
    "nearest": (X, *resized("nearest")),
    "prelu": (X, lambda x: elementwise.prelu(x, SCALE), lambda x, d: elementwise.prelu_gradient(x, SCALE, d)[0]),
    "slopes": (
        SCALE, lambda s: elementwise.prelu(X, s),
        lambda s, d: elementwise.prelu_gradient(X, s, d)[1].sum((0, 2, 3), keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_differences(name: str) -> None:
    """Along random directions; a central difference is off by the third derivative times the step's square."""
    at, forward, gradient = GRADIENTS[name]
    for seed in range(3):
        random = np.random.default_rng(seed)
        d, direction = random.uniform(-1, 1, forward(at).shape), random.uniform(-1, 1, at.shape)
        ends = [(forward(at + sign * STEP * direction) * d).sum() for sign in (1, -1)]
        found = (gradient(at, d).reshape(at.shape) * direction).sum()
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(("alg", "ufunc"), [("add", np.add), ("max", np.maximum), ("min", np.minimum)])
def test_scatters_are_those_of_numpy(alg: str, ufunc: Any) -> None:
    x, updates = (np.random.default_rng(n).integers(-9, 9, (n, 3)) for n in (5, 4))
    indices, wanted = np.array([1, 4, 1, -5]), x.copy()
    ufunc.at(wanted, indices, updates)
    np.testing.assert_array_equal(moves.scattered(x, indices, updates, 0, alg), wanted)
