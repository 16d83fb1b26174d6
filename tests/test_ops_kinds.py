"""Array calls give back the kind of array that came: of torch, jax, array_api_strict, or of a library of this file."""

import inspect
import pickle
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.support.drawing import RANDOM

pytestmark = pytest.mark.isa("avx2")


class Tensor:
    """An array of a library that knows the array API's way in and out, and nothing of numpy."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda given: Tensor(np.from_dlpack(given)))


class Nameless:
    """Exports memory; its library has no way in."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def own(_: None) -> tuple[type, Callable[[Any], Any], Callable[[Any], Any]]:
    return Tensor, Tensor, lambda given: np.asarray(given.array)


def of(name: str, kind: Callable[[Any], type], give: Callable[[Any, Any], Any]) -> Any:
    def made(_: None) -> tuple[type, Callable[[Any], Any], Callable[[Any], Any]]:
        module = pytest.importorskip(name, reason=f"array calls were not tried with {name}")
        return kind(module), partial(give, module), np.from_dlpack

    return made


LIBRARIES = {
    "own": own,
    "torch": of("torch", lambda torch: torch.Tensor, lambda torch, x: torch.from_numpy(x)),
    "array_api_strict": of("array_api_strict", lambda xp: type(xp.asarray(0)), lambda xp, x: xp.asarray(x)),
    "jax": of("jax", lambda jax: jax.Array, lambda jax, x: jax.numpy.asarray(x)),
}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    return LIBRARIES[request.param](None)


def f32(*dims: int) -> np.ndarray:
    return RANDOM.integers(-3, 4, dims).astype(np.float32)


X, W, DY, PLANE = f32(2, 8, 6, 6), f32(8, 8, 3, 3), f32(2, 8, 4, 4), f32(4, 6)
ROWS = np.arange(4, dtype=np.int32) % 3
IMAGE, WINDOWS = X.shape, f32(2, 8, 3, 3)
CELL = {"weights_layer": f32(1, 1, 6, 4, 5), "weights_iter": f32(1, 1, 5, 4, 5)}
GATES = {
    name: {field: np.ascontiguousarray(w[:, :, :, :n]) for field, w in CELL.items()}
    for name, n in (("gru", 3), ("rnn", 1))
}


def gradient_of_maxima(dy: Any, x: Any) -> Any:
    return ops.max_pool_gradient(dy, ops.max_pool(x, 2, return_indices=True)[1], IMAGE, 2)


SOME = np.array([[0, 2], [1, 0], [5, 3], [2, 4]])
FEW = X[..., :2, :2].copy()
MASK = (PLANE > 0).astype(np.uint8)
CELLS = np.arange(2 * 8 * 2 * 2).reshape(2, 8, 2, 2) % 36

# Of each operation the arrays that it takes, and a call of them.
CALLS: dict[str, tuple[tuple[np.ndarray, ...], Callable[..., Any]]] = {
    "adaptive_avg_pool_gradient": ((FEW,), lambda dy: ops.adaptive_avg_pool_gradient(dy, (2, 8, 5, 5))),
    "adaptive_max_pool_gradient": ((FEW, CELLS), lambda dy, at: ops.adaptive_max_pool_gradient(dy, at, IMAGE)),
    "batch_norm_gradient": ((X, X), ops.batch_norm_gradient),
    "binary_gradient": ((PLANE, PLANE), lambda dy, a: ops.binary_gradient("mul", dy, a, a)),
    "concat_gradient": ((PLANE,), lambda dy: ops.concat_gradient(dy, [1, 3])),
    "cumsum_gradient": ((PLANE,), ops.cumsum_gradient),
    "dropout_gradient": ((PLANE, MASK), ops.dropout_gradient),
    "eltwise_gradient": ((PLANE, PLANE), lambda dy, x: ops.eltwise_gradient(dy, x, "tanh")),
    "embedding_gradient": ((PLANE, ROWS), lambda dy, rows: ops.embedding_gradient(dy, rows, 3)),
    "expand_gradient": ((PLANE,), lambda dy: ops.expand_gradient(dy, (1, 6))),
    "gather_gradient": ((PLANE, ROWS), lambda dy, rows: ops.gather_gradient(dy, rows, (3, 6))),
    "inner_product_input_gradient": ((PLANE, f32(6, 5)), ops.inner_product_input_gradient),
    "inner_product_weight_gradient": ((PLANE, PLANE), ops.inner_product_weight_gradient),
    "matmul_gradient": ((PLANE, f32(4, 3), f32(3, 6)), ops.matmul_gradient),
    "pad_gradient": ((PLANE,), lambda dy: ops.pad_gradient(dy, 1, "edge")),
    "prelu_gradient": ((PLANE, PLANE, PLANE[0].copy()), ops.prelu_gradient),
    "reduce_gradient": ((PLANE[:, 0].copy(), PLANE), lambda dy, x: ops.reduce_gradient(dy, x, "max", 1)),
    "scatter_gradient": ((PLANE, ROWS), ops.scatter_gradient),
    "select_gradient": ((PLANE, PLANE > 0, PLANE, PLANE), ops.select_gradient),
    "slice_gradient": ((PLANE,), lambda dy: ops.slice_gradient(dy, (9, 9), (1, 0), (9, 6), (2, 1))),
    "split_gradient": ((PLANE, PLANE), lambda a, b: ops.split_gradient([a, b])),
    "topk_gradient": ((PLANE[:, :2].copy(), SOME), lambda dy, at: ops.topk_gradient(dy, at, (4, 6))),
    "weighted_sum_gradient": ((PLANE,), lambda dy: ops.weighted_sum_gradient(dy, [2.0, 3.0])),
    "adaptive_avg_pool": ((X,), lambda x: ops.adaptive_avg_pool(x, 2)),
    "adaptive_max_pool": ((X,), lambda x: ops.adaptive_max_pool(x, 2, return_indices=True)),
    "argmax": ((PLANE,), ops.argmax),
    "argmin": ((PLANE,), ops.argmin),
    "attention": ((X, X, X), ops.attention),
    "attention_gradient": ((X, X, X, X), ops.attention_gradient),
    "avg_pool": ((X,), lambda x: ops.avg_pool(x, 2)),
    "avg_pool_gradient": ((WINDOWS,), lambda dy: ops.avg_pool_gradient(dy, IMAGE, 2)),
    "batch_norm": ((X, X[0, :, 0, 0].copy()), lambda x, scale: ops.batch_norm(x, scale)),
    "binary": ((PLANE, PLANE[0].copy()), lambda a, b: ops.binary("add", a, b)),
    "concat": ((PLANE, PLANE), lambda a, b: ops.concat([a, b])),
    "conv1d": ((X[:, :, 0].copy(), W[:, :, 0].copy()), ops.conv1d),
    "conv2d": ((X, W), lambda x, w: ops.conv2d(x, w, padding="same", post_ops=["relu"])),
    "conv3d": ((X[..., None].copy(), W[..., None].copy()), ops.conv3d),
    "conv_input_gradient": ((DY, W), lambda dy, w: ops.conv_input_gradient(dy, w, IMAGE)),
    "conv_transpose1d": ((X[:, :, 0].copy(), W[:, :, 0].copy()), ops.conv_transpose1d),
    "conv_transpose2d": ((X, W), ops.conv_transpose2d),
    "conv_transpose3d": ((X[..., None].copy(), W[..., None].copy()), ops.conv_transpose3d),
    "conv_transpose_input_gradient": ((X, W), ops.conv_transpose_input_gradient),
    "conv_transpose_weight_gradient": ((DY, X), lambda x, dy: ops.conv_transpose_weight_gradient(x, dy, (3, 3))),
    "conv_weight_gradient": ((X, DY), lambda x, dy: ops.conv_weight_gradient(x, dy, (3, 3))),
    "cumsum": ((PLANE,), ops.cumsum),
    "dropout": ((PLANE,), lambda x: ops.dropout(x, 0.5, seed=3)),
    "eltwise": ((PLANE,), lambda x: ops.eltwise(x, "tanh")),
    "embedding": ((PLANE, ROWS), ops.embedding),
    "expand": ((PLANE,), lambda x: ops.expand(x, (2, 4, 6))),
    "gather": ((PLANE, ROWS), lambda x, rows: ops.gather(x, rows, 1)),
    "scatter": ((PLANE, ROWS, PLANE), lambda x, rows, y: ops.scatter(x, rows, ops.gather(y, rows, 1), 1, "add")),
    "group_norm": ((X,), lambda x: ops.group_norm(x, 4)),
    "group_norm_gradient": ((X, X), lambda dy, x: ops.group_norm_gradient(dy, x, 4)),
    "gru": ((f32(3, 2, 6),), lambda x: ops.gru(x, GATES["gru"])),
    "inner_product": ((PLANE, f32(5, 6)), ops.inner_product),
    "layer_norm": ((PLANE,), ops.layer_norm),
    "layer_norm_gradient": ((PLANE, PLANE), ops.layer_norm_gradient),
    "log_softmax": ((PLANE,), ops.log_softmax),
    "log_softmax_gradient": ((PLANE, PLANE), ops.log_softmax_gradient),
    "lrn": ((X,), ops.lrn),
    "lrn_gradient": ((X, X), ops.lrn_gradient),
    "lstm": ((f32(3, 2, 6),), lambda x: ops.lstm(x, CELL)),
    "matmul": ((PLANE, f32(6, 5)), ops.matmul),
    "max_pool": ((X,), lambda x: ops.max_pool(x, 2, return_indices=True)),
    "max_pool_gradient": ((WINDOWS, X), gradient_of_maxima),
    "pad": ((PLANE,), lambda x: ops.pad(x, 1)),
    "prelu": ((PLANE, PLANE[0].copy()), ops.prelu),
    "reduce": ((PLANE,), lambda x: ops.reduce(x, "sum", 1)),
    "resize": ((X,), lambda x: ops.resize(x, 3)),
    "resize_gradient": ((X,), lambda dy: ops.resize_gradient(dy, (2, 8, 3, 3))),
    "rms_norm": ((PLANE,), ops.rms_norm),
    "rms_norm_gradient": ((PLANE, PLANE), ops.rms_norm_gradient),
    "rnn": ((f32(3, 2, 6),), lambda x: ops.rnn(x, GATES["rnn"])),
    "select": ((PLANE > 0, PLANE, PLANE), ops.select),
    "slice": ((PLANE,), lambda x: ops.slice(x, (1, 0), (3, 4))),
    "softmax": ((PLANE,), ops.softmax),
    "softmax_gradient": ((PLANE, PLANE), ops.softmax_gradient),
    "split": ((PLANE,), lambda x: ops.split(x, 2)),
    "stochastic_rounding": ((PLANE,), lambda x: ops.stochastic_rounding(x, dnn.s8, seed=3)),
    "topk": ((PLANE,), lambda x: ops.topk(x, 2)),
    "weighted_sum": ((PLANE, PLANE), lambda a, b: ops.weighted_sum([a, b], [2.0, 0.5])),
}  # fmt: skip


def test_every_operation_has_a_call_here() -> None:
    """But for those that make packed weights, which are of this library's kind."""
    assert {*CALLS} == {name for name in ops.__all__ if not name.startswith("pack_")}


def each(result: Any) -> list[Any]:
    return [*result] if isinstance(result, list | tuple) else [result]


@pytest.mark.parametrize("name", CALLS)
def test_results_are_of_the_kind_that_came(name: str, library: Any) -> None:
    kind, give, back = library
    arrays, call = CALLS[name]
    wanted, found = call(*arrays), call(*map(give, arrays))
    assert type(found) is type(wanted) or not isinstance(wanted, list | tuple)
    for theirs, ours in zip(each(found), each(wanted), strict=True):
        assert isinstance(theirs, kind)
        if "jax" in sys.modules and isinstance(theirs, sys.modules["jax"].Array):
            ours = ours.astype(theirs.dtype)  # which makes int32 of int64, unless told otherwise
        assert np.array_equal(back(theirs), ours)
        assert back(theirs).dtype == ours.dtype


def test_the_first_array_decides(library: Any) -> None:
    kind, give, _ = library
    for a, b, is_theirs in ((give(PLANE), PLANE, True), (PLANE, give(PLANE), False)):
        for result in (ops.binary("add", a, b), ops.concat([a, b]), ops.weighted_sum([a, b]), ops.prelu(a, b)):
            assert isinstance(result, kind if is_theirs else np.ndarray)
    assert isinstance(ops.binary("mul", 2, give(PLANE)), kind)
    assert isinstance(ops.eltwise(alg="relu", x=give(PLANE)), kind)
    assert isinstance(ops.matmul([[1.0] * 4], give(PLANE)), kind)


def test_a_destination_of_that_kind_is_written_and_returned() -> None:
    place, half = np.zeros((4, 6), np.float32), np.zeros((2, 6), np.float32)
    out = Tensor(place)
    assert ops.eltwise(Tensor(PLANE), "relu", out=out) is out
    assert np.array_equal(place, np.maximum(PLANE, 0))
    assert ops.eltwise(Tensor(PLANE), "abs", out=place) is place, "who gives a numpy array gets that one"
    assert ops.eltwise(PLANE, "tanh", out=out) is out
    assert ops.slice(Tensor(PLANE), (0, 0), (2, 6)).array.shape == half.shape


def test_packed_weights_stay_what_they_are(library: Any) -> None:
    kind, give, _ = library
    packed = ops.pack_weights(give(f32(6, 5)))
    assert isinstance(packed, dnn.Memory)
    assert isinstance(ops.matmul(give(PLANE), packed), kind)
    assert isinstance(ops.matmul(PLANE, packed), np.ndarray)


def test_who_has_no_way_in_gets_numpy() -> None:
    result = ops.eltwise(Nameless(PLANE), "relu")
    assert type(result) is np.ndarray
    assert np.array_equal(result, np.maximum(PLANE, 0))
    assert type(ops.eltwise(dnn.Memory.from_array(PLANE), "relu")) is np.ndarray
    assert type(ops.eltwise([[1.0, -1.0]], "relu")) is np.ndarray


def test_a_library_that_cannot_take_the_result_says_so() -> None:
    class Poor(Tensor):
        def __array_namespace__(self) -> Any:
            def refuse(given: Any) -> Any:
                raise BufferError("no such type here")

            return SimpleNamespace(from_dlpack=refuse)

    class Broken(Tensor):
        def __array_namespace__(self) -> Any:
            raise RuntimeError("no namespace today")

    with pytest.raises(
        dnn.InvalidArguments, match=r"dtype float32 cannot be made an array of .*no such type here.*: pass"
    ):
        ops.eltwise(Poor(PLANE), "relu")
    assert type(ops.eltwise(Broken(PLANE), "relu")) is np.ndarray


def test_memory_is_shared_both_ways() -> None:
    """The result that torch sees is what the kernel has written: no copy is made of it."""
    torch = pytest.importorskip("torch", reason="array calls were not tried with torch")
    x = torch.ones(3, 5)
    out = torch.zeros(3, 5)
    assert ops.eltwise(x, "relu", out=out) is out
    assert torch.equal(out, x)
    scalar = ops.eltwise(torch.tensor(-2.0), "abs")
    assert scalar.shape == () and scalar == 2
    assert ops.eltwise(torch.ones(0, 5), "abs").shape == (0, 5)
    strided = torch.arange(24.0).reshape(4, 6).T
    assert torch.equal(ops.eltwise(strided, "square"), strided**2)


def test_types_of_torch_that_numpy_lacks() -> None:
    torch = pytest.importorskip("torch", reason="array calls were not tried with torch")
    a = torch.randint(-3, 4, (4, 6)).to(torch.bfloat16)
    b = torch.randint(-3, 4, (6, 5)).to(torch.bfloat16)
    product = ops.matmul(a, b)
    assert product.dtype == torch.bfloat16
    assert torch.equal(product, a @ b)
    assert ops.matmul(a, b, dtype=dnn.f32).dtype == torch.float32
    assert ops.eltwise(torch.ones(5), "relu", dtype=dnn.bf16).dtype == torch.bfloat16
    assert ops.eltwise(torch.ones(5, dtype=torch.float16), "relu").dtype == torch.float16
    for kind in (torch.int8, torch.uint8, torch.int32, torch.float8_e5m2, torch.float8_e4m3fn):
        given = torch.arange(6).to(kind)
        pieces = ops.split(given, 2)
        assert [piece.dtype for piece in pieces] == [kind, kind]
        assert torch.equal(torch.cat(pieces).to(torch.float32), given.to(torch.float32))
    out = torch.zeros(4, 5, dtype=torch.bfloat16)
    assert ops.matmul(a, b, out=out) is out
    assert torch.equal(out, product)


def test_a_tensor_with_gradients_is_told_where_they_are() -> None:
    torch = pytest.importorskip("torch", reason="array calls were not tried with torch")
    x = torch.ones(4, 6, requires_grad=True)
    says = r"^x requires gradients, which this function does not record: .*asmdnn\.torch.*x\.detach\(\)$"
    with pytest.raises(dnn.InvalidArguments, match=says):
        ops.eltwise(x, "relu")
    with pytest.raises(dnn.InvalidArguments, match=r"^a requires gradients"):
        ops.matmul(x, PLANE.T)
    assert torch.equal(ops.eltwise(x.detach(), "relu"), torch.ones(4, 6))


def test_functions_keep_their_names_and_signatures() -> None:
    for name in ops.__all__:
        function = getattr(ops, name)
        assert (function.__name__, pickle.loads(pickle.dumps(function))) == (name, function)
    assert [*inspect.signature(ops.softmax).parameters][:2] == ["x", "axis"]
    with pytest.raises(TypeError, match=r"softmax\(\) missing 1 required positional argument: 'x'"):
        ops.softmax()  # type: ignore[call-arg]
