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


@pytest.mark.parametrize(
    "way", [pytest.param("torch"), *(pytest.param(way, marks=pytest.mark.slow) for way in ("ray", "dask"))]
)
def test_processes_learn_what_one_does(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needed, together = train_together.WAYS[way]
    if not find_spec(needed):
        pytest.skip(f"no {needed}, by which processes talk")
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    random = np.random.default_rng(0)
    images, targets = random.uniform(0, 1, (300, 1, 8, 8)).astype(np.float32), random.integers(0, 10, 300)
    found, wanted = (train(images, targets, 2, 3) for train in (together, train_together.alone))
    assert {name: x.tobytes() for name, x in found.items()} == {name: x.tobytes() for name, x in wanted.items()}
    assert any(x.any() for x in found.values())


def test_actors_learn_what_one_process_does() -> None:
    """What Ray's and Dask's processes hold, called here without them."""
    random = np.random.default_rng(0)
    images, targets = random.uniform(0, 1, (300, 1, 8, 8)).astype(np.float32), random.integers(0, 10, 300)
    workers = [train_together.Worker(3) for _ in range(2)]
    for some in train_together.batches(images, targets, 2, 3):
        mean = train_together.mean_of([worker.gradients(part) for worker, part in zip(workers, some, strict=True)])
        for worker in workers:
            worker.apply(mean)
    wanted = train_together.alone(images, targets, 2, 3)
    for worker in workers:
        assert {name: x.tobytes() for name, x in worker.learned().items()} == {
            name: x.tobytes() for name, x in wanted.items()
        }


@pytest.mark.parametrize(("way", "message"), [("ray", "install ray"), ("mpi", "say torch or ray or dask")])
def test_what_it_needs(way: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_together, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=f"train_together: {message}"):
        train_together.main([way])
