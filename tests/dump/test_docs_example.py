"""The C program of docs/dump.md, built and run with the commands of the page, prints what the page says."""

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from asmdnn.cli.main import main
from tests.dump.tools import need, output

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "dump.md"


def block(text: str, language: str, holds: str) -> str:
    (found,) = (body for body in re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S) if holds in body)
    return str(found)


@pytest.mark.isa("avx2")
def test_the_c_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block as it is printed, in a shell whose `asmdnn` is this one."""
    need("gcc", "cc")
    text = PAGE.read_text()
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin/asmdnn"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m asmdnn "$@"\n')
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    printed = output("sh", "-ec", block(text, "sh", "int main"))
    assert printed.splitlines()[-5:] == block(text, "text", "0 5 10").splitlines()[-5:]
    assert printed.splitlines()[0] == block(text, "text", "0 5 10").splitlines()[0]
    output("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Ikernels", "-fsyntax-only", "main.c")


def test_the_printed_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The first command of the page; the names of its kernels change with their specs, and are not compared."""
    text = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(block(text, "sh", "my_layer"))[1:]) == 0
    shown, printed = capsys.readouterr().out.splitlines(), block(text, "text", 'my_layer" in layer').splitlines()
    assert shown[:2] == printed[:2]
    assert shown[2].split("--stop")[0] == printed[2].split("--stop")[0]
    assert len(list((tmp_path / "layer").glob("*.s"))) == int(printed[0].split()[0])
