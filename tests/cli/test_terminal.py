"""Help that fits: folded lines keep their words and stay under what they describe."""

import importlib.util

import pytest

from asmdnn.cli.main import COMMANDS, main, usage
from asmdnn.cli.terminal import fold


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
