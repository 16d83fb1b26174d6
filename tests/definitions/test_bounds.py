"""Bounds of the definitions: the same in f32, one rounding at a time, with sums in several orders, stays within them.

Each case says which share of its bound some errors reach, so that no bound is one that nothing can break; where that is
near 1, a rounding that is not counted fails.  Bounds of recurrent layers are in test_recurrent.py.
"""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from asmdnn.definitions import convolution, elementwise, products, reduction, resampling, softmax, windows
from asmdnn.definitions import normalization as norms
from asmdnn.definitions.rounding import SMALLEST, gamma
from asmdnn.definitions.winograd import (
    GRADIENT_GROWTH,
    GRADIENT_ROUNDINGS,
    GROWTH,
    ROUNDINGS,
    winograd_gradient_size,
    winograd_size,
)
from tests.definitions.in_f32 import (
    ORDERS,
    along,
    array_of,
    images,
    in_chains,
    pixel_sums,
    rows,
    tap_means,
    tap_sums,
    transformed,
    transformed_back,
)
from tests.generators.references.winograd import matrices

N, LONG = 16, 2048
ROWS, CHANNELS = norms.STATISTICS_ULPS, norms.TREE_ULPS
SPARSE, SAME = (windows.SlidingWindow((3, 3), (s, s), (1, 1), (1, 1), (1, 1)) for s in (2, 1))
AT_SPARSE, AT_ALL = convolution.sliding(SPARSE), convolution.sliding(SAME)
SMALL, LARGE, FACTORS, LRN = (6, 7), (15, 9), (2.5, 9 / 7), (5, 0.5, 0.75, 2.0)
SCALE, SHIFT, EPSILON, SCALES = 1.75, 0.25, 0.125, (0.3, -2, 1.7, 0.1, 3, -0.7)


def some(random: Any, n: int = N) -> Any:
    return [rows(random, n)]


def roots(random: Any, arrays: int = 1) -> Any:
    """Whose squares are `rows`."""
    return [np.copysign(np.sqrt(abs(x)), x) for x in (rows(random, N) for _ in range(arrays))]


def logarithms(random: Any, n: int = N) -> Any:
    return [np.concatenate([np.log(abs(rows(random, n))), rows(random, n)])]


def numbers(sizes: Any, random: Any) -> Any:
    return [images(random, 2, 4, *sizes)]


def resized_back(alg: str, x: Any) -> Any:
    return resampling.resampled_gradient(x, alg, SMALL, FACTORS)


def spread(alg: str, x: Any) -> Any:
    """What is resampled, by the transposes of its matrices."""
    axes = zip(SMALL, LARGE, FACTORS, strict=True)
    return along(x, *(resampling.resampled(np.eye(n)[None], alg, (made,), (f,))[0][0].T for n, made, f in axes))


def means(includes_padding: bool, x: Any) -> Any:
    mean, count = windows.window_means(x, SPARSE, includes_padding)
    return mean, windows.mean_error(x, mean, count, SPARSE, False)


def reduced(alg: str, x: Any) -> Any:
    values = reduction.reduced(alg, x, (1,))
    return values, reduction.reduced_error(alg, x, (1,), values)


def normed(by_rows: bool, x: Any) -> Any:
    mean, variance = norms.moments(x, (1,))
    factor, size = norms.inverse_deviation(variance, EPSILON), np.abs(x).max(1, keepdims=True)
    result = (x - mean) * factor * SCALE + SHIFT
    if by_rows:
        return result, norms.rows_error(x, x - mean, factor, SCALE, SHIFT)
    return result, norms.channels_error(size, (x - mean) * factor, factor, SCALE, SHIFT, result)


def moments(ulps: float, x: Any) -> Any:
    error = norms.statistics_error(np.abs(x).max(1, keepdims=True), ulps)
    return np.stack(norms.moments(x, (1,))), np.stack(error)


def passed(random: Any, n: int = N) -> Any:
    """What a norm's gradient is given: x, the result's, mean, variance and scale."""
    x, d, scale = rows(random, n), rows(random, n), np.float32(random.uniform(-2, 2, (1, n)))
    return x, d, *map(np.float32, norms.moments(x.astype(np.float64), (1,))), scale


def gradients(x: Any, d: Any, mean: Any, variance: Any, scale: Any) -> Any:
    """Of x, and the sums that are those of the scale."""
    of_x, (terms, error) = norms.normalization_gradient(x, d, (mean, variance), EPSILON, scale, (1,))
    rounding = np.abs(terms).sum(1, keepdims=True) * gamma(norms.sum_roundings(x.shape[1]))
    both = zip(of_x, (terms.sum(1, keepdims=True), rounding + error.sum(1, keepdims=True)), strict=True)
    return [np.concatenate(parts, 1) for parts in both]


def local_response(x: Any) -> Any:
    values = norms.local_response(x, (1,), *LRN)
    return values, norms.local_response_error(values, LRN[0], LRN[2])


def local_response_gradient(x: Any, d: Any) -> Any:
    values, size = norms.local_response_gradient(x, d, (1,), *LRN)
    return values, norms.local_response_error(size, 4 * LRN[0], LRN[2] + 1)


def winograd(m: int) -> Any:
    """Of channels that are lost beside the first."""
    falling = np.float32([1, *[2.0**-12.5] * 63])[:, None, None]
    return (
        lambda r: [images(r, n, 1, k, k) * falling for n, k in ((2, 8), (6, 3))],
        lambda x, w: (convolution.summed(x, w, AT_ALL), gamma(64 + ROUNDINGS) * winograd_size(x, w, SAME, m=m)),
        partial(transformed, m),
    )


CASES: dict[str, Any] = {
    "product": (
        0.9, partial(roots, arrays=2), lambda a, b: (
            products.product(a, b.T), gamma(N) * products.product_size(a, b.T)), lambda a, b: a @ b.T),
    "convolution": (
        0.8, lambda r: [images(r, n, 4, k, k, lost=0, first=(0, 0, k // 3, k // 3)) for n, k in ((2, 8), (6, 3))],
        lambda x, w: (convolution.summed(x, w, AT_SPARSE), gamma(36) * convolution.sums_size(x, w, AT_SPARSE)),
        partial(tap_sums, SPARSE)),
    "weights": (
        0.8, lambda r: [images(r, 2, n, 8, 8, lost=np.s_[:, 0], first=(0, 0, 2, 2)) for n in (4, 6)], lambda x, d: (
            convolution.weights_gradient(x, d, AT_ALL), gamma(128) * convolution.weights_gradient_size(x, d, 9)),
        partial(pixel_sums, SAME)),
    "winograd 2": (0.01, *winograd(2)),
    "winograd 4": (0.001, *winograd(4)),
    "winograd weights": (
        0.0004, lambda r: [images(r, 2, n, 8, 8, lost=np.s_[:, 0], first=(0, 0, 2, 2)) for n in (4, 6)], lambda x, d: (
            convolution.weights_gradient(x, d, AT_ALL), gamma(8 + GRADIENT_ROUNDINGS) * winograd_gradient_size(x, d)),
        partial(transformed_back, 4)),
    "linear": (0.1, partial(numbers, SMALL), lambda x: resampling.resampled(x, "linear", LARGE, FACTORS)),
    "cubic": (0.08, partial(numbers, SMALL), lambda x: resampling.resampled(x, "cubic", LARGE, FACTORS)),
    **{f"{alg} back": (0.04, partial(numbers, LARGE), partial(resized_back, alg), partial(spread, alg))
       for alg in ("nearest", "linear", "cubic")},
    **{f"means {padding}": (0.7, lambda r: [images(r, 2, 4, 8, 8, lost=0, first=(0, 0, 1, 1)) ** 2],
                            partial(means, padding), partial(tap_means, SPARSE, padding)) for padding in (False, True)},
    "softmax": (0.3, logarithms, lambda x: (softmax.softmax(x), softmax.softmax_error(x, 1))),
    "log softmax": (0.3, logarithms, lambda x: (softmax.softmax(x, log=True), softmax.softmax_error(x, 1, log=True))),
    "long softmax": (0.3, partial(logarithms, n=LONG), lambda x: (softmax.softmax(x), softmax.softmax_error(x, 1))),
    "softmax back": (0.07, lambda r: [np.float32(softmax.softmax(np.float64(rows(r, N)))), rows(r, N)],
                     lambda y, d: softmax.softmax_gradient(y, d, 1)),
    "log softmax back": (0.2, lambda r: [np.float32(softmax.softmax(np.float64(rows(r, N)), log=True)), rows(r, N)],
                         lambda y, d: softmax.softmax_gradient(y, d, 1, log=True)),
    "attention": (0.01, lambda r: np.float32(r.uniform(-1, 1, (3, 2, 1, N, N))), lambda q, k, v: (
        softmax.attention(q, k, v, 0.25), softmax.attention_error(q, k))),
    "sum": (0.3, some, partial(reduced, "sum")),
    "mean": (0.3, some, partial(reduced, "mean")),
    "mul": (0.02, lambda r: [np.float32(r.uniform(0.5, 1.5, (6, N)))], partial(reduced, "mul")),
    "norm": (0.15, roots, partial(reduced, "norm_lp_sum")),
    "squares": (0.3, roots, partial(reduced, "norm_lp_power_p_sum")),
    "logsumexp": (0.1, lambda r: [np.log(abs(rows(r, N)))], partial(reduced, "logsumexp")),
    "cumulated": (0.9, some, lambda x: (
        reduction.cumulated("sum", x, 1), reduction.cumulative_error(x, 1, exclusive=False, reverse=False))),
    "weighted": (0.1, lambda r: rows(r, N), lambda *x: (
        elementwise.weighted_sum(x, SCALES), elementwise.weighted_sum_error(x, SCALES))),
    "function": (0.04, some, lambda x: (np.tanh(x), elementwise.rounding_error(np.tanh(x)))),
    "rows' norm": (0.08, some, partial(normed, True)),
    "rows' moments": (0.15, some, partial(moments, ROWS)),
    "channels' norm": (0.06, partial(some, n=64), partial(normed, False)),
    "channels' moments": (0.07, partial(some, n=64), partial(moments, CHANNELS)),
    "norm back": (0.05, passed, gradients),
    "long norm back": (0.01, partial(passed, n=LONG), gradients),
    "lrn": (0.07, roots, local_response),
    "lrn back": (0.05, partial(roots, arrays=2), local_response_gradient),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_errors_in_f32_reach_a_share_of_the_bound_but_not_more(name: str) -> None:
    least, arrays, exact, *steps = CASES[name]
    shares = []
    for seed, order in product(range(4), ORDERS if "long" not in name else [in_chains]):
        given = arrays(np.random.default_rng(seed))
        values, bound = exact(*(x.astype(np.float64) for x in given))
        ordered = [x.view(array_of(order)) for x in given]
        found = steps[0](*ordered) if steps else exact(*ordered)[0]
        assert found.dtype == np.float32 and found.shape == values.shape
        shares.append((np.abs(found - values) / np.maximum(bound, SMALLEST)).max())
    assert least <= max(shares) <= 1


@pytest.mark.parametrize("m", GROWTH)
def test_growth_is_that_of_the_matrices(m: int) -> None:
    results, weights, source = matrices(m)
    growth = (np.abs(results) * np.linalg.norm(weights, axis=1) * np.linalg.norm(source, axis=1)).sum(1).max()
    assert GROWTH[m] - 0.1 < growth <= GROWTH[m]


def test_growth_of_gradients_is_that_of_the_matrices() -> None:
    results, weights, source = matrices(4)
    norms_of_rows = np.linalg.norm(results, axis=0) * np.linalg.norm(source, axis=1)
    growth = (np.abs(weights) * norms_of_rows[:, None]).sum(0).max()
    assert GRADIENT_GROWTH - 0.1 < growth <= GRADIENT_GROWTH
