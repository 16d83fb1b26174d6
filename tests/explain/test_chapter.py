"""docs/reading-a-kernel.md shows what the commands print."""

import doctest
import shlex
from pathlib import Path

import pytest

from asmdnn.cli.main import main
from tests.docs.test_docs import BLOCK

PAGE = Path(__file__).parents[2] / "docs" / "reading-a-kernel.md"
SHOWN = [
    (match[2], match[3]) for match in BLOCK.finditer(PAGE.read_text()) if match[1] == "sh" and match[3] is not None
]
EXPLAINED = [(command, output) for command, output in SHOWN if " explain " in command]


def test_there_are_some() -> None:
    assert len(EXPLAINED) >= 5


@pytest.mark.parametrize(("command", "output"), EXPLAINED, ids=range(len(EXPLAINED)))
def test_outputs_are_true(command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(output, printed, flags), f"{command} printed\n{printed}"
