"""`ops.conv_input_gradient` and its kin, against the definition and against the primitives' adjoints."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.test_ops_convolutions import CONV, SIZES, TRANSPOSE, WINDOWS, integers


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_input_gradients(isa: str, axes: int, window: dict[str, Any]) -> None:
    """<conv(x), y> = <x, gradient(y)>, exactly, for arrays of any strides."""
    x, w = integers(1, 2, 8, *SIZES[axes]), integers(2, 12, 8 // window.get("groups", 1), *[3] * axes)
    with dnn.max_cpu_isa(isa):
        forward = CONV[axes](x, w, **window)
        y = integers(3, *forward.shape)
        back = ops.conv_input_gradient(y, w, x.shape, **window)
        again = ops.conv_input_gradient(
            np.asfortranarray(y), np.asfortranarray(w), x.shape, **window, out=np.empty_like(x)
        )
    assert np.vdot(forward.astype(np.float64), y) == np.vdot(x.astype(np.float64), back)
    assert np.array_equal(back, again)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_input_gradients(isa: str, axes: int, window: dict[str, Any]) -> None:
    more = window.get("stride", 1) - 1
    x, w = integers(1, 2, 8, *SIZES[axes]), integers(2, 8, 12 // window.get("groups", 1), *[3] * axes)
    with dnn.max_cpu_isa(isa):
        forward = TRANSPOSE[axes](x, w, **window, output_padding=more)
        y = integers(3, *forward.shape)
        back = ops.conv_transpose_input_gradient(y, w, **window)
    assert back.shape == x.shape
    assert np.vdot(forward.astype(np.float64), y) == np.vdot(x.astype(np.float64), back)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_weight_gradients(isa: str, axes: int, window: dict[str, Any]) -> None:
    g, more = window.get("groups", 1), window.get("stride", 1) - 1
    x, w, v = (
        integers(1, 2, 8, *SIZES[axes]),
        integers(2, 12, 8 // g, *[3] * axes),
        integers(2, 8, 12 // g, *[3] * axes),
    )
    with dnn.max_cpu_isa(isa):
        for forward, weights, back in (
            (CONV[axes](x, w, **window), w, ops.conv_weight_gradient),
            (TRANSPOSE[axes](x, v, **window, output_padding=more), v, ops.conv_transpose_weight_gradient),
        ):
            y = integers(3, *forward.shape)
            dw, db = back(x, y, 3, **window)
            assert dw.shape == weights.shape
            assert np.vdot(forward.astype(np.float64), y) == np.vdot(weights.astype(np.float64), dw)
            assert np.array_equal(db, y.sum(axis=(0, *range(2, y.ndim))))


def test_winograd() -> None:
    x, w = integers(1, 1, 16, 9, 9), integers(2, 24, 16, 3, 3)
    y = integers(3, 1, 24, 9, 9)
    direct = ops.conv_input_gradient(y, w, x.shape, padding=1)
    assert np.allclose(ops.conv_input_gradient(y, w, x.shape, padding=1, algorithm="winograd"), direct, atol=1e-2)


Y, W = integers(1, 1, 8, 6, 6), integers(2, 8, 4, 3, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.conv_input_gradient(Y, W, (1, 4, 9, 8)), "dy's height is 6, x, weights"),
        (lambda: ops.conv_input_gradient(Y, W, (1, 4, 8)), "dims must be 4 integers, the dims of an array"),
        (lambda: ops.conv_input_gradient(Y, W, (1, 4, 8, 8.0)), "dims must be 4 integers"),  # type: ignore[arg-type]
        (lambda: ops.conv_input_gradient(Y, W, (1, 4, 8, 8), groups=0), "groups must be an integer of at least 1"),
        (lambda: ops.conv_input_gradient(Y[0, 0], W, (1, 4, 8, 8)), "dy has dims .*, 3 to 5 are needed"),
        (lambda: ops.conv_input_gradient(Y, W[0], (1, 4, 8, 8)), "weights has dims"),
        (lambda: ops.conv_input_gradient(Y, W, (1, 4, 8, 8), out=Y), "out has dims"),
        (lambda: ops.conv_transpose_input_gradient(Y[..., :2], W), "dy's width is 2, a single pixel of x makes 3"),
        (lambda: ops.conv_transpose_input_gradient(Y[:, :, :0], W), "dy's height is 0, a single pixel of x makes 3"),
        (lambda: ops.conv_transpose_input_gradient(Y, W[0]), "weights has dims"),
        (lambda: ops.conv_weight_gradient(Y, Y, (3, 3, 3)), "kernel must be one or two integers of at least 1"),
        (lambda: ops.conv_weight_gradient(Y[0], Y, 3), "x has dims .*: both must have 4"),
        (lambda: ops.conv_weight_gradient(Y, Y, 3), "dy's height is 6, x, weights"),
        (lambda: ops.conv_weight_gradient(Y, Y, 1, groups=3), "the first must be a multiple of groups, 3"),
        (lambda: ops.conv_transpose_input_gradient(Y, W), "weights makes 4: they must be equal"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()
