"""`asmdnn export`: a model, a problem, and one line for every mistake."""

from pathlib import Path

import pytest

from asmdnn.cli.main import main
from asmdnn.export import writing
from tests.network import wire

PROBLEM = "mb1ic8ih6oc16oh6kh3ph1"
RUNTIME = {"asmdnn_runtime.c", "asmdnn_runtime.h"}


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing.shutil, "which", lambda name: None)


def test_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["export", f"--c={out}", "--isa=avx512_core", "--threads=3", "--conv", PROBLEM]) == 0
    assert {path.name for path in out.iterdir()} == {f"conv_{PROBLEM}.o", f"conv_{PROBLEM}.h", *RUNTIME}
    said = capsys.readouterr().out
    assert said.startswith(f"conv_{PROBLEM} for avx512_core in {out}: conv_{PROBLEM}.o, ")
    text = (out / f"conv_{PROBLEM}.h").read_text()
    assert "const float *weights; /* weights: f32 16x8x3x3 " in text
    assert "For avx512_core, one thread." in text  # it is too small for more


def test_a_model(tmp_path: Path) -> None:
    (tmp_path / "1st model.onnx").write_bytes(wire.small())
    words = ["export", "--c", str(tmp_path / "c"), "--isa=avx2", "--threads=2", "--shape=x:1x3x4x8"]
    assert main([*words, str(tmp_path / "1st model.onnx")]) == 0
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"_1st_model.o", "_1st_model.h", *RUNTIME}
    assert main([*words, "--name=mine", str(tmp_path / "1st model.onnx")]) == 0
    assert "extern const asmdnn_network mine_network;" in (tmp_path / "c" / "mine.h").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([PROBLEM], "export: no folder is given: say --c=DIR"),
        ([PROBLEM, "--c="], "export: --c needs a value, such as --c=DIR"),
        ([PROBLEM, "--c", "--name=x"], "export: --c needs a value before --name=x, such as --c=DIR"),
        (["--c=DIR"], "export: takes one problem, 0 are given"),
        (["--c=DIR", PROBLEM, PROBLEM], "export: takes one problem, 2 are given"),
        (["--c=DIR", "--name=for", PROBLEM], "name must be a name of C for files and symbols, such as scorer"),
        (["--c=DIR", "missing.onnx"], "'missing.onnx' cannot be read"),
        (["--c=DIR", "--what=1", "missing.onnx"], "export: no option '--what=1'"),
        (["--c=/proc/x", PROBLEM], "the folder '/proc/x' cannot be written"),
        (["--c=DIR", "--isa=sse9", PROBLEM], "isa 'sse9' is not one of"),
    ],
)
def test_mistakes(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *(word.replace("DIR", str(tmp_path / "c")) for word in words)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"asmdnn: {message}")
    assert said.count("\n") == 1
    assert not (tmp_path / "c").exists()
