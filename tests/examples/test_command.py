"""Every example has --help, and says in a sentence what is wrong."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from examples.command import command
from examples.models import MissingModel

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [path for path in sorted((ROOT / "examples").rglob("*.py")) if "\nif __name__" in path.read_text()]
OTHERS = {"models", "__main__", "load", "overload", "rootfs"}  # which have options, or take no words


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.stem not in OTHERS], ids=lambda path: path.stem)
def test_every_example_is_such_a_command(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"    command\(main, __doc__(, most=(1|None))?\)\n$", text)
    assert re.search(r"python -m examples\.", text) or "asm" in path.parts


def ended(monkeypatch: pytest.MonkeyPatch, *words: str, error: Exception | None = None) -> str:
    def main(given: list[str]) -> None:
        assert given == [*words]
        if error:
            raise error

    monkeypatch.setattr(sys, "argv", ["some.py", *words])
    with pytest.raises(SystemExit) as found:
        command(main, "What it does.", most=1)
    return str(found.value)


def test_what_is_wrong_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, "x", error=MissingModel("no digits")) == "some.py: no digits"
    assert ended(monkeypatch, "x", error=EOFError()) == "some.py: EOFError"
    missing = FileNotFoundError(2, "No such file or directory", "x.wav")
    assert ended(monkeypatch, "x.wav", error=missing) == "some.py: x.wav cannot be used: No such file or directory"
    assert ended(monkeypatch, "--fast") == "some.py: '--fast' is no option; --help says what there is"
    assert ended(monkeypatch, "x", "y") == "some.py: it takes 1 word, not x y; see --help"
    monkeypatch.setattr(sys, "argv", ["some.py", "--help"])
    command(lambda: pytest.fail("it ran"), "What it does.\n")
    assert capsys.readouterr().out == "What it does.\n"


def test_a_file_that_is_no_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("scipy", "matplotlib"):
        pytest.importorskip(package, reason="the example draws with it: pip install '.[demo]'")
    voice = importlib.import_module("examples.voice_activity")
    monkeypatch.setattr(sys, "argv", ["voice.py", str(ROOT / "README.md")])
    with pytest.raises(SystemExit, match=r"voice\.py: file does not start with RIFF id"):
        command(voice.main, voice.__doc__, most=1)
