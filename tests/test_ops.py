"""`asmdnn.ops.conv2d`: argument forms, arrays of every kind, what it keeps, and what it refuses."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.ops.calls import calls
from asmdnn.primitives.core.implementation import plans
from asmdnn.runtime.kernels import kernel_cache
from tests.primitives.conv_case import ConvCase, case_of
from tests.primitives.conv_reference import Data, expected, make_data, tolerance
from tests.primitives.tensors import assert_within
from tests.support.exporters import SpeaksArrayInterface, SpeaksDlpack

pytestmark = pytest.mark.usefixtures("isa")  # at each level, under a cap

RELU = [dnn.Eltwise("relu")]
CASE = case_of("mb2ic3ih9iw8oc16oh9ow8kh3kw3ph1pw1 nchw nchw bias relu")


@pytest.fixture
def data() -> Data:
    return make_data(CASE, integers=True)


# Results


@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ("oh7ow6kh3kw3ph0pw0", {}),
        ("oh9ow8kh3kw3ph1pw1", {"padding": 1}),
        ("oh9ow8kh3kw3ph1pw1", {"padding": (1, 1)}),
        ("oh9ow8kh3kw3ph1pw1", {"padding": [1, 1, 1, 1]}),
        ("oh7ow10kh3kw3ph0pw2", {"padding": (0, 2)}),
        ("oh10ow8kh3kw3ph2pw0", {"padding": (2, 0, 1, 2)}),
        ("oh4ow3kh3kw3sh2sw2ph0pw0", {"stride": 2}),
        ("oh5ow3kh3kw3sh2sw3ph1pw1", {"stride": (2, 3), "padding": 1}),
        ("oh7ow2kh3kw3sh1sw3ph0pw0", {"stride": [1, 3]}),
        ("oh5ow4kh3kw3ph0pw0dh1dw1", {"dilation": 2}),
        ("oh9ow2kh3kw3ph1pw0dh0dw2", {"dilation": (1, 3), "padding": (1, 0)}),
        ("oh9ow8kh1kw1ph0pw0", {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("bias", ["bias", "-"])
def test_forms_of_the_arguments(sizes: str, options: dict[str, Any], bias: str) -> None:
    case = case_of(f"mb2ic3ih9iw8oc16{sizes} nchw nchw {bias} -")
    data = make_data(case, integers=True)
    result = ops.conv2d(data.src, data.weights, data.bias, **options)
    assert (result.dtype, result.flags.c_contiguous, result.flags.writeable) == (np.float32, True, True)
    assert_within(result, expected(case, data), 0.0)


@pytest.mark.parametrize("chain", ["relu", "relu:0.25", "sum", "sum:0.5+relu", "relu+sum"])
def test_post_ops(chain: str) -> None:
    case = case_of(f"mb2ic20ih9iw8oc16oh9ow8kh3kw3ph1pw1 nchw nchw bias {chain}")
    data = make_data(case, integers=False)
    out = None if data.old is None else data.old.copy()
    result = ops.conv2d(data.src, data.weights, data.bias, padding=1, post_ops=case.attr().post_ops, out=out)
    assert out is None or result is out
    assert_within(result, expected(case, data), tolerance(case, data))


def test_out_is_overwritten_and_returned(data: Data) -> None:
    out = np.full((2, 16, 9, 8), np.nan, np.float32)
    assert ops.conv2d(data.src, data.weights, data.bias, padding=1, post_ops=RELU, out=out) is out
    assert_within(out, expected(CASE, data), 0.0)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 2, 3), (1, 0, 3, 2)])
def test_images_and_results_lie_anyhow(isa: str, data: Data, order: tuple[int, ...]) -> None:
    """Parts of larger arrays in any order of dims; nothing beside the result is written."""
    back = np.argsort(order)
    large = np.full([n + 2 for n in np.array(data.src.shape)[list(order)]], np.nan, np.float32)
    x = large[1:-1, 1:-1, 1:-1, 1:-1].transpose(back)
    x[...] = data.src
    engine = dnn.Engine(isa=isa)
    wanted = ops.conv2d(data.src, data.weights, data.bias, engine=engine)
    around = np.full([n + 2 for n in np.array(wanted.shape)[list(order)]], 7, np.float32)
    out = around[1:-1, 1:-1, 1:-1, 1:-1].transpose(back)
    assert ops.conv2d(x, data.weights, data.bias, out=out, engine=engine) is out
    np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-5 * abs(wanted).max())
    out[...] = 7
    assert (around == 7).all()


def test_arguments_stay_as_they_were(data: Data) -> None:
    before = [data.src.copy(), data.weights.copy()]
    ops.conv2d(data.src, data.weights)
    assert np.array_equal(data.src, before[0])
    assert np.array_equal(data.weights, before[1])


def test_engine_and_threads(isa: str, data: Data) -> None:
    for threads in (1, 2):
        engine = dnn.Engine(isa=isa, threads=threads)
        result = ops.conv2d(data.src, data.weights, data.bias, padding=1, post_ops=RELU, engine=engine)
        assert_within(result, expected(CASE, data), 0.0)


# Arrays


def strided(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values with the first dim innermost."""
    return np.asfortranarray(array)


def every_second(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), np.float32)
    wide[..., ::2] = array
    return wide[..., ::2]


def backwards(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array[..., ::-1].copy()[..., ::-1]


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize(
    "kind",
    [strided, every_second, backwards, read_only, SpeaksDlpack, SpeaksArrayInterface, memoryview, np.ndarray.tolist],
)
def test_arrays_of_other_kinds(data: Data, kind: Any) -> None:
    result = ops.conv2d(kind(data.src), kind(data.weights), kind(data.bias), padding=1, post_ops=RELU)
    assert_within(result, expected(CASE, data), 0.0)


class ElsewhereDlpack(SpeaksDlpack):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("cannot be exported to a CPU")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # kDLCUDA


@pytest.mark.parametrize("name", ["x", "weights", "bias"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda array: array.astype(np.float64), "has dtype float64, convert it to float32"),
        (lambda array: array.astype(np.int32), "has dtype int32"),
        (lambda array: array.astype(">f4"), "has dtype >f4"),
        (lambda array: array[None], r"has \d dims, \d are needed"),
        (lambda array: [[1.0], [1.0, 2.0]], ""),
        (lambda array: (array.astype(float) * 1e200).tolist(), "too large for f32"),
        (lambda array: [["1"]], "has dtype <U1, it must have numbers"),
        (lambda array: "text", "is the text 'text', where an array is wanted"),
        (lambda array: object(), "is <object object at .*, where an array must be"),
        (ElsewhereDlpack, ""),
        (lambda array: np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(np.float32).reshape(array.shape),
         "aligned"),
    ],
    ids=["float64", "int32", "big-endian", "rank", "ragged", "large", "texts", "str", "object", "device", "unaligned"],
)  # fmt: skip
def test_arrays_that_are_refused(data: Data, name: str, change: Any, message: str) -> None:
    arguments = {"x": data.src, "weights": data.weights, "bias": data.bias}
    arguments[name] = change(arguments[name])
    with pytest.raises(dnn.InvalidArguments, match=rf"^{name}\b.*{message}"):
        ops.conv2d(**arguments)


def test_x_and_weights_are_needed(data: Data) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"^x is None, where an array must be$"):
        ops.conv2d(None, data.weights)
    with pytest.raises(dnn.InvalidArguments, match=r"^weights is None, where an array must be$"):
        ops.conv2d(data.src, None)


OUT_DIMS = (2, 16, 7, 6)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty(OUT_DIMS, np.float64), "^out must be an array of float32, not of float64"),
        (np.empty((2, 16, 7, 7), np.float32), r"^out has dims \(2, 16, 7, 7\), the result has \(2, 16, 7, 6\)"),
        (np.empty((2, 16 * 42), np.float32), "^out has dims"),
        (np.empty(OUT_DIMS, np.float32)[..., ::-1], "^out has a stride of -4 bytes in dim 3"),
        (np.broadcast_to(np.empty((1, 16, 7, 6), np.float32), OUT_DIMS), "^out has strides .* elements share memory"),
        ([[0.0]], "^out must be"),
        (read_only(np.empty(OUT_DIMS, np.float32)), "read-only"),
    ],
    ids=["float64", "shape", "rank", "backwards", "shared", "list", "read-only"],
)
def test_outputs_that_are_refused(data: Data, out: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        ops.conv2d(data.src, data.weights, out=out)


def test_out_may_not_be_an_input() -> None:
    x = np.zeros((1, 8, 5, 5), np.float32)
    with pytest.raises(dnn.InvalidArguments, match="overlaps"):
        ops.conv2d(x, np.zeros((8, 8, 1, 1), np.float32), out=x)


def test_sum_needs_out(data: Data) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"^out must be given, post-op Sum adds what it holds"):
        ops.conv2d(data.src, data.weights, post_ops=[dnn.Sum()])


# Numbers


@pytest.mark.parametrize("name", ["stride", "padding", "dilation"])
@pytest.mark.parametrize(
    "value",
    [-1, 1.0, True, "1", "11", None, (), (1, 1, 1), (1, 1, 1, 1, 1), (1, "1"), (1.0, 1), {1, 2}, (1, -1)],
    ids=repr,
)
def test_numbers_that_are_refused(data: Data, name: str, value: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match=f"^{name} must be"):
        ops.conv2d(data.src, data.weights, **{name: value})


@pytest.mark.parametrize("name", ["stride", "dilation"])
@pytest.mark.parametrize("value", [0, (1, 0), (1, 1, 1, 1)], ids=repr)
def test_steps_are_positive(data: Data, name: str, value: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match=f"^{name} must be one or two integers of at least 1"):
        ops.conv2d(data.src, data.weights, **{name: value})


def test_numpy_integers(data: Data) -> None:
    step: Sequence[Any] = (np.int64(2), np.int32(1))
    result = ops.conv2d(data.src, data.weights, stride=step, padding=np.int64(1))  # type: ignore[arg-type]
    assert np.array_equal(result, ops.conv2d(data.src, data.weights, stride=(2, 1), padding=1))


@pytest.mark.parametrize(
    ("x", "w", "b", "options", "message"),
    [
        ((2, 3, 9, 8), (16, 4, 3, 3), None, {}, "x has 3 channels, weights are for 4"),
        ((2, 3, 9, 8), (16, 3, 3, 3), 15, {}, "^b.* 15 .* 16"),
        ((2, 3, 9, 8), (16, 3, 3, 3), 17, {}, "^b.* 17 .* 16"),
        ((2, 3, 2, 8), (16, 3, 3, 3), None, {}, "weights of 3x3 exceed the padded x of 2x8"),
        ((2, 3, 9, 8), (16, 3, 3, 3), None, {"dilation": 5}, "which reach over 11x11 exceed the padded x of 9x8"),
        ((2, 3, 9, 8), (16, 3, 3, 3), None, {"stride": 2**40}, "^strides? must be"),
        ((2, 3, 9, 8), (16, 3, 3, 3), None, {"padding": 2**70}, "^padding(_l)? must be"),
        ((2, 0, 9, 8), (16, 0, 3, 3), None, {}, "empty dim"),
        ((2, 3, 9, 8), (0, 3, 3, 3), None, {}, "empty dim"),
        ((2, 3, 9, 8), (16, 3, 0, 3), None, {}, "empty dim"),
        ((2, 3, 9, 8), (16, 3, 3, 3), None, {"post_ops": [b"relu"]}, r"post_ops\[0\] must be a Sum, Eltwise"),
        ((2, 3, 9, 8), (16, 3, 3, 3), None, {"engine": "cpu"}, "engine must be an Engine, not str"),
    ],
)
def test_shapes_that_do_not_fit(
    x: tuple[int, ...], w: tuple[int, ...], b: int | None, options: dict[str, Any], message: str
) -> None:
    bias = None if b is None else np.zeros(b, np.float32)
    with pytest.raises(dnn.InvalidArguments, match=message):
        ops.conv2d(np.zeros(x, np.float32), np.zeros(w, np.float32), bias, **options)


def test_an_isa_that_cannot_run(data: Data) -> None:
    engine = dnn.Engine(isa="avx512_core")
    with dnn.max_cpu_isa("avx2"), pytest.raises(dnn.Unimplemented, match=r"avx512_core cannot be .* here.*, use avx2"):
        ops.conv2d(data.src, data.weights, engine=engine)


# The primitives that it keeps


def test_a_shape_is_planned_once(data: Data) -> None:
    calls.clear()
    for _ in range(3):
        ops.conv2d(data.src, data.weights, data.bias, padding=1)
    assert len(calls.entries) == 1
    planned = list(plans.entries.values())
    ops.conv2d(data.src, data.weights, data.bias, padding=(1, 1, 1, 1))
    ops.conv2d(data.src, strided(data.weights), data.bias, padding=(1, 1), stride=(1, 1))
    assert len(calls.entries) == 3, "as many as there are ways to say it"
    assert list(plans.entries.values()) == planned
    generated = kernel_cache().counts.generated
    ops.conv2d(data.src, data.weights, data.bias, padding=1)
    assert kernel_cache().counts.generated == generated


def test_what_differs_has_a_call_of_its_own(data: Data) -> None:
    calls.clear()
    options: list[dict[str, Any]] = [
        {"bias": None}, {"bias": data.bias}, {"bias": data.bias, "padding": 1}, {"bias": data.bias, "stride": 2},
        {"bias": data.bias, "dilation": 2}, {"bias": data.bias, "post_ops": RELU},
        {"bias": data.bias, "post_ops": [dnn.Eltwise("relu", 0.5)]},
        {"bias": data.bias, "engine": dnn.Engine(threads=1)}, {"bias": data.bias, "engine": dnn.Engine(threads=2)},
    ]  # fmt: skip
    for _ in range(2):
        for each in options:
            ops.conv2d(data.src, data.weights, **each)
    assert len(calls.entries) == len(options)


def test_a_mistake_is_not_kept(data: Data) -> None:
    for _ in range(2):
        entries = len(calls.entries)
        with pytest.raises(dnn.InvalidArguments):
            ops.conv2d(data.src[:, :2], data.weights)
        assert len(calls.entries) == entries


def test_from_many_threads() -> None:
    cases: list[ConvCase] = [
        case_of(f"mb1ic{ic}ih9oc{oc}oh9kh3ph1 nchw nchw bias relu") for ic, oc in ((3, 16), (20, 9), (3, 16), (8, 8))
    ]

    def work(number: int) -> None:
        case = cases[number]
        for seed in range(10):
            data = make_data(case, integers=True, seed=10 * number + seed)
            result = ops.conv2d(data.src, data.weights, data.bias, padding=1, post_ops=RELU)
            assert_within(result, expected(case, data), 0.0)

    with ThreadPoolExecutor(len(cases)) as pool:
        list(pool.map(work, range(len(cases)), timeout=120))
