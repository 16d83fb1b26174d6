"""The reference against plain loops, the tolerance against f32 arithmetic, and the judge against planted errors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

import asmdnn as dnn
from asmdnn.bench.judge import Answer, judge
from asmdnn.bench.post_ops import attr_of, chain
from asmdnn.bench.problems import ConvProblem, parse_problem
from asmdnn.bench.reference import ConvData, make_data, numpy_answer
from asmdnn.bench.winograd import size_of_sums

PLAIN, SUM = dnn.Attr(), dnn.Attr([dnn.Sum()])


def loops(problem: ConvProblem, data: ConvData, post_ops: tuple[str, ...]) -> np.ndarray:
    """The definition, element by element."""
    h, w = problem.axes
    result = np.empty(problem.dst_dims)
    for n, o, y, x in np.ndindex(*problem.dst_dims):
        total = 0.0 if data.bias is None else float(data.bias[o])
        for c, r, s in np.ndindex(problem.ic, h.k, w.k):
            iy, ix = y * h.s - h.p + r * (h.d + 1), x * w.s - w.p + s * (w.d + 1)
            if 0 <= iy < h.i and 0 <= ix < w.i:
                total += float(data.src[n, c, iy, ix]) * float(data.weights[o, c, r, s])
        for op in post_ops:
            total = total + float(data.dst[n, o, y, x]) if op == "sum" else max(total, 0.0)
        result[n, o, y, x] = total
    return result


@pytest.mark.parametrize("post_ops", [(), ("sum",), ("relu",), ("sum", "relu"), ("relu", "sum")], ids="+".join)
@pytest.mark.parametrize(
    "text",
    ["mb2ic3ih5oc4kh3ph1", "mb1ic2ih7iw6oc3oh4ow2kh3kw2sh2sw3ph2pw0dw1", "mb1ic1ih1oc1kh1", "mb1ic2ih3oc2oh5kh3ph3"],
)
def test_numpy_answer_is_the_definition(text: str, post_ops: tuple[str, ...]) -> None:
    problem = parse_problem(text)
    for exact in (True, False):
        attr = attr_of(chain("+".join(post_ops)), problem.dst_dims)
        data = make_data(problem, has_bias=True, attr=attr, exact=exact)
        answer = numpy_answer(problem, data, attr)
        np.testing.assert_allclose(answer.values, loops(problem, data, post_ops), rtol=0, atol=1e-12)


def test_numpy_answer_agrees_with_scipy() -> None:
    problem = parse_problem("mb1ic1ih40iw31oc1kh5kw4")
    data = make_data(problem, has_bias=False, attr=PLAIN, exact=False)
    expected = signal.correlate2d(data.src[0, 0].astype(float), data.weights[0, 0].astype(float), "valid")
    np.testing.assert_allclose(numpy_answer(problem, data, PLAIN).values[0, 0], expected, atol=1e-12)


@pytest.mark.parametrize("order", ["forward", "backward", "pairwise"])
def test_tolerance_bounds_f32_sums_in_any_order(order: str) -> None:
    problem = parse_problem("mb2ic300ih2oc16kh2")
    data = make_data(problem, has_bias=True, attr=SUM, exact=False)
    answer = numpy_answer(problem, data, SUM)
    products = (data.src.reshape(2, 1, -1) * data.weights.reshape(1, 16, -1)).astype(np.float32)
    if order == "backward":
        products = products[..., ::-1]
    total = products.sum(-1) if order == "pairwise" else np.cumsum(products, axis=-1, dtype=np.float32)[..., -1]
    assert data.bias is not None
    result = ((total + data.bias)[..., None, None] + data.dst).astype(np.float32)
    verdict = judge(result, answer, exact=False)
    assert not verdict.reason
    assert 0 < verdict.ratio < 1
    assert np.max(np.abs(answer.tolerance) / np.abs(answer.values).max()) < 1e-2  # a bound that says something


@pytest.mark.parametrize("text", ["mb1ic1ih9oc3kh1", "mb1ic64ih9oc8kh3", "mb1ic2048ih3oc8kh3", "mb1ic400000ih3oc2kh3"])
def test_exact_data_stays_exact_in_f32(text: str) -> None:
    problem = parse_problem(text)
    data = make_data(problem, has_bias=True, attr=SUM, exact=True)
    assert data.bias is not None
    arrays = (data.src, data.weights, data.bias, data.dst)
    assert all(np.array_equal(array, np.rint(array)) and array.any() for array in arrays)
    src, weights, bias, dst = (float(np.abs(array).max()) for array in arrays)
    assert problem.reduction * src * weights + bias + dst <= 2**24


def test_exact_data_shows_lower_precision() -> None:
    problem = parse_problem("mb1ic512ih7oc16kh3ph1")
    data = make_data(problem, has_bias=False, attr=PLAIN, exact=True)
    answer = numpy_answer(problem, data, PLAIN)
    rounded = (data.weights.view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)  # to bf16
    result = numpy_answer(problem, replace(data, weights=rounded), PLAIN).values.astype(np.float32)
    assert judge(result, answer, exact=True).reason


def test_dst_is_poisoned_unless_it_is_read() -> None:
    problem = parse_problem("mb1ic2ih3oc2kh3")
    assert np.isnan(make_data(problem, False, dnn.Attr([dnn.Eltwise("relu")]), True).dst).all()
    assert not np.isnan(make_data(problem, False, SUM, True).dst).any()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("error", [1.0, np.nan, np.inf, -np.inf])
def test_judge_finds_one_wrong_element(exact: bool, error: float) -> None:
    values = np.arange(24.0).reshape(1, 2, 3, 4)
    answer = Answer(values, 0.0 if exact else np.full(values.shape, 0.5), "numpy")
    result = values.astype(np.float32)
    assert judge(result, answer, exact).reason == ""
    result[0, 1, 0, 2] += np.float32(error)
    reason = judge(result, answer, exact).reason
    assert "1 of 24 elements are wrong, the first at (0, 1, 0, 2)" in reason
    assert "instead of 14 (numpy)" in reason


def test_the_bound_of_winograd_in_groups_is_that_of_each_group() -> None:
    groups, each = parse_problem("g3mb2ic12ih9iw7oc18kh3kw3ph1pw1"), parse_problem("mb2ic4ih9iw7oc6kh3kw3ph1pw1")
    random = np.random.default_rng(5)
    src, filters = random.standard_normal(groups.src_dims).astype(np.float32), random.random(groups.oc)
    parts = [
        size_of_sums(each, np.ascontiguousarray(src[:, 4 * g : 4 * g + 4]), filters[6 * g : 6 * g + 6])
        for g in range(3)
    ]
    np.testing.assert_allclose(size_of_sums(groups, src, filters), np.concatenate(parts, axis=1), rtol=1e-12)
