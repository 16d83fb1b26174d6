"""Functions of arrays, element by element: values, broadcasts, places of results, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn


def numbers(*dims: int) -> Any:
    return np.random.default_rng(len(dims)).uniform(-2, 2, dims).astype(np.float32)


def test_eltwise(isa: str) -> None:
    engine, x = dnn.Engine(isa=isa), numbers(3, 5, 9)
    assert np.array_equal(dnn.ops.eltwise(x, "relu", engine=engine), np.maximum(x, 0))
    halved = dnn.ops.eltwise(x, "linear", 0.5, 1.0, post_ops=[dnn.Eltwise("abs")], engine=engine)
    np.testing.assert_allclose(halved, np.abs(0.5 * x + 1), 1e-6, 1e-6)
    out = np.empty_like(x)
    assert dnn.ops.eltwise(x, "square", out=out, engine=engine) is out
    wanted = np.abs(x)
    assert dnn.ops.eltwise(x, "abs", out=x, engine=engine) is x and np.array_equal(x, wanted)
    assert dnn.ops.eltwise(x[:0], "exp", engine=engine).shape == (0, 5, 9)


def test_binary_and_select(isa: str) -> None:
    """Arrays broadcast as numpy's do, also both of them; the first one can be the result."""
    engine, a, b = dnn.Engine(isa=isa), numbers(3, 1, 9), numbers(5, 1)
    for alg, function in (("add", np.add), ("sub", np.subtract), ("max", np.maximum), ("ge", np.greater_equal)):
        assert np.array_equal(dnn.ops.binary(alg, a, b, engine=engine), function(a, b))  # type: ignore[arg-type]
    scale, wide = np.float32(3), numbers(3, 5, 9)
    assert np.array_equal(dnn.ops.binary("mul", wide, scale, engine=engine), wide * scale)
    condition = (a > 0).astype(np.float32)
    assert np.array_equal(dnn.ops.select(condition, wide, b, engine=engine), np.where(a > 0, wide, b))
    wanted = wide + b
    assert dnn.ops.binary("add", wide, b, out=wide, engine=engine) is wide and np.array_equal(wide, wanted)


def test_conditions_of_bools(isa: str) -> None:
    """They broadcast and lie anyhow, as those of numpy.where, and are not those of numbers of the same dims."""
    engine, a, b = dnn.Engine(isa=isa), numbers(5, 7), numbers(1, 7)
    octets, wide = np.zeros(36, np.bool_), np.zeros((5, 14), np.bool_)
    octets[1:], wide[:, ::2] = (a > 0).reshape(-1), a > 0
    for condition in (a > 0, a[:, :1] > 0, a[0] > 0, octets[1:].reshape(5, 7), wide[:, ::2], (a > 0)[::-1]):
        wanted = np.where(condition, a, b)
        for given in (condition, condition.astype(np.float32), condition.astype(np.uint8) * 7):
            assert np.array_equal(dnn.ops.select(given, a, b, engine=engine), wanted)
    with pytest.raises(dnn.InvalidArguments, match="condition has dtype int64, convert it to float32"):
        dnn.ops.select(np.ones((5, 7), np.int64), a, b, engine=engine)


def test_places_of_results(isa: str) -> None:
    """Of functions whose results are int64, or moved."""
    engine, x = dnn.Engine(isa=isa), numbers(4, 7)
    values, indices = np.empty((4, 3), np.float32), np.empty((4, 3), np.int64)
    found = dnn.ops.topk(x, 3, out=(values, indices), engine=engine)
    wanted = dnn.ops.topk(x, 3, engine=engine)
    assert found[0] is values and found[1] is indices
    assert np.array_equal(values, wanted[0]) and np.array_equal(indices, wanted[1])
    place = np.empty(7, np.int64)
    assert dnn.ops.argmax(x, 0, out=place, engine=engine) is place and np.array_equal(place, x.argmax(0))
    assert dnn.ops.argmin(x, 0, out=place, engine=engine) is place and np.array_equal(place, x.argmin(0))
    padded, wide = np.empty((6, 9), np.float32), np.empty((2, 4, 7), np.float32)
    assert dnn.ops.pad(x, 1, out=padded, engine=engine) is padded and np.array_equal(padded, np.pad(x, 1))
    assert dnn.ops.expand(x, (2, 4, 7), out=wide, engine=engine) is wide and np.array_equal(wide[1], x)


def test_bad_input() -> None:
    x = numbers(4, 7)
    for call, says in (
        (lambda: dnn.ops.eltwise(x, "cosh"), "must be one of"),  # type: ignore[arg-type]
        (lambda: dnn.ops.eltwise(x, "exp", out=np.empty(7, np.float32)), "out has dims"),
        (lambda: dnn.ops.binary("add", x, x[:3]), r"must be equal, from the last one on: a \(4, 7\), b \(3, 7\)"),
        (lambda: dnn.ops.eltwise(np.float32(1), "exp", out=x[0, :1]), r"out has dims \(1,\), the result has \(\)"),
        (lambda: dnn.ops.reduce(np.float32(1), axis=1), "axis is 1"),
        (lambda: dnn.ops.topk(x, 2, out=x), "out must be two arrays"),
        (lambda: dnn.ops.topk(x, 7, out=(x, np.empty((4, 7), np.int64))), "shares memory with x"),
        (lambda: dnn.ops.argmax(x, out=np.empty(4, np.int32)), "out must be an array of int64"),
        (lambda: dnn.ops.argmax(x, out=np.empty(5, np.int64)), "must be a dense array of dims"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            call()


@pytest.mark.parametrize("of", [np.float32, np.float16, float, lambda x: np.array(x, np.float32)])
def test_an_array_without_dims(of: Any) -> None:
    """As numpy's functions take it; small integers, so that all types are exact."""
    x, ops, slope = of(-3), dnn.ops, np.float32(0.5)
    for found, wanted in (
        (ops.eltwise(x, "abs"), 3), (ops.binary("add", x, x), -6), (ops.binary("mul", x, 2), -6),
        (ops.select(np.bool_(True), x, x), -3), (ops.prelu(x, slope), -1.5), (ops.cumsum(x), -3),
        (ops.softmax(x), 1), (ops.softmax(x, mask=of(0)), 1), (ops.log_softmax(x), 0), (ops.reduce(x), -3),
        (ops.reduce(x, "norm_lp_sum", -1, keepdims=True), 3), (ops.eltwise(x, "abs", post_ops=["relu"]), 3),
    ):  # fmt: skip
        assert found.shape == () and found.dtype == getattr(x, "dtype", np.float32) and found == wanted
    out = np.zeros((), np.float32)
    assert ops.eltwise(np.float32(-3), "abs", out=out) is out and out == 3
    assert ops.reduce(np.float32(-4), out=out) is out and out == -4
