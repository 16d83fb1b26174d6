"""Recurrent layers over sequences: against values by hand, and against the cells of oneDNN's equations."""

from math import exp, tanh
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, Net, ReferenceRun
from asmdnn.definitions.recurrent.sequences import (
    FUNCTIONS,
    GATES,
    USUAL_FUNCTIONS,
    SequenceLayer,
    SequenceWeights,
)

Floats = npt.NDArray[Any]
T, N, C, H = 4, 3, 5, 2
ORDERS = {"LSTM": [0, 2, 3, 1], "GRU": [0, 1, 2], "RNN": [0]}  # oneDNN's gates i f g o and u r o, by ONNX's numbers
ALGS = {"LSTM": "VANILLA_LSTM", "GRU": "VANILLA_GRU", "RNN": "VANILLA_RNN"}
BACKWARDS = {LEFT2RIGHT: (False,), RIGHT2LEFT: (True,), CONCAT: (False, True)}


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def made(cell: str, backwards: tuple[bool, ...] = (False,), **more: Any) -> SequenceLayer:
    functions = tuple(FUNCTIONS[name] for name in USUAL_FUNCTIONS[cell])
    return SequenceLayer(cell, backwards, (functions,) * len(backwards), **more)


def weights(w: list[float], r: list[float], b: list[float], p: list[float] | None = None) -> SequenceWeights:
    """Of one unit and one channel; a half of each bias on either side."""
    column, half = np.array(w)[:, None], np.array(b) / 2
    return SequenceWeights(column, np.array(r)[:, None], half, half, None if p is None else np.array(p))


def results(layer: SequenceLayer, own: SequenceWeights, x: list[float]) -> tuple[Floats, Floats]:
    """All h, and the last c, of one sequence."""
    outputs, last, cells = layer.run(np.array(x).reshape(-1, 1, 1), [own])
    assert last.ravel() == outputs.ravel()[-1:]
    return outputs.ravel(), cells.ravel()


def test_an_lstm_by_hand() -> None:
    """Gates i o forget c, with peepholes."""
    h, c, expected = 0.0, 0.0, []
    for x in (0.5, -1.0):
        i = sigmoid(0.1 * x + 0.5 * h + 0.2 * c + 0.02)
        forget = sigmoid(0.3 * x - 0.7 * h - 0.4 * c + 0.06)
        c = forget * c + i * tanh(0.4 * x + 0.8 * h - 0.08)
        h = sigmoid(-0.2 * x + 0.6 * h + 0.3 * c + 0.04) * tanh(c)
        expected.append(h)
    own = weights([0.1, -0.2, 0.3, 0.4], [0.5, 0.6, -0.7, 0.8], [0.02, 0.04, 0.06, -0.08], [0.2, 0.3, -0.4])
    outputs, cells = results(made("LSTM"), own, [0.5, -1.0])
    assert outputs == pytest.approx(expected, rel=1e-12)
    assert cells == pytest.approx([c], rel=1e-12)


@pytest.mark.parametrize("linear", [False, True])
def test_a_gru_by_hand(linear: bool) -> None:
    """Gates z r n; of one unit and no bias within, both forms differ by where the bias of R is."""
    h, expected = 0.0, []
    for x in (0.5, -1.0):
        z, r = sigmoid(0.1 * x + 0.4 * h + 0.2), sigmoid(0.2 * x - 0.5 * h - 0.4)
        inner = r * (0.6 * h + 0.3) if linear else 0.6 * r * h + 0.3
        h = (1 - z) * tanh(-0.3 * x + 0.3 + inner) + z * h
        expected.append(h)
    own = weights([0.1, 0.2, -0.3], [0.4, -0.5, 0.6], [0.2, -0.4, 0.6])
    outputs, _ = results(made("GRU", linear_before_reset=linear), own, [0.5, -1.0])
    assert outputs == pytest.approx(expected, rel=1e-12)


def test_an_rnn_by_hand() -> None:
    first = tanh(0.5 * 0.3 + 0.1)
    outputs, _ = results(made("RNN"), weights([0.3], [-0.9], [0.1]), [0.5, 2.0])
    assert outputs == pytest.approx([first, tanh(2.0 * 0.3 - 0.9 * first + 0.1)], rel=1e-12)


@pytest.mark.parametrize("lengths", [None, np.array([4, 1, 2])], ids=["equal", "lengths"])
@pytest.mark.parametrize("direction", BACKWARDS)
@pytest.mark.parametrize("cell", GATES)
def test_cells_of_onednn(cell: str, direction: str, lengths: Any) -> None:
    """Another implementation, of other names, orders and dims, which torch agrees with (test_recurrent.py)."""
    random = np.random.default_rng(11)
    backwards, gates, order = BACKWARDS[direction], GATES[cell], ORDERS[cell]
    d = len(backwards)
    x, h0, c0 = (random.uniform(-1, 1, dims) for dims in ((T, N, C), (d, N, H), (d, N, H)))
    w, r, b = (random.uniform(-1, 1, (d, gates, H, *rest)) for rest in ((C,), (H,), ()))
    own = [SequenceWeights(w[k].reshape(-1, C), r[k].reshape(-1, H), b[k].ravel(), np.zeros(1)) for k in range(d)]
    found = made(cell, backwards).run(x, own, h0, c0 if cell == "LSTM" else None, lengths)
    arrays = {"src_layer": x, "src_iter": h0[None], "bias": b[None][:, :, order]}
    arrays |= {f"weights_{name}": a[:, order].transpose(0, 3, 1, 2)[None] for name, a in (("layer", w), ("iter", r))}
    if cell == "LSTM":
        arrays["src_iter_c"] = c0[None]
    expected = ReferenceRun(Net(ALGS[cell], direction), arrays, lengths).results
    outputs = found[0].transpose(0, 2, 1, 3).reshape(T, N, d * H)
    np.testing.assert_allclose(outputs, expected["dst_layer"].value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found[1], expected["dst_iter"].value[0], rtol=0, atol=1e-12)
    if cell == "LSTM":
        np.testing.assert_allclose(found[2], expected["dst_iter_c"].value[0], rtol=0, atol=1e-12)
