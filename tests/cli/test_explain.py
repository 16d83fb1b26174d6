"""`asmdnn explain` as a command: its outputs, and one line for every mistake."""

import json
import re
from pathlib import Path

import pytest

from asmdnn.cli.main import main

PROBLEM = "mb1ic8ih12oc16oh12kh3ph1"


def output_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["explain", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_text(isa: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = output_of(capsys, "--conv", f"--isa={isa}", "--dir=FWD_I", "--kernel=0", PROBLEM)
    assert "\x1b" not in text
    assert re.search(r"chosen    direct:" + isa, text)
    assert re.search(r"^╭ .* mov r9, \[rdx\] .* tap's src = \[taps\] .* conv_taps\.py:\d+$", text, re.MULTILINE)
    ending = r"^╰ .* jnz 0x[0-9a-f]+ <group\d+> .* to group\d unless zero .* conv_taps\.py:\d+$"
    assert re.search(ending, text, re.MULTILINE)
    assert re.search(r"acc\[0\]\[0\] \+= weights\[0, 0\] \* src\[0, 0\]", text)
    assert text.count("kernel 0  conv_f32") == 1


def test_no_listing(capsys: pytest.CaptureFixture[str]) -> None:
    text = output_of(capsys, "--kernel=none", PROBLEM)
    assert "dispatch" in text
    assert "vfmadd231ps" not in text


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(output_of(capsys, "--isa=avx512_core", "--threads=2", "--json", "--kernel=1", PROBLEM))
    assert data["schema"] == 1
    assert (data["implementation"], data["isa"], data["threads"]) == ("direct:avx512_core", "avx512_core", 2)
    assert data["problem"].endswith(PROBLEM)
    assert set(data) == {
        "schema", "problem", "description", "summary", "implementation", "isa", "threads", "implementations", "buffers",
        "phases", "kernels", "sources",
    }  # fmt: skip
    assert [k["number"] for k in data["kernels"] if k["instructions"] is not None] == [1]
    kernel = data["kernels"][1]
    assert (kernel["number"], kernel["name"][:9]) == (1, "conv_f32_")
    for instruction in kernel["instructions"]:
        assert set(instruction) == {
            "offset", "data", "text", "kind", "section", "role", "source", "path", "registers", "labels", "target",
        }  # fmt: skip
        assert bytes.fromhex(instruction["data"])
    assert sum(len(i["data"]) // 2 for i in kernel["instructions"]) == kernel["code_bytes"]


def test_colours_only_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = output_of(capsys, "--kernel=0", PROBLEM)
    assert "\x1b[32m" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = output_of(capsys, "--kernel=0", PROBLEM)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--isa=pentium", PROBLEM), "isa 'pentium' is not one of avx2"),
        (("ic3oc4",), "problem 'ic3oc4': a spatial size is missing"),
        (("--isa=avx2",), "explain: takes one problem, 0 are given"),
        ((PROBLEM, PROBLEM), "explain: takes one problem, 2 are given"),
        (("--batch=resnet_50",), "explain: takes one problem, 20 are given"),
        (("--dt=f4_e3m0", PROBLEM), "f4_e3m0 is not built yet, only f32"),
        (("--stag=nchwx", PROBLEM), "nchwx"),
        (("--html=/nonexistent/page.html", PROBLEM), "--html=/nonexistent/page.html cannot be written: No such file"),
        (("--html", PROBLEM), "explain: --html needs a value"),
        (("--html=", PROBLEM), "explain: --html needs a value"),
        (("--kernel=99", PROBLEM), "explain: --kernel=99 names 0 kernels: give a number from 0 to"),
        (("--kernel=nothing", PROBLEM), "explain: --kernel=nothing names 0 kernels"),
        (("--json=file", PROBLEM), "explain: --json=file is not an option here"),
        (("--colour=always", PROBLEM), "--colour=always: no such option"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["explain", *words]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("asmdnn: ")
    assert says in captured.err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert output_of(capsys, "--help").startswith("asmdnn explain")
