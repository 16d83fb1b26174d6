"""Attr and post-ops: values that are checked when they are made."""

import math
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn


def test_a_value() -> None:
    attr = dnn.Attr([dnn.Sum(0.5), dnn.Eltwise("relu", 0.25)])
    assert attr == dnn.Attr((dnn.Sum(0.5), dnn.Eltwise("relu", alpha=0.25)))
    assert hash(attr) == hash(dnn.Attr(iter(attr.post_ops)))
    assert attr != dnn.Attr([dnn.Eltwise("relu", 0.25), dnn.Sum(0.5)]), "order matters"
    assert dnn.Attr().post_ops == ()
    assert dnn.Attr([dnn.Sum()]).reads_dst()
    assert not dnn.Attr([dnn.Eltwise("relu")]).reads_dst()


def test_integers_are_numbers() -> None:
    assert dnn.Sum(2) == dnn.Sum(2.0)
    assert type(dnn.Sum(2).scale) is float


BAD_NUMBERS = [math.nan, math.inf, -math.inf, 1e39, True, "1", None, 10**400]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=lambda value: repr(value)[:8])
@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("Sum.scale", dnn.Sum),
        ("Eltwise.alpha", lambda value: dnn.Eltwise("relu", value)),
        ("Eltwise.beta", lambda value: dnn.Eltwise("relu", 0.0, value)),
    ],
)
def test_numbers_that_f32_cannot_hold(field: str, make: Any, value: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match=f"{field} must be a finite f32 number"):
        make(value)


def test_numpy_scalars_are_numbers() -> None:
    assert dnn.Sum(np.float32(0.5)) == dnn.Sum(0.5)  # type: ignore[arg-type]
    assert dnn.Eltwise("relu", np.float64(0.1)) == dnn.Eltwise("relu", 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dnn.Eltwise("gelu_fast"), "Eltwise.alg must be one of relu, tanh, .*not 'gelu_fast'"),
        (lambda: dnn.Eltwise("RELU"), "Eltwise.alg must be one of"),
        (lambda: dnn.Eltwise(["relu"]), "Eltwise.alg"),  # type: ignore[arg-type]
        (lambda: dnn.Eltwise("relu", 0.0, 1.0), "Eltwise.beta must be 0 for relu, not 1.0"),
        (
            lambda: dnn.Attr([b"relu"]),
            r"post_ops\[0\] must be a Sum, Eltwise, Binary, PReLU, Depthwise or PostOp, not b'relu'",
        ),  # type: ignore[list-item]
        (lambda: dnn.Attr([dnn.Sum(), None]), r"post_ops\[1\] must be"),  # type: ignore[list-item]
        (
            lambda: dnn.Attr(7),
            r"post_ops\[0\] must be a Sum, Eltwise, Binary, PReLU, Depthwise or PostOp, not 7",
        ),  # type: ignore[arg-type]
        (lambda: dnn.Attr(7), r"post_ops\[0\] must be"),  # type: ignore[arg-type]
        (lambda: dnn.Attr([dnn.Sum()] * 33), "post_ops has 33 entries, at most 32"),
    ],
)
def test_wrong_post_ops(make: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        make()


def test_one_post_op_needs_no_list() -> None:
    assert dnn.Attr(dnn.Sum()) == dnn.Attr([dnn.Sum()])  # type: ignore[arg-type]


def test_deterministic() -> None:
    """A value of the request; every plan meets it, for any number of threads (test_conv_threads, test_matmul)."""
    assert dnn.Attr(deterministic=True) != dnn.Attr()
    for wrong in (1, "true", None):
        with pytest.raises(dnn.InvalidArguments, match="deterministic must be True or False"):
            dnn.Attr(deterministic=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("older", "today"),
    [
        (dnn.Eltwise("bounded_relu", 6.0), dnn.Eltwise("clip", 0.0, 6.0)),
        (dnn.Eltwise("gelu", scale=2.0), dnn.Eltwise("gelu_tanh", scale=2.0)),
    ],
)
def test_older_names_of_functions(older: dnn.Eltwise, today: dnn.Eltwise) -> None:
    """Those of oneDNN's first versions are the same values, forward and backward, as a post-op and as a primitive."""
    assert older == today and repr(older) == repr(today)
    x = dnn.MemoryDesc((2, 3), dnn.f32, "ab")
    alg, alpha = {"clip": ("bounded_relu", 6.0), "gelu_tanh": ("gelu", 0.0)}[today.alg]
    kind = dnn.PropKind.forward_training
    numbers = today.alpha, today.beta
    assert dnn.EltwiseForward(kind, alg, x, x, alpha) == dnn.EltwiseForward(kind, today.alg, x, x, *numbers)
    assert dnn.EltwiseBackward(alg, x, x, x, alpha) == dnn.EltwiseBackward(today.alg, x, x, x, *numbers)


@pytest.mark.parametrize(("alpha", "beta"), [(-1.0, 0.0), (1.0, 2.0)])
def test_a_bound_below_zero(alpha: float, beta: float) -> None:
    with pytest.raises(dnn.InvalidArguments, match="bounded_relu has 0 or more, and 0"):
        dnn.Eltwise("bounded_relu", alpha, beta)
