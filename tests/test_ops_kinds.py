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
from tests.support.exporters import SpeaksDlpack
from tests.support.ops_calls import every_call

pytestmark = pytest.mark.isa("avx2")


class Tensor(SpeaksDlpack):
    """An array of a library that knows the array API's way in and out, and nothing of numpy."""

    def __array_namespace__(self) -> Any:
        return SimpleNamespace(from_dlpack=lambda given: Tensor(np.from_dlpack(given)))


class Nameless(SpeaksDlpack):
    """Exports memory; its library has no way in."""


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


PLANE = f32(4, 6)
ARGUMENTS = every_call()


def test_every_operation_has_a_call() -> None:
    assert ARGUMENTS.keys() == {*ops.__all__}


def each(result: Any) -> list[Any]:
    """Arrays, also in dicts inside of a tuple."""
    parts = [*result.values()] if isinstance(result, dict) else result
    return [x for part in parts for x in each(part)] if isinstance(parts, list | tuple) else [parts]


def given_as(give: Callable[[Any], Any], value: Any) -> Any:
    """Arrays, also in a list or dict, are of another library."""
    if isinstance(value, list):
        return [given_as(give, one) for one in value]
    if isinstance(value, dict):
        return {name: given_as(give, one) for name, one in value.items()}
    return give(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", [name for name in ARGUMENTS if not name.startswith("pack_")])
def test_results_are_of_the_kind_that_came(name: str, library: Any) -> None:
    kind, give, back = library
    call, theirs_by_name = getattr(ops, name), {key: given_as(give, value) for key, value in ARGUMENTS[name].items()}
    wanted, found = call(**ARGUMENTS[name]), call(**theirs_by_name)
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
