"""Array calls are planned once: a call that comes again looks up what it has, and checks what no key can hold."""

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.ops.calls import calls
from asmdnn.primitives.core import primitive
from tests.support.ops_calls import every_call

pytestmark = pytest.mark.isa("avx2")
PLANS_ANEW = {"pack_quantized_weights": "weights are packed once"}
ENGINE = dnn.Engine(isa="avx2")

random = np.random.default_rng(20)
A, B = random.integers(0, 9, (4, 8), np.uint8), random.integers(-9, 9, (8, 4), np.int8)
IMAGE, FILTER = random.integers(0, 9, (1, 4, 6, 6), np.uint8), random.integers(-9, 9, (8, 4, 3, 3), np.int8)
ROW = np.arange(4, dtype=np.float32) + 1
HALVES: list[Any] = [x.astype(ml_dtypes.bfloat16) for x in (A, B, IMAGE, FILTER)]
TYPED: dict[str, Callable[[], Any]] = {
    "bytes": lambda: ops.matmul(A, B, engine=ENGINE),
    "bytes with scales": lambda: ops.matmul(
        A, B, ROW, scales={"a": 0.5, "b": ROW}, zero_points={"a": 3}, engine=ENGINE
    ),
    "bytes with groups": lambda: ops.matmul(A, B, scales={"b": np.ones((2, 4), np.float32)}, engine=ENGINE),
    "bf16": lambda: ops.matmul(*HALVES[:2], post_ops=["relu"], engine=ENGINE),
    "layer of bytes": lambda: ops.inner_product(A, B.T, scales={"x": 2.0}, engine=ENGINE),
    "convolution of bytes": lambda: ops.conv2d(IMAGE, FILTER, engine=ENGINE),
    "convolution with scales": lambda: ops.conv2d(
        IMAGE, FILTER, scales={"weights": np.ones(8)}, zero_points={"x": 2}, dtype="u8", engine=ENGINE
    ),
    "convolution of bf16": lambda: ops.conv2d(*HALVES[2:], engine=ENGINE),
    "moves of bytes": lambda: ops.concat([A, A], engine=ENGINE),
    "moves of bf16": lambda: ops.gather(HALVES[0], np.array([3, 1]), engine=ENGINE),
}
FLOATS = {name: partial(getattr(ops, name), **given) for name, given in every_call().items() if name not in PLANS_ANEW}


@pytest.mark.parametrize("name", [*FLOATS, *TYPED])
def test_nothing_is_planned_for_what_comes_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = TYPED.get(name) or FLOATS[name]
    call()
    call()  # some choose between two calls only once both are there

    def refuse(*_: Any) -> None:
        raise AssertionError(f"{name} makes its program again")

    monkeypatch.setattr(primitive, "program_of", refuse)
    call()


def test_parts_of_one_shape_share_a_call() -> None:
    """Wherever they begin."""
    x = np.arange(60, dtype=np.int32).reshape(6, 10)
    ops.slice(x, (0, 0), (3, 4))
    entries = len(calls.entries)
    for row, column in ((1, 2), (3, 6)):
        np.testing.assert_array_equal(
            ops.slice(x, (row, column), (row + 3, column + 4)), x[row : row + 3, column : column + 4]
        )
    assert len(calls.entries) == entries


def test_moved_integers_are_of_any_size() -> None:
    x = np.array([[2**31 - 1, -(2**31)], [2**24 + 1, 0]], np.int32)
    for found in (ops.concat([x]), ops.pad(x, 0), ops.expand(x, (2, 2)), ops.gather(x, np.arange(2))):
        np.testing.assert_array_equal(found, x)


def test_constants_that_are_equal_are_not_the_same() -> None:
    x = np.ones(2, np.float32)
    for value in (0.0, -0.0, 0.0, np.inf, np.nan):
        found = ops.pad(x, 1, value=value)
        assert found.tobytes() == np.pad(x, 1, constant_values=value).tobytes()
    with pytest.raises(dnn.InvalidArguments, match="value must be a number, not False"):
        ops.pad(x, 1, value=False)


MATRIX, SAME = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
READ_ONLY = np.zeros((4, 4), np.int32)
READ_ONLY.flags.writeable = False
REFUSED: list[tuple[Callable[..., Any], Any, str]] = [
    (lambda out: ops.concat([MATRIX[:2], MATRIX[2:]], out=out), MATRIX, r"out overlaps arrays\[0\]"),
    (lambda out: ops.pad(MATRIX, 0, out=out), MATRIX, "out overlaps x"),
    (lambda out: ops.expand(MATRIX, (4, 8), out=out), SAME.astype(np.int32), "out is of s32, the result of f32"),
    (lambda out: ops.gather(MATRIX, np.arange(4), out=out), SAME[:3], r"out has dims \(3, 8\), the result has"),
    (lambda out: ops.matmul(A, B, out=out), READ_ONLY, "out is read-only"),
]


@pytest.mark.parametrize(("call", "out", "says"), REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_a_destination_is_checked_by_every_call(call: Callable[..., Any], out: Any, says: str) -> None:
    kind = out.dtype if "of s32" not in says else np.dtype(np.float32)
    good = np.zeros(out.shape if "has dims" not in says else (4, 8), kind)
    for _ in range(2):
        assert call(good) is good
        with pytest.raises(dnn.InvalidArguments, match=says):
            call(out)


def test_a_probability_is_checked_by_every_call() -> None:
    for _ in range(2):
        ops.dropout(MATRIX, 0.5, seed=1)
        with pytest.raises(dnn.InvalidArguments, match=r"probability is 1\.5, it must be from 0 to 1"):
            ops.dropout(MATRIX, 1.5, seed=1)
