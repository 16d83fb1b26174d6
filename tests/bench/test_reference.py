"""Answers to convolutions against plain loops, tolerances against f32 arithmetic, the judge against planted errors."""

from typing import Any

import numpy as np
import pytest
from scipy import signal

import asmdnn as dnn
from asmdnn.bench.conv_work import ConvWork
from asmdnn.bench.driver import TensorData
from asmdnn.bench.judge import Answer, judge
from asmdnn.bench.problems import parse_problem
from asmdnn.bench.taps import window_of
from asmdnn.bench.typed import answer
from asmdnn.definitions.winograd import winograd_size
from tests.support.cases import read


def work(text: str, post_ops: str = "", direction: str = "FWD_B") -> ConvWork:
    (case,) = read(f"--conv --dir={direction} --attr-post-ops={post_ops} {text}")
    made = case.driver.work(case)
    assert isinstance(made, ConvWork)
    return made


def loops(made: ConvWork, arrays: Any, post_ops: tuple[str, ...]) -> np.ndarray:
    """The definition, element by element."""
    problem = made.problem
    h, w = problem.axes
    result = np.empty(problem.dst_dims)
    for n, o, y, x in np.ndindex(*problem.dst_dims):
        total = float(arrays["bias"][o])
        for c, r, s in np.ndindex(problem.ic, h.k, w.k):
            iy, ix = y * h.s - h.p + r * (h.d + 1), x * w.s - w.p + s * (w.d + 1)
            if 0 <= iy < h.i and 0 <= ix < w.i:
                total += float(arrays["src"][n, c, iy, ix]) * float(arrays["weights"][o, c, r, s])
        for op in post_ops:
            total = total + float(arrays["dst"][n, o, y, x]) if op == "sum" else max(total, 0.0)
        result[n, o, y, x] = total
    return result


@pytest.mark.parametrize("post_ops", [(), ("sum",), ("relu",), ("sum", "relu"), ("relu", "sum")], ids="+".join)
@pytest.mark.parametrize(
    "text",
    ["mb2ic3ih5oc4kh3ph1", "mb1ic2ih7iw6oc3oh4ow2kh3kw2sh2sw3ph2pw0dw1", "mb1ic1ih1oc1kh1", "mb1ic2ih3oc2oh5kh3ph3"],
)
def test_answers_are_the_definition(text: str, post_ops: tuple[str, ...]) -> None:
    made = work(text, "+".join(post_ops))
    for exact in (True, False):
        data = made.data(exact)
        np.testing.assert_allclose(made.answer(data).values, loops(made, data.arrays, post_ops), rtol=0, atol=1e-12)


def test_answers_agree_with_scipy() -> None:
    made = work("mb1ic1ih40iw31oc1kh5kw4", direction="FWD_D")
    data = made.data(exact=False)
    src, weights = (data.arrays[name][0, 0].astype(float) for name in ("src", "weights"))
    expected = signal.correlate2d(src, weights, "valid")
    np.testing.assert_allclose(made.answer(data).values[0, 0], expected, atol=1e-12)


@pytest.mark.parametrize("order", ["forward", "backward", "pairwise"])
def test_tolerance_bounds_f32_sums_in_any_order(order: str) -> None:
    made = work("mb2ic300ih2oc16kh2", "sum")
    data = made.data(exact=False)
    answer, x = made.answer(data), data.arrays
    products = (x["src"].reshape(2, 1, -1) * x["weights"].reshape(1, 16, -1)).astype(np.float32)
    if order == "backward":
        products = products[..., ::-1]
    total = products.sum(-1) if order == "pairwise" else np.cumsum(products, axis=-1, dtype=np.float32)[..., -1]
    result = ((total + x["bias"])[..., None, None] + x["dst"]).astype(np.float32)
    verdict = judge(result, answer, exact=False)
    assert not verdict.reason
    assert 0 < verdict.ratio < 1
    assert np.max(np.abs(answer.tolerance) / np.abs(answer.values).max()) < 1e-2  # a bound that says something
    assert not judge(result, Answer(answer.values, made.tolerance(data), "numpy"), exact=False).reason


@pytest.mark.parametrize("text", ["mb1ic1ih9oc3kh1", "mb1ic64ih9oc8kh3", "mb1ic2048ih3oc8kh3", "mb1ic400000ih3oc2kh3"])
def test_exact_data_stays_exact_in_f32(text: str) -> None:
    made = work(text, "sum")
    arrays = [made.data(exact=True).arrays[name] for name in ("src", "weights", "bias", "dst")]
    assert all(np.array_equal(array, np.rint(array)) and array.any() for array in arrays)
    src, weights, bias, dst = (float(np.abs(array).max()) for array in arrays)
    assert made.problem.reduction * src * weights + bias + dst <= 2**24


def test_exact_data_shows_lower_precision() -> None:
    made = work("mb1ic512ih7oc16kh3ph1", direction="FWD_D")
    data = made.data(exact=True)
    weights = data.arrays["weights"]
    rounded = (weights.view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)  # to bf16
    result = made.answer(TensorData({**data.arrays, "weights": rounded}, True)).values.astype(np.float32)
    assert judge(result, made.answer(data), exact=True).reason


def test_dst_is_poisoned_unless_it_is_read() -> None:
    assert np.isnan(work("mb1ic2ih3oc2kh3", "relu").data(True).arrays["dst"]).all()
    assert not np.isnan(work("mb1ic2ih3oc2kh3", "sum").data(True).arrays["dst"]).any()


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
    src = random.standard_normal(groups.src_dims).astype(np.float32)
    weights = random.standard_normal(groups.filter_dims)
    parts = [
        winograd_size(np.ascontiguousarray(src[:, 4 * g : 4 * g + 4]), weights[6 * g : 6 * g + 6], window_of(each))
        for g in range(3)
    ]
    whole = winograd_size(src, weights, window_of(groups), groups.groups)
    np.testing.assert_allclose(whole, np.concatenate(parts, axis=1), rtol=1e-12)


def test_a_zero_point_of_dst_is_added_in_f32() -> None:
    sums, error = np.random.default_rng(4).uniform(-1, 1, 200).astype(np.float32), np.full(200, 1e-9)
    found = answer(dnn.Attr(), sums.astype(np.float64), error, {}, dnn.f32, zero_point=5)
    assert judge(sums + np.float32(5), found, exact=False).reason == ""
    assert not np.any(answer(dnn.Attr(), np.float64(sums), 0 * error, {}, dnn.f32, zero_point=5).tolerance)
