"""ASMDNN_VERBOSE: its words, who hears what, and that silence stays silence."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from asmdnn import environment, verbose
from tests.support.python import python

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(environment.VERBOSE, raising=False)
    for cached in (verbose.introduce, environment._words, environment._warn):
        cached.cache_clear()
    yield
    for cached in (verbose.introduce, environment._words, environment._warn):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""), ("none", ""), ("0", ""), ("exec", "exec"), ("1", "exec"), ("2", "create exec"),
        ("all", "dispatch create exec jit"), ("jit,dispatch", "jit dispatch"), (" Exec , JIT,", "exec jit"),
        ("profile", "create exec"), ("profile_exec,dispatch", "exec dispatch"), ("profile_create", "create"),
        ("none,jit", "jit"),
    ],
)  # fmt: skip
def test_words(text: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.VERBOSE, text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {word for word in verbose.WORDS if verbose.wants(word)} == set(words.split())
        assert verbose.listening() == bool(words)


def test_an_unknown_word_costs_one_warning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(environment.VERBOSE, "exec,loud,3")
    with pytest.warns(RuntimeWarning, match="'loud' or '3': use dispatch, create, exec, jit") as caught:
        for _ in range(3):
            verbose.say("exec", "exec", "1.5")
    assert len(caught) == 1
    assert capsys.readouterr().out == "asmdnn_verbose,v1,exec,1.5\n" * 3


def test_commas_separate_fields_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(environment.VERBOSE, "dispatch")
    verbose.say("dispatch", "one, two", "three")
    verbose.say("exec", "not asked for")
    assert capsys.readouterr().out == "asmdnn_verbose,v1,one; two,three\n"


def test_the_logger_hears_the_same(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert not verbose.listening()
    with caplog.at_level(logging.DEBUG, "asmdnn"):
        assert all(map(verbose.wants, verbose.WORDS))
        verbose.introduce(("info,x",))
        verbose.introduce(("info,x",))
        verbose.say("exec", "exec", "1.5")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("asmdnn", "info,x"), ("asmdnn", "exec,1.5")
    ]  # fmt: skip
    assert capsys.readouterr().out == ""


def test_a_reader_that_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(environment.VERBOSE, "exec")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as broken:
        monkeypatch.setattr(sys, "stdout", broken)
        verbose.say("exec", "exec", "1.5")
        monkeypatch.setattr(sys, "stdout", None)
        verbose.say("exec", "exec", "1.5")
        monkeypatch.undo()
        with pytest.raises(BrokenPipeError):
            broken.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), broken.fileno())


def test_silence_needs_no_logging() -> None:
    script = """
import sys, asmdnn as dnn
d = dnn.MemoryDesc((4, 4), dnn.f32, "ab")
dnn.primitive_desc(dnn.Reorder(d, d), engine=dnn.Engine(isa="avx2", threads=1))
print("logging" in sys.modules)
"""
    assert python(script, without=("ASMDNN_",)) == "False"
