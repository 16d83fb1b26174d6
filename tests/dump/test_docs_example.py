"""The C program of docs/dump.md, built and run with the commands of the page, prints what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from asmdnn.cli.main import main
from tests.dump.tools import need, output

PAGE = Path(__file__).parents[2] / "docs" / "dump.md"


def block(text: str, language: str, holds: str) -> str:
    (found,) = (body for body in re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S) if holds in body)
    return str(found)


@pytest.mark.isa("avx2")
def test_the_c_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("gcc")
    text = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(block(text, "sh", "--all-specs"))[1:]) == 0
    (tmp_path / "main.c").write_text(block(text, "c", "int main"))
    command = block(text, "sh", "gcc ")
    output("sh", "-c", command.replace("&& ./main", "-Wall -Wextra -Werror"))
    assert output("./main") == block(text, "text", "0 8 16")


def test_the_printed_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first command of the page; the names of its kernels change with their specs, and are not compared."""
    text = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(block(text, "sh", "my_layer"))[1:]) == 0
    shown, printed = capsys.readouterr().out.splitlines(), block(text, "text", "4 kernels of").splitlines()
    assert shown[:2] == printed[:2]
    assert shown[2].split("--stop")[0] == printed[2].split("--stop")[0]
    assert len(list((tmp_path / "layer").glob("*.s"))) == 4
