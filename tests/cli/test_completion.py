"""`asmdnn completion`: the script knows every command, and bash completes by it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from asmdnn.cli.completion import command_words
from asmdnn.cli.main import COMMANDS, main

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


def test_options_are_those_of_the_help() -> None:
    assert command_words("compare") == ["--change=", "--help", "--json", "--slower="]
    assert {"list", "prune", "clear", "--json", "--help"} == set(command_words("cache"))
    assert {"--conv", "--matmul", "--batch=", "--mode=", "--json=", "--rank", "--network"} <= set(
        command_words("bench")
    )
    assert command_words("completion") == ["bash", "zsh", "--help"]


@needs_bash
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        (["asmdnn", "comp"], ["compare", "completion"]),
        (["asmdnn", "help", "sh"], ["show"]),
        (["asmdnn", "cache", "p"], ["page.onnx", "prune"]),
        (["asmdnn", "compare", "--s"], ["--slower="]),
        (["asmdnn", "run", "--input", "=", "p"], ["page.onnx"]),
        (["asmdnn", "run", "--input", "="], ["page.onnx"]),
        (["asmdnn", "run", "pa"], ["page.onnx"]),
    ],
)
def test_bash(line: list[str], completed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "page.onnx").touch()
    words = " ".join(f"'{word}'" for word in line)
    script += f"\ncompopt() {{ :; }}\nCOMP_WORDS=({words})\nCOMP_CWORD={len(line) - 1}\n_asmdnn\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.split() == completed


def test_zsh_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("#compdef asmdnn\n")
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("words", [(), ("fish",), ("bash", "zsh")])
def test_mistakes(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", *words]) == 2
    assert "completion: expected bash or zsh" in capsys.readouterr().err
