"""The networks that are kept on disk, in a directory of a test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.network.packs import kept
from asmdnn.network.packs.saved import PackedNetwork


def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What a fixture is made of."""
    monkeypatch.setenv("ASMDNN_CACHE", "1")
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("ASMDNN_DUMP", "ASMDNN_CHECK"):
        monkeypatch.delenv(name, raising=False)
    kept.store.cache_clear()
    yield tmp_path / "cache"
    kept.store.cache_clear()


def is_kept(net: dnn.Network) -> bool:
    return isinstance(getattr(net, "last", net)._source, PackedNetwork)


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.network"))
