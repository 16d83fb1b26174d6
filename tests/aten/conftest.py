"""What all tests of compiled modules have in common."""

from weakref import WeakSet

import pytest


@pytest.fixture(autouse=True)
def own_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `backend.explain` speaks of are the graphs of this test: those of one before live until Python's collector
    comes, as they hold themselves."""
    from asmdnn.aten import backend

    monkeypatch.setattr(backend, "_graphs", WeakSet())
