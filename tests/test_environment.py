"""Environment variables: one module reads them, one meaning for yes and no, and what means nothing is said once."""

import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from asmdnn import environment, verbose
from asmdnn.jit import profiling, store
from asmdnn.primitives.core import checking
from asmdnn.runtime import kernels

ROOT = Path(__file__).parents[1]
SOURCES = [path for path in (ROOT / "asmdnn").rglob("*.py") if path.name != "environment.py"]


def forget() -> None:
    for cached in (environment._warn, environment._warn_of_unknown_names, environment._words):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (environment.CACHE, environment.CHECK, environment.VERBOSE, environment.JIT_PROFILE, environment.DUMP):
        monkeypatch.delenv(name, raising=False)
    forget()
    yield
    forget()


def test_nobody_else_reads_the_environment() -> None:
    """Passing it on to a program is another thing."""
    reads = re.compile(r"os\.environ(\.get|\[)|os\.getenv|expandvars")
    assert [path for path in SOURCES if reads.search(path.read_text())] == []


def test_every_variable_that_the_sources_name_is_known() -> None:
    named = {name for path in SOURCES for name in re.findall(r"ASMDNN_[A-Z_]+\b", path.read_text())}
    assert named <= set(environment.KNOWN)


FLAGS = {environment.CACHE: store.enabled, environment.CHECK: checking.is_checking}


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize(
    ("value", "meaning"),
    [("1", True), ("yes", True), ("On", True), ("TRUE", True), ("0", False), ("no", False), ("Off", False),
     ("false", False), (" NO ", False)],
)  # fmt: skip
def test_yes_and_no(name: str, value: str, meaning: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FLAGS[name]() is meaning


@pytest.mark.parametrize("name", FLAGS)
def test_neither_yes_nor_no_is_the_default_with_one_warning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = FLAGS[name]()
    monkeypatch.setenv(name, "")
    assert FLAGS[name]() is default
    monkeypatch.setenv(name, "perhaps")
    with pytest.warns(RuntimeWarning, match=f"{name}=perhaps is neither yes nor no and is ignored: use 1") as caught:
        assert [FLAGS[name]() for _ in range(3)] == [default] * 3
    assert len(caught) == 1


@pytest.mark.parametrize("word", ["0", "no", "off", "False", "none"])
def test_no_in_a_list_of_words_is_nothing(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (environment.VERBOSE, environment.JIT_PROFILE):
        monkeypatch.setenv(name, word)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not any(map(verbose.wants, verbose.WORDS))
        assert profiling.wanted() == frozenset()


def test_a_misspelt_variable_costs_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CASHE", "0")
    with pytest.warns(RuntimeWarning, match="ASMDNN_CASHE is no variable of asmdnn and is ignored") as caught:
        assert store.enabled()
        assert store.enabled()
    assert len(caught) == 1


def test_a_home_directory_in_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (environment.CACHE_DIR, environment.DUMP, "JITDUMPDIR"):
        monkeypatch.setenv(name, "~/somewhere")
    wanted = tmp_path / "somewhere"
    assert store.default_directory() == wanted
    assert profiling.directory() == str(wanted)
    assert kernels._dumper() is not None
    assert environment.path(environment.DUMP) == wanted


def test_what_is_unset_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert environment.text("XDG_CACHE_HOME") == ""
    assert environment.path("XDG_CACHE_HOME") is None
    assert environment.words("XDG_CACHE_HOME", ("a",)) == frozenset()
    assert environment.everything() == dict(sorted(os.environ.items()))
