"""The functions of examples/asm prove and compare themselves, and print their tables."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="the emulator decodes with it: pip install iced-x86")

FOLDER = Path(__file__).parents[2] / "examples" / "asm"
HELPERS = ("__init__", "compiled", "table")
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in HELPERS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_runs(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each raises if its function is wrong; its last lines are the table."""
    module = importlib.import_module(f"examples.asm.{name}")
    monkeypatch.setattr(importlib.import_module("examples.asm.table"), "LEAST_SECONDS", 1e-5)
    module.main()
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1].endswith(" x") or "this CPU has no" in printed


@pytest.mark.parametrize("name", [*SCRIPTS, *HELPERS])
def test_only_public_names(name: str) -> None:
    source = (FOLDER / f"{name}.py").read_text()
    imports = [line.split()[1] for line in source.splitlines() if line.startswith(("from asmdnn", "import asmdnn"))]
    assert set(imports) <= {"asmdnn", "asmdnn.asm"}
