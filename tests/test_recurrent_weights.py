"""Weights of recurrent layers from torch and ONNX, and back."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.definitions.recurrent.layers import Net, ReferenceRun

Floats = npt.NDArray[Any]
TORCH_CELLS = {"rnn": "VANILLA_RNN", "lstm": "VANILLA_LSTM", "lbr_gru": "LBR_GRU"}
ALGS = {**TORCH_CELLS, "gru": "VANILLA_GRU"}
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "lbr_gru": 3}


def torch_state(cell: str, directions: int = 1, projection: int = 0, bias: bool = True) -> dict[str, Floats]:
    """As state_dict() of a layer of 3 channels and 4 units has it."""
    random, gates, recurrent = np.random.default_rng(1), GATES[cell], projection or 4
    found = {}
    for end in ("_l0", "_l0_reverse")[:directions]:
        dims = {"weight_ih": (4 * gates, 3), "weight_hh": (4 * gates, recurrent)}
        dims |= {"bias_ih": (4 * gates,), "bias_hh": (4 * gates,)} if bias else {}
        dims |= {"weight_hr": (projection, 4)} if projection else {}
        found |= {name + end: random.standard_normal(size).astype(np.float32) for name, size in dims.items()}
    return found


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("cell", "projection"), [("rnn", 0), ("lstm", 0), ("lstm", 2), ("lbr_gru", 0)])
def test_torch_and_back(cell: str, projection: int, directions: int) -> None:
    state = torch_state(cell, directions, projection)
    weights = dnn.recurrent.from_torch(cell, state)
    assert weights["weights_layer"].shape == (1, directions, 3, GATES[cell], 4)
    assert weights["weights_iter"].shape == (1, directions, projection or 4, GATES[cell], 4)
    back = dnn.recurrent.to_torch(cell, weights)
    assert back.keys() == state.keys()
    for name in state:
        if "bias" not in name:
            assert np.array_equal(back[name], state[name]), name
    again = dnn.recurrent.from_torch(cell, back)
    assert all(np.array_equal(again[name], weights[name]) for name in weights)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "lbr_gru"])
def test_onnx_and_back(cell: str, directions: int) -> None:
    random, gates = np.random.default_rng(1), GATES[cell]
    dims = {"W": (directions, 4 * gates, 3), "R": (directions, 4 * gates, 4), "B": (directions, 8 * gates)}
    dims |= {"P": (directions, 12)} if cell == "lstm" else {}
    given = {name: random.standard_normal(size).astype(np.float32) for name, size in dims.items()}
    weights = dnn.recurrent.from_onnx(cell, given["W"], given["R"], given["B"], given.get("P"))
    assert weights["bias"].shape == (1, directions, 4 if cell == "lbr_gru" else gates, 4)
    back = dnn.recurrent.to_onnx(cell, weights)
    assert back.keys() == given.keys()
    assert all(np.array_equal(back[name], given[name]) for name in given if name != "B")
    again = dnn.recurrent.from_onnx(cell, back["W"], back["R"], back["B"], back.get("P"))
    assert all(np.array_equal(again[name], weights[name]) for name in weights)


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def onnx_lstm(x: Floats, w: Floats, r: Floats, b: Floats, p: Floats) -> Floats:
    """Y_h of one direction, from the operator's text."""
    (wi, wo, wf, wc), (ri, ro, rf, rc) = np.split(w, 4), np.split(r, 4)
    wbi, wbo, wbf, wbc, rbi, rbo, rbf, rbc = np.split(b, 8)
    pi, po, pf = np.split(p, 3)
    h = c = np.zeros((x.shape[1], len(wi)))
    for xt in x:
        it = sigmoid(xt @ wi.T + h @ ri.T + pi * c + wbi + rbi)
        ft = sigmoid(xt @ wf.T + h @ rf.T + pf * c + wbf + rbf)
        ct = np.tanh(xt @ wc.T + h @ rc.T + wbc + rbc)
        c = ft * c + it * ct
        ot = sigmoid(xt @ wo.T + h @ ro.T + po * c + wbo + rbo)
        h = ot * np.tanh(c)
    return h


def onnx_gru(x: Floats, w: Floats, r: Floats, b: Floats, linear_before_reset: int) -> Floats:
    (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
    wbz, wbr, wbh, rbz, rbr, rbh = np.split(b, 6)
    h = np.zeros((x.shape[1], len(wz)))
    for xt in x:
        zt = sigmoid(xt @ wz.T + h @ rz.T + wbz + rbz)
        rt = sigmoid(xt @ wr.T + h @ rr.T + wbr + rbr)
        if linear_before_reset:
            ht = np.tanh(xt @ wh.T + rt * (h @ rh.T + rbh) + wbh)
        else:
            ht = np.tanh(xt @ wh.T + (rt * h) @ rh.T + rbh + wbh)
        h = (1 - zt) * ht + zt * h
    return h


@pytest.mark.parametrize("cell", ["lstm", "gru", "lbr_gru"])
def test_onnx_weights_compute_what_the_operator_says(cell: str) -> None:
    random, gates = np.random.default_rng(2), GATES[cell]
    w, r, b, p, x = (random.standard_normal(n) for n in ((4 * gates, 3), (4 * gates, 4), 8 * gates, 12, (5, 2, 3)))
    peephole = p if cell == "lstm" else None
    weights = dnn.recurrent.from_onnx(cell, w[None], r[None], b[None], None if peephole is None else p[None])
    expected = onnx_lstm(x, w, r, b, p) if cell == "lstm" else onnx_gru(x, w, r, b, int(cell == "lbr_gru"))
    found = ReferenceRun(Net(ALGS[cell]), {"src_layer": x, **weights}).results["dst_iter"].value[0, 0]
    assert np.abs(found - expected).max() < 1e-6  # the weights are rounded to f32


@pytest.mark.parametrize(
    ("cell", "change", "says"),
    [
        ("gru", {}, 'torch has rnn, lstm, lbr_gru; its GRU is "lbr_gru"'),
        ("lstm", {"weight_ih_l0": None}, "layer is 0, and state has no weight_ih_l0"),
        ("lstm", {"weight_hh_l0": None}, "state has no weight_hh_l0"),
        ("lstm", {"weight_ih_l0": np.zeros((15, 3))}, r"weight_ih has dims \(15, 3\), its rows must be 4 gates"),
        ("lstm", {"bias_hh_l0": np.zeros(15)}, r"a bias has dims \(15,\), it must have 16 of 4 gates"),
    ],
)
def test_what_torch_does_not_have(cell: str, change: dict[str, Any], says: str) -> None:
    state = {name: x for name, x in (torch_state("lstm") | change).items() if x is not None}
    with pytest.raises(dnn.InvalidArguments, match=says):
        dnn.recurrent.from_torch(cell, state)


def test_weights_that_are_no_layer() -> None:
    with pytest.raises(dnn.InvalidArguments, match="W has dims"):
        dnn.recurrent.from_onnx("lstm", np.zeros((16, 3)), np.zeros((1, 16, 4)))
    with pytest.raises(dnn.InvalidArguments, match="weights have no weights_iter"):
        dnn.recurrent.to_torch("lstm", {"weights_layer": np.zeros((1, 1, 3, 4, 4))})
    weights = dnn.recurrent.from_torch("lstm", torch_state("lstm"))
    with pytest.raises(dnn.InvalidArguments, match=r"one layer of rnn has \[1, d, c, 1, h\]"):
        dnn.recurrent.to_onnx("rnn", weights)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weights_iter": np.zeros((1, 1, 5, 4, 4))}, r"weights_iter has dims \(1, 1, 5, 4, 4\), beside this"),
        ({"bias": np.zeros((1, 2, 4, 4))}, r"bias has dims \(1, 2, 4, 4\), .* it has \(1, 1, 4, 4\)"),
        ({"bias": np.full((1, 1, 4, 4), 1e300)}, "bias has numbers of float64 that are too large for f32"),
        ({"bias": np.zeros((1, 1, 4, 4), np.complex64)}, "bias has dtype complex64"),
        ({"weights_peephole": np.zeros((1, 1, 3, 4))}, "weights has weights_peephole, which torch has no place for"),
        ({"weights": np.zeros(3)}, "weights has 'weights', one layer of lstm has weights_layer, weights_iter, bias"),
    ],
)
def test_weights_of_other_dims_or_types(change: dict[str, Any], says: str) -> None:
    weights = {**dnn.recurrent.from_torch("lstm", torch_state("lstm")), **change}
    with warnings.catch_warnings(), pytest.raises(dnn.InvalidArguments, match=says):
        warnings.simplefilter("error")
        dnn.recurrent.to_torch("lstm", weights)


def test_directions_of_other_dims() -> None:
    state = torch_state("lstm")
    both = state | {f"{name}_reverse": x for name, x in state.items()} | {"weight_ih_l0_reverse": np.zeros((16, 7))}
    with pytest.raises(dnn.InvalidArguments, match="directions must have weights of equal dims"):
        dnn.recurrent.from_torch("lstm", both)


def test_without_bias_it_is_zero() -> None:
    weights = dnn.recurrent.from_torch("lbr_gru", torch_state("lbr_gru", bias=False))
    assert weights["bias"].shape == (1, 1, 4, 4) and not weights["bias"].any()
