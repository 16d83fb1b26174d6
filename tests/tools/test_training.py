"""tools.training: the same models on every side, by the losses of their first steps."""

from functools import partial

import numpy as np
import pytest

import asmdnn as dnn
from tools.training.__main__ import in_turns, peer_step, row
from tools.training.models import MODELS
from tools.training.steps import own

SMALL = ("mlp", "lenet", "cnn", "lstm", "encoder")


@pytest.mark.parametrize("peer", ["torch", "jax"])
@pytest.mark.parametrize("name", SMALL)
def test_losses_agree(name: str, peer: str) -> None:
    """Rates are small, so differences of rounding stay small over three steps."""
    pytest.importorskip(peer)  # of the extra torch; jax is a peer of this tool alone
    mine, theirs = own(MODELS[name], 2, dnn.Engine(threads=1)), peer_step(peer, MODELS[name], 2, threads=1)
    losses = [(mine(), theirs()) for _ in range(3)]
    for here, there in losses:
        np.testing.assert_allclose(here, there, rtol=1e-4)


def test_sides_take_turns() -> None:
    calls: list[str] = []

    def step(side: str) -> float:
        calls.append(side)
        return 0.0

    times = in_turns({side: partial(step, side) for side in ("own", "torch")}, 0.0)
    assert times.keys() == {"own", "torch"} and all(times.values())
    assert [side for side, before in zip(calls, ["", *calls], strict=False) if side != before] == ["own", "torch"] * 3


def test_a_row_divides_the_middle_times_of_peers_by_ours() -> None:
    text = row("mlp", 64, {"own": [0.001, 0.002, 0.003], "torch": [0.003, 0.004, 0.009], "jax": [0.003, 0.003, 0.003]})
    assert text.split()[-2:] == ["2.00", "1.50"] and "own 1.000 (2.000) ms" in text
