"""The functions of dnn.ops on bf16, f16 and integers: types of results, values against those of f32, junk."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = pytest.mark.parametrize("kind", [BF16, np.dtype(np.float16)], ids=str)
ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
RANDOM = np.random.default_rng(11)
X, Y = (RANDOM.uniform(-4, 4, (2, 8, 6, 6)).astype(np.float32) for _ in range(2))
CHANNELS, ROW = (RANDOM.integers(32, 64, n).astype(np.float32) / 64 for n in (8, 6))  # which every type has
MOVE: list[Callable[[Any], Any]] = [ops.softmax, lambda x: ops.gather(x, [3, 1], 1), lambda x: ops.pad(x, 2)]
ODD = np.frombuffer(bytes(7), np.uint8)[1:].view(BF16)
OTHER = (np.zeros((2, 1), np.float32), np.zeros((2, 1), np.int64))

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "eltwise": lambda x, y, **more: ops.eltwise(x, "gelu_erf", **more),
    "binary": lambda x, y, **more: ops.binary("mul", x, y[:, :1], **more),
    "select": lambda x, y, **more: ops.select(X > 0, x, y, **more),
    "prelu": lambda x, y, **more: ops.prelu(x, CHANNELS, **more),
    "weighted_sum": lambda x, y, **more: ops.weighted_sum([x, y], [0.5, 2], **more),
    "softmax": lambda x, y, **more: ops.softmax(x, 1, mask=y[:, :, :, :1], **more),
    "log_softmax": lambda x, y, **more: ops.log_softmax(x, **more),
    "layer_norm": lambda x, y, **more: ops.layer_norm(x, ROW.astype(x.dtype), ROW, **more),
    "rms_norm": lambda x, y, **more: ops.rms_norm(x, ROW, **more),
    "batch_norm": lambda x, y, **more: ops.batch_norm(x, CHANNELS.astype(x.dtype), **more),
    "group_norm": lambda x, y, **more: ops.group_norm(x, 2, CHANNELS, **more),
    "lrn": lambda x, y, **more: ops.lrn(x, **more),
    "max_pool": lambda x, y, **more: ops.max_pool(x, 2, return_indices=True, **more)[0],
    "avg_pool": lambda x, y, **more: ops.avg_pool(x, 3, **more),
    "adaptive": lambda x, y, **more: ops.adaptive_avg_pool(x, 2, **more),
    "resize": lambda x, y, **more: ops.resize(x, (9, 7), mode="linear", **more),
    "reduce": lambda x, y, **more: ops.reduce(x, "mean", (2, 3), **more),
    "cumsum": lambda x, y, **more: ops.cumsum(x, **more),
}
MOVES: dict[str, Callable[..., Any]] = {
    "topk": lambda x: ops.topk(x, 2)[0],
    "concat": lambda x: ops.concat([x, x], 1),
    "split": lambda x: ops.split(x, 2, 1)[1],
    "slice": lambda x: ops.slice(x, [0, 7, 0, 1], [1, 0, 4, 5], [1, -2, 1, 2]),
    "empty slice": lambda x: ops.slice(x, [1, 0, 0, 0], [1, 1, 1, 1]),
    "pad": lambda x: ops.pad(x, 1, "edge"),
    "expand": lambda x: ops.expand(x[:1], (3, 8, 6, 6)),
    "gather": lambda x: ops.gather(x, np.array([1, 0]), 1),
    "embedding": lambda x: ops.embedding(x[0, 0], np.array([2, 2])),
    "scatter": lambda x: ops.scatter(x, np.array([1, -1]), x[:, 2:4], 1),
}


@FLOATS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_f32_rounded(isa: str, name: str, kind: Any) -> None:
    """In the type of the first array, or in what `dtype` or `out` says; but for sums in another order."""
    engine, function = dnn.Engine(isa=isa), FUNCTIONS[name]
    x, y = X.astype(kind), Y.astype(kind)
    wanted = function(x.astype(np.float32), y.astype(np.float32), engine=engine)
    result = function(x, y, engine=engine)
    assert result.dtype == kind
    bound = 2.0**-18 * (1 + np.abs(wanted)) + ROUNDOFF[kind.name] * np.abs(wanted)
    assert (np.abs(result.astype(np.float64) - wanted) <= bound).all()
    exact = function(x, y, dtype=dnn.f32, engine=engine)
    assert exact.dtype == np.float32
    np.testing.assert_array_equal(exact.astype(kind), result)
    out = np.zeros(wanted.shape, np.float32)
    assert function(x, y, out=out, engine=engine) is out
    np.testing.assert_array_equal(out, exact)


@pytest.mark.parametrize("kind", [BF16, np.dtype(np.float16), np.dtype(np.int8), np.dtype(np.uint8)], ids=str)
@pytest.mark.parametrize("name", MOVES)
def test_moves_keep_bits(name: str, kind: Any) -> None:
    x = np.abs(X * 20).astype(kind)
    result = MOVES[name](x)
    assert result.dtype == kind
    np.testing.assert_array_equal(result.astype(np.float32), MOVES[name](x.astype(np.float32)))


WORDS: list[tuple[dnn.DataType, list[Any]]] = [
    (dnn.f32, ["f32", "float32", np.float32, np.dtype("<f4")]),
    (dnn.bf16, ["bf16", "bfloat16", ml_dtypes.bfloat16, BF16]),
    (dnn.f16, ["f16", "float16", np.float16]),
    (dnn.u8, ["u8", "uint8", np.uint8]),
    (dnn.s8, ["s8", "int8", np.int8]),
    (dnn.s32, ["s32", "int32", np.int32]),
    (dnn.f8_e4m3, ["f8_e4m3", "float8_e4m3fn", ml_dtypes.float8_e4m3fn]),
]
IMAGE, FILTER = X, X[:, :, :3, :3]
TAKE_A_TYPE: dict[str, Callable[..., Any]] = {
    "eltwise": lambda **more: ops.eltwise(X, "abs", **more),
    "conv2d": lambda **more: ops.conv2d(IMAGE, FILTER, **more),
    "channels last": lambda **more: ops.conv2d(IMAGE, FILTER[:, :6], data_format="NHWC", **more),
    "pooling of channels last": lambda **more: ops.max_pool(IMAGE, 2, data_format="NHWC", **more),
    "matmul": lambda **more: ops.matmul(X, Y, **more),
    "inner_product": lambda **more: ops.inner_product(X, Y, **more),
    "stochastic_rounding": lambda **more: ops.stochastic_rounding(X, seed=3, **more),
}


@pytest.mark.parametrize(("dtype", "words"), WORDS, ids=lambda value: str(value) if type(value) is dnn.DataType else "")
@pytest.mark.parametrize("name", TAKE_A_TYPE)
def test_a_type_by_its_name_and_numpys(name: str, dtype: dnn.DataType, words: list[Any]) -> None:
    function = TAKE_A_TYPE[name]
    try:
        wanted = function(dtype=dtype)
    except dnn.AsmdnnError as error:  # a type that the operation has not, by every name
        assert dtype not in (dnn.f32, dnn.bf16) or name == "stochastic_rounding"
        for word in words:
            with pytest.raises(type(error), match=re.escape(str(error)[:60])):
                function(dtype=word)
        return
    for word in words:
        result = function(dtype=word)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("word", ["u1", "f4", "i4", "<f4", "F32", "", 0, float, int, bool, np.int64, [1], b"f32", "s4"])
def test_what_is_no_type_that_kernels_have(word: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"^dtype must be one of f32, bf16, f16, .* not "):
        ops.eltwise(X, "abs", dtype=word)


def test_out_is_of_a_type_by_its_name() -> None:
    out = np.empty(X.shape, np.float32)
    assert ops.eltwise(X, "abs", dtype="f32", out=out) is out
    with pytest.raises(dnn.InvalidArguments, match="out is of f32, but dtype is bf16: leave one of them out"):
        ops.eltwise(X, "abs", dtype="bf16", out=out)


def test_integers() -> None:
    """Saturated, rounded to nearest even; fractions are f32."""
    x = np.array([[100, -100, 27]], np.int8)
    assert ops.binary("add", x, x).tolist() == [[127, -128, 54]]
    assert ops.eltwise(x, "linear", 0.5).tolist() == [[50, -50, 14]]
    assert ops.reduce(x, "sum").dtype == ops.softmax(x).dtype == ops.log_softmax(x.astype(np.int32)).dtype == np.float32
    assert ops.softmax(x, dtype=dnn.u8).tolist() == [[1, 0, 0]]
    assert ops.max_pool(x[None], 3).dtype == np.int8


WIDE = np.array([[[(1 << 24) + 1, 5], [-1, 0]]], np.int32)
OF_WORDS: dict[str, Callable[[Any], Any]] = {
    "x of eltwise": lambda x: ops.eltwise(x, "relu"),
    "a of binary": lambda x: ops.binary("max", x, 0),
    "b of binary": lambda x: ops.binary("sub", np.zeros_like(x), x),
    "condition of select": lambda x: ops.select(x, x * 0, x * 0),
    "b of comparison to bytes": lambda x: ops.binary("eq", x * 0, x, dtype="u8"),
    "arrays[0] of sum": lambda x: ops.weighted_sum([x, -x]),
    "x of pooling": lambda x: ops.max_pool(x, 1),
    "x of adaptive pooling": lambda x: ops.adaptive_max_pool(x, 2),
    "x of reduction": lambda x: ops.reduce(x, "max", 1, dtype="s32"),
    "x of resize": lambda x: ops.resize(x, (4,)),
}


@pytest.mark.parametrize("name", OF_WORDS)
def test_words_that_f32_has_not_are_refused(name: str) -> None:
    """They would be rounded, and their comparison wrong; smaller ones are exact."""
    label = name.split(" ", maxsplit=1)[0]
    with pytest.raises(dnn.InvalidArguments, match=rf"^{re.escape(label)} holds 16777217, and s32 is computed as f32"):
        OF_WORDS[name](WIDE)
    with pytest.raises(dnn.InvalidArguments, match=rf"^{re.escape(label)} holds -16777217, and s32 is computed as f32"):
        OF_WORDS[name](-WIDE)
    OF_WORDS[name](WIDE - 1)


def test_words_that_become_too_large() -> None:
    x = np.full((2, 3), 1 << 23, np.int32)
    assert np.array_equal(ops.binary("add", x, x), x + x)
    with pytest.raises(dnn.InvalidArguments, match=r"the result holds 25165824, .*: give dtype=f32, which rounds"):
        ops.weighted_sum([x, x, x])
    assert ops.weighted_sum([x, x, x], dtype="f32").tolist() == (3.0 * x).tolist()
    assert np.array_equal(ops.concat([x << 7, x]), np.concatenate([x << 7, x]))  # moves take all numbers


@pytest.mark.parametrize("kind", [np.dtype(np.float32), BF16, np.dtype(np.float16), np.dtype(np.int8)], ids=str)
def test_numbers_of_python_have_no_type(kind: Any) -> None:
    x = np.array([[3, -2, 7]], kind)
    results = ops.binary("sub", x, 2), ops.binary("sub", 2, x), ops.select([[True, False, True]], 5, x)
    for result, wanted in zip(results, ([[1, -4, 5]], [[-1, 4, -5]], [[5, -2, 5]]), strict=True):
        assert result.dtype == kind
        np.testing.assert_array_equal(result.astype(np.float64), wanted)
    assert ops.binary("add", 1, [2, 3.5]).dtype == ops.reduce([1, 2]).dtype == np.float32
    assert ops.binary("mul", x, 0.5, dtype=dnn.f32).tolist() == [[1.5, -1, 3.5]]


def test_words_without_ml_dtypes() -> None:
    """A Memory says what they are; results are words of the same bits."""
    x = X.astype(BF16)
    memory = dnn.Memory.from_array(x.view(np.uint16), dnn.bf16)
    for function in (*MOVE, lambda x: ops.topk(x, 1)[0]):
        result = function(memory)
        assert result.dtype == np.uint16
        np.testing.assert_array_equal(result.view(BF16), function(x))
    square = dnn.Memory.from_array(x[0].view(np.uint16), dnn.bf16)
    np.testing.assert_array_equal(ops.matmul(square, square).view(BF16), ops.matmul(x[0], x[0]))
    assert ops.softmax(X, dtype=dnn.bf16).dtype == BF16  # which this process has
    words = np.zeros(x.shape, np.uint16)
    ops.softmax(memory, out=dnn.Memory.from_array(words, dnn.bf16))
    np.testing.assert_array_equal(words.view(BF16), ops.softmax(x))


def test_one_call_for_each_type() -> None:
    """Equal shapes and strides are not equal calls."""
    x = np.array([[0, 1]], np.float16)
    assert ops.softmax(x).dtype == np.float16
    assert ops.softmax(x.view(BF16)).dtype == BF16
    words = dnn.Memory.from_array(x.view(np.uint16), dnn.bf16)
    assert (ops.softmax(words).dtype, ops.softmax(x.view(BF16)).dtype) == (np.uint16, BF16)


@pytest.mark.parametrize(("call", "says"), [
    (lambda x: ops.softmax(x.view(np.uint16)), "x has dtype uint16, convert it to float32, or pass Memory.from_array"),
    (lambda x: ops.softmax(x.astype(">f2")), "x has dtype >f2, convert it to float32"),
    (lambda x: ops.softmax(x.astype(np.int64)), "x has dtype int64, convert it"),
    (lambda x: ops.softmax(x, dtype=np.float64), "dtype must be one of f32, bf16"),
    (lambda x: ops.softmax(x, dtype=dnn.f16, out=x.copy()), "out is of bf16, but dtype is f16: leave one of them out"),
    (lambda x: ops.softmax(x, out=x.view(np.uint16)), "out has dtype uint16"),
    (lambda x: ops.eltwise(ODD, "relu"), "aligned to the element's 2 bytes"),
    (lambda x: ops.pad(x, 1, out=np.zeros((4, 4), np.float32)), "out is of f32, the result of bf16"),
    (lambda x: ops.topk(x, 1, out=OTHER), "must be an array of bfloat16"),
])  # fmt: skip
def test_junk(call: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        call(np.ones((2, 2), BF16))


def test_what_is_refused() -> None:
    with pytest.raises(dnn.Unimplemented, match="x is s8, only f32, bf16, f16 is implemented"):
        ops.layer_norm(np.ones((2, 3), np.int8))


GRADIENTS: dict[str, Callable[..., Any]] = {
    "softmax": lambda dy, x, **more: ops.softmax_gradient(dy, x, 1, **more),
    "log_softmax": lambda dy, x, **more: ops.log_softmax_gradient(dy, x, **more),
    "lrn": lambda dy, x, **more: ops.lrn_gradient(dy, x, **more),
    "avg_pool": lambda dy, x, **more: ops.avg_pool_gradient(dy, (2, 8, 18, 18), 3, **more),
    "max_pool": lambda dy, x, **more: ops.max_pool_gradient(dy, PLACES, (2, 8, 12, 12), 2, **more),
    "resize": lambda dy, x, **more: ops.resize_gradient(dy, (2, 8, 3, 4), mode="linear", **more),
    "conv input": lambda dy, x, **more: ops.conv_input_gradient(dy, x, (2, 8, 11, 11), **more),
    "conv weights": lambda dy, x, **more: ops.conv_weight_gradient(x, dy, 1, **more)[0],
    "conv bias": lambda dy, x, **more: ops.conv_weight_gradient(x, dy, 1, **more)[1],
    "transposed input": lambda dy, x, **more: ops.conv_transpose_input_gradient(dy, WEIGHTS.astype(dy.dtype), **more),
}
PLACES = ops.max_pool(RANDOM.uniform(-4, 4, (2, 8, 12, 12)).astype(np.float32), 2, return_indices=True)[1]
WEIGHTS = RANDOM.integers(-8, 9, (4, 8, 1, 1)).astype(np.float32) / 8


@FLOATS
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_f32_rounded(isa: str, name: str, kind: Any) -> None:
    """In the type of dy; into f32 that is what `out` is of."""
    engine, function = dnn.Engine(isa=isa), GRADIENTS[name]
    dy, x = Y.astype(kind), X.astype(kind)
    if name == "conv input":
        dy, x = dy[:, :2], np.ascontiguousarray(x[:, :, :, :6]).reshape(2, 8, 6, 6)
    wide = function(dy.astype(np.float32), x.astype(np.float32), engine=engine)
    found = function(dy, x, engine=engine)
    assert found.dtype == kind and found.shape == wide.shape
    error = ROUNDOFF[kind.name] * np.abs(wide) + 1e-5 * np.abs(wide).max()
    assert (np.abs(found.astype(np.float32) - wide) <= error).all()
    if not name.startswith("conv w") and name != "conv bias":
        exact = np.empty(wide.shape, np.float32)
        assert function(dy, x, out=exact, engine=engine) is exact
        assert (np.abs(exact - wide) <= 1e-5 * np.abs(wide).max()).all()


NORM_GRADIENTS: dict[str, Callable[..., Any]] = {
    "layer_norm": lambda dy, x, **more: ops.layer_norm_gradient(dy, x, ROW, **more),
    "rms_norm": lambda dy, x, **more: ops.rms_norm_gradient(dy, x, ROW.astype(x.dtype), **more),
    "group_norm": lambda dy, x, **more: ops.group_norm_gradient(dy, x, 2, CHANNELS, **more),
}


@FLOATS
@pytest.mark.parametrize("name", NORM_GRADIENTS)
def test_gradients_of_norms_are_those_of_f32_rounded(isa: str, name: str, kind: Any) -> None:
    """dx in the type of dy, whatever x has; those of scale and shift are f32."""
    engine, function = dnn.Engine(isa=isa), NORM_GRADIENTS[name]
    dy, x = Y.astype(kind), X.astype(kind)
    wide = function(dy.astype(np.float32), x.astype(np.float32), engine=engine)
    for found in (function(dy, x, engine=engine), function(dy, x.astype(np.float32), engine=engine)):
        assert [array.dtype for array in found] == [kind] + [np.float32] * (len(wide) - 1)
        for theirs, ours in zip(found, wide, strict=True):
            error = ROUNDOFF[kind.name] * (theirs.dtype == kind) * np.abs(ours) + 1e-5 * np.abs(ours).max()
            assert (np.abs(theirs.astype(np.float32) - ours) <= error).all()


def test_gradients_of_other_types() -> None:
    with pytest.raises(dnn.InvalidArguments, match="dy has dtype int8, convert it to float32"):
        ops.avg_pool_gradient(np.zeros((1, 2, 3, 3), np.int8), (1, 2, 6, 6), 2)
    with pytest.raises(dnn.InvalidArguments, match="out is of s8, a gradient is of f32, bf16, f16"):
        ops.avg_pool_gradient(np.zeros((1, 2, 3, 3), np.float32), (1, 2, 6, 6), 2, out=np.zeros((1, 2, 6, 6), np.int8))
