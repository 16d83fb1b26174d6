"""Gradients of recurrent layers on arrays: those of the float64 definitions, and what is refused."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.primitives.recurrent_backward_case import backward, gradients, training_data
from tests.primitives.recurrent_case import CONCAT, LEFT2RIGHT, Array, describe
from tests.test_ops_recurrent import of_weights

pytestmark = pytest.mark.isa("avx2")
OPS: tuple[tuple[type, Callable[..., Any], dict[str, Any]], ...] = (
    (dnn.VanillaRNNForward, ops.rnn_gradient, {"activation": "tanh"}),
    (dnn.LSTMForward, ops.lstm_gradient, {}),
    (dnn.GRUForward, ops.gru_gradient, {}),
    (dnn.LBRGRUForward, ops.gru_gradient, {"linear_before_reset": True}),
)
STATES, DIFFS = ("src_iter", "src_iter_c"), {"dy": "diff_dst_layer", "dh": "diff_dst_iter", "dc": "diff_dst_iter_c"}
CELLS = pytest.mark.parametrize(("kind", "function", "more"), OPS, ids=[kind.__name__ for kind, *_ in OPS])


def compare(found: tuple[Any, ...], wanted: dict[str, Any]) -> None:
    """Results by position: src, weights, states."""
    dsrc, dweights, *states = found
    named = {"diff_src_layer": dsrc, **{f"diff_{name}": array for name, array in dweights.items()}}
    named |= {f"diff_{name}": array for name, array in zip(STATES, states, strict=False) if array is not None}
    assert named.keys() == wanted.keys()
    for name, array in named.items():
        assert array.dtype == np.float32 and (np.abs(array - wanted[name].value) <= wanted[name].bound).all(), name


@CELLS
@pytest.mark.parametrize("states", [True, False])
@pytest.mark.parametrize(("direction", "lengths"), [(LEFT2RIGHT, ()), (CONCAT, ()), (CONCAT, (4, 2, 1))])
def test_numbers(kind: Any, function: Any, more: Any, states: bool, direction: str, lengths: tuple[int, ...]) -> None:
    of_kind: dict[str, Any] = {"activation": "tanh"} if kind is dnn.VanillaRNNForward else {}
    forward = describe(kind, (4, 3, 5, 11), 1, direction, states, lengths=lengths, **of_kind)
    data = training_data(forward)
    first = [data[name] for name in STATES if states and name in data]
    diffs = {label: data[name] for label, name in DIFFS.items() if name in data}
    dy = diffs.pop("dy")
    how = {**more, "direction": direction, "lengths": lengths}
    found = function(dy, data["src_layer"], of_weights(data), *first, **diffs, **how)
    compare(found, gradients(backward(forward), data, np.array(lengths) if lengths else None))


def test_peepholes_and_projections() -> None:
    forward = describe(dnn.LSTMForward, (3, 2, 5, 9), peephole=True, projection=4, bias=False)
    data = training_data(forward)
    states = [data[name] for name in STATES]
    diffs = {label: data[DIFFS[label]] for label in ("dh", "dc")}
    found = ops.lstm_gradient(data["diff_dst_layer"], data["src_layer"], of_weights(data), *states, **diffs)
    compare(found, gradients(backward(forward), data))


def case() -> tuple[Array, Array, dict[str, Array]]:
    """dy, src and weights of an LSTM without states."""
    data = training_data(describe(dnn.LSTMForward, (3, 2, 5, 9), states=False))
    return data["diff_dst_layer"], data["src_layer"], of_weights(data)


def test_the_last_state_alone() -> None:
    """dy is 0 then: the same as that of the last step's output."""
    dy, src, weights = case()
    last = np.zeros_like(dy)
    last[-1] = dy[-1]
    alone, of_output = (ops.lstm_gradient(*diffs[:1], src, weights, dh=diffs[1]) for diffs in
                        ((None, dy[-1][None, None]), (last, None)))  # fmt: skip
    assert np.allclose(alone[0], of_output[0], atol=1e-6)
    assert all(np.allclose(alone[1][name], of_output[1][name], atol=1e-5) for name in weights)
    assert alone[2:] == (None, None)


def test_any_strides_and_no_bias() -> None:
    dy, src, weights = case()
    del weights["bias"]
    wanted = ops.lstm_gradient(dy, src, weights)
    turned = {name: np.asfortranarray(array) for name, array in weights.items()}
    found = ops.lstm_gradient(np.asfortranarray(dy), src[:, ::-1][:, ::-1], turned)
    assert np.array_equal(found[0], wanted[0])
    assert found[1].keys() == weights.keys()
    assert all(np.array_equal(found[1][name], wanted[1][name]) for name in weights)


def test_threads_change_no_bit() -> None:
    dy, src, weights = case()
    found = [ops.lstm_gradient(dy, src, weights, engine=dnn.Engine(isa="avx2", threads=n)) for n in (1, 2, 3)]
    for other in found[1:]:
        assert np.array_equal(other[0], found[0][0])
        assert all(np.array_equal(other[1][name], found[0][1][name]) for name in weights)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dy": None}, "dy is None, and so are those of the last states: give the gradient of one result"),
        ({"dy": np.zeros((2, 2, 9), np.float32)}, r"dy has dims \(2, 2, 9\)"),
        ({"dy": np.zeros((3, 2, 9))}, "dy has dtype float64, convert it to float32"),
        ({"dh": np.zeros((2, 9), np.float32)}, "dh has"),
        ({"src": np.float32(1)}, "src is a scalar, it must have dims"),
        ({"src": np.zeros((3, 2, 5), np.int16)}, "src has dtype int16, convert it to float32"),
        ({"weights": {}}, "weights has no weights_layer"),
        ({"weights": 3}, "weights must map names to arrays, not 3"),
        ({"direction": "left"}, "direction must be one of unidirectional_left2right"),
        ({"lengths": (3, 9)}, "lengths"),
    ],
)
def test_bad_input(changed: dict[str, Any], message: str) -> None:
    dy, src, weights = case()
    with pytest.raises(dnn.InvalidArguments, match=message) as error:
        ops.lstm_gradient(**{"dy": dy, "src": src, "weights": weights, **changed})
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_types(kind: Any) -> None:
    """Gradients are f32: those of the same numbers as f32, of a layer that was computed anew in f32."""
    dy, src, weights = case()
    narrow = src.astype(kind), {name: x.astype(kind) for name, x in weights.items()}
    wide = narrow[0].astype(np.float32), {name: x.astype(np.float32) for name, x in narrow[1].items()}
    found, wanted = (ops.lstm_gradient(dy, *given) for given in (narrow, wide))
    np.testing.assert_array_equal(found[0], wanted[0])
    assert found[0].dtype == np.float32
    for name, x in wanted[1].items():
        np.testing.assert_array_equal(found[1][name], x)


def test_weights_that_have_no_gradient() -> None:
    dy, src, weights = case()
    with pytest.raises(dnn.InvalidArguments, match="weights_layer is packed for the forward pass: pass the array"):
        ops.lstm_gradient(dy, src, ops.pack_recurrent("lstm", weights))
    scales = {"weights_layer_scales": np.ones((1, 1, 4, 9), np.float32)}
    with pytest.raises(dnn.InvalidArguments, match="weights has weights_layer_scales, of bytes, which have no"):
        ops.lstm_gradient(dy, src, {**weights, **scales})
