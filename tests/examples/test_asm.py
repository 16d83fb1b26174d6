"""The functions of examples/asm prove and compare themselves, and print their tables."""

import ast
import importlib
import json
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="the emulator decodes with it: pip install iced-x86")

FOLDER = Path(__file__).parents[2] / "examples" / "asm"
HELPERS = ("__init__", "compiled", "table")
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
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
    assert imported((FOLDER / f"{name}.py").read_text()) <= {"asmdnn", "asmdnn.asm"}


def imported(source: str) -> set[str]:
    """The modules of this library that a text imports from, or whose names it reaches by attributes."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("asmdnn"):
            inner = {f"{node.module}.{name.name}" for name in node.names if name.name in ("asm",)}
            found |= inner if node.module == "asmdnn" else {str(node.module)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("asmdnn")}
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
            found |= set() if is_own else {node.attr}
    return found


def test_private_names_would_be_found() -> None:
    assert imported("from asmdnn.isa.assembler import mem") == {"asmdnn.isa.assembler"}
    assert imported("from asmdnn import asm\nasm.function._x") == {"asmdnn.asm", "_x"}


def test_two_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_runs_on_public_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its cells in order; what they print is what the file shows, but for times."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="notebooks draw: pip install '.[demo]'")
    plt.switch_backend("agg")
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        source = "".join(cell["source"])
        assert imported(source) <= {"asmdnn", "asmdnn.asm"}
        exec(compile(source, name, "exec"), names)
        shown = "".join(line for each in cell["outputs"] for line in each.get("text", ()))
        assert capsys.readouterr().out == shown or "timing" in source
    plt.close("all")
