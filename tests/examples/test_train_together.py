"""Processes that train one network together learn, to the bit, what one process learns that computes all parts."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from examples import train_together

pytestmark = pytest.mark.isa("avx2")


def test_mean_is_added_in_order() -> None:
    parts = [{"w": np.array([x], np.float32)} for x in (1e8, 1.0, -1e8)]
    assert train_together.mean_of(parts)["w"] == 0
    assert train_together.mean_of([parts[0], parts[2], parts[1]])["w"] == np.float32(1 / 3)


@pytest.mark.skipif(not find_spec("torch"), reason="no torch, by which processes talk")
def test_processes_learn_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    random = np.random.default_rng(0)
    images, targets = random.uniform(0, 1, (300, 1, 8, 8)).astype(np.float32), random.integers(0, 10, 300)
    found, wanted = (train(images, targets, 2, 3) for train in (train_together.together, train_together.alone))
    assert {name: x.tobytes() for name, x in found.items()} == {name: x.tobytes() for name, x in wanted.items()}
    assert any(x.any() for x in found.values())
