"""Errors of array functions name what callers have given: none says src, dst or diff_dst of an array called x or dy."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.support.ops_calls import every_call

CALLS = every_call()
OF_PRIMITIVES = re.compile(
    r"(?<!['\w])((?:diff_)?(?:src|dst)(?:\d|_layer|_iter|_iter_c)?|diff_\w+|data(?! type)"
    r"|seen from its forward pass|[A-Z][a-z]\w+(?:Forward|Backward))(?![\w=])"
)
WEIGHTLESS = ("matmul", "matmul_gradient", "binary", "softmax", "embedding")  # nothing there is called weights


def changed(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Arrays of other dims and types, most of which no function takes in the place of this one."""
    yield from (array[None], array[0], array[..., 0], array[:0], array[..., :0], np.zeros((), array.dtype))
    for axis in range(array.ndim):
        yield np.concatenate([array, array], axis)
    yield from (array.astype(kind) for kind in (np.int32, np.uint8, np.float16))
    if array.dtype.kind == "i":
        yield array + 1000


def variants(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments with one array in them changed, and with a result of a type or with memory that few have."""
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            yield from ({**arguments, name: other} for other in changed(value))
        elif isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            yield from ({**arguments, name: [*value[:-1], other]} for other in changed(value[-1]))
        elif isinstance(value, dict):
            for key, of_key in value.items():
                if isinstance(of_key, np.ndarray):
                    yield from ({**arguments, name: {**value, key: other}} for other in changed(of_key))


def more_options(function: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Options that a plan has to look at before it refuses them."""
    known = inspect.signature(getattr(ops, function)).parameters
    options: dict[str, list[Any]] = {
        "dtype": ["s8", "bf16", "s4"],
        "post_ops": [[dnn.Binary("add", dnn.MemoryDesc((7,), dnn.f32, "a"))], ["sum"]],
        "axis": [99, -99],
        "epsilon": [-1.0],
        "alg": ["x"],
        "scale": [None, "x"],
        "size": [0],
    }
    for name, values in options.items():
        yield from ({**arguments, name: value} for value in values if name in known)
    if "out" in known:
        held = np.ones((3, 5, 7), np.float32)
        held.flags.writeable = False
        yield {**arguments, "out": held}


@pytest.mark.parametrize("function", CALLS)
def test_words(function: str) -> None:
    known = {*inspect.signature(getattr(ops, function)).parameters, *["src"] * (function == "pack_recurrent")}
    refused = 0
    for arguments in (*variants(CALLS[function]), *more_options(function, CALLS[function])):
        try:
            getattr(ops, function)(**arguments)
        except dnn.AsmdnnError as error:
            found = {word[0] for word in OF_PRIMITIVES.finditer(str(error))} - known
            refused += 1
            assert not found, f"{found} in: {error}"
            assert function not in WEIGHTLESS or not re.search(r"(?<!the )\bweights\b", str(error)), error
    assert refused


def test_what_callers_wrote_stays() -> None:
    """Words in quotes are theirs, and so are the fields of a post-op."""
    x = np.ones((2, 3), np.float32)
    with pytest.raises(dnn.InvalidArguments, match="scales has 'src', it must be one of a, b, out"):
        ops.matmul(x, x.T, scales={"src": 2})
    with pytest.raises(dnn.InvalidArguments, match=r"^a has dtype float64"):
        ops.binary("add", x.astype(np.float64), x)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: ops.concat([x, x[0]]), r"^arrays\[1\] has dims \(3,\), they must be the result's but for axis 0"),
        (lambda x: ops.embedding(x, np.array([7])), r"^indices\[0\] is 7, axis 0 of table has 2: use -2 to 1$"),
        (lambda x: ops.softmax_gradient(x, x[0]), r"^dy has dims \(2, 3\), they must be \(3,\)$"),
        (lambda x: ops.layer_norm(x, epsilon=-1), "^epsilon must not be negative, it is -1$"),
        (lambda x: ops.eltwise(None, "relu"), "^x is None, where an array must be$"),
        (lambda x: ops.gather(x, None), "^indices is None, where an array must be$"),
        (
            lambda x: ops.gather(x[:0], np.array([0])),
            r"^indices\[0\] is 0, axis 0 of x has 0: there is nothing to choose",
        ),
        (lambda x: ops.lrn(x, 0), "^size must be an integer of at least 1, not 0$"),
        (lambda x: ops.cumsum(x, dtype="s8"), "the result is s8, only f32, bf16, f16 is implemented"),
    ],
)
def test_examples(call: Any, says: str) -> None:
    with pytest.raises(dnn.AsmdnnError, match=says):
        call(np.ones((2, 3), np.float32))


def test_a_mask_of_truths_and_an_axis_of_numpy() -> None:
    """What numpy makes of comparisons and of numbers is taken as it is."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = np.where(x > 2, x * 2, 0)
    assert np.array_equal(ops.dropout_gradient(x, x > 2, 0.5), wanted)
    assert np.array_equal(ops.concat([x, x], np.int64(1)), np.concatenate([x, x], 1))
    assert np.array_equal(ops.gather(x, np.array([1]), np.int32(1)), x[:, 1:2])
