"""Help that fits: folded lines keep their words and stay under what they describe."""

import importlib.util

import pytest

from asmdnn.cli.main import COMMANDS, main, usage
from asmdnn.cli.terminal import coloured, fold


@pytest.mark.parametrize("command", COMMANDS)
def test_help_folds_to_80_columns(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    folded = fold(text, 80)
    assert folded.split() == text.split()
    assert max(map(len, folded.splitlines())) <= 80


def test_a_folded_option_stays_under_its_description() -> None:
    assert fold("  --name=VALUE   one two three", 24) == "  --name=VALUE   one two\n    three"
    assert fold("  --isa=X  one two three", 24) == "  --isa=X  one two three"
    assert fold("  --isa=X  one two three four", 24) == "  --isa=X  one two three\n           four"


def test_the_overview_fits_80_columns_as_it_is() -> None:
    assert max(map(len, usage().splitlines())) <= 80
    assert all(importlib.util.find_spec(f"asmdnn.cli.{name}") for name in COMMANDS)


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("ok", "good") == "ok"  # a pipe
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert coloured("ok", "good") == "\x1b[32mok\x1b[0m" and coloured("ok", "") == "ok"
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("ok", "good") == "ok"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert coloured("ok", "good") == "ok"


def test_help_of_a_command_by_either_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "studio"]) == 0
    by_word = capsys.readouterr().out
    assert main(["studio", "--help"]) == 0
    assert capsys.readouterr().out == by_word and by_word.startswith("asmdnn studio ")
