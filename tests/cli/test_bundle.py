"""`asmdnn doctor --bundle`: what is in the zip, what is not, and that a broken machine still gets one."""

import os
import platform
import zipfile
from pathlib import Path

import pytest

from asmdnn.cli import bundle, doctor, info
from asmdnn.cli.main import main
from asmdnn.errors import AsmdnnError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("USER", "somebody")
    monkeypatch.setenv("ASMDNN_CACHE_DIR", "/home/somebody/secret/cache")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("MY_PASSWORD", "hunter2")
    monkeypatch.setattr(info, "cpu_brand", lambda: "A CPU")


def contents(name: str) -> dict[str, str]:
    with zipfile.ZipFile(name) as archive:
        assert archive.testzip() is None
        return {part: archive.read(part).decode() for part in archive.namelist()}


def test_without_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--bundle"]) == 0
    assert capsys.readouterr().out.startswith("asmdnn-bundle.zip: info.txt, doctor.txt")
    parts = contents("asmdnn-bundle.zip")
    assert list(parts) == ["info.txt", "doctor.txt", "environment.txt", "versions.txt", "kernels.txt", "packs.txt"]
    assert "A CPU" in parts["info.txt"]
    assert "exit status" in parts["doctor.txt"]
    assert "ASMDNN_CACHE_DIR=~/secret/cache\n" in parts["environment.txt"]
    assert "OMP_NUM_THREADS=2\n" in parts["environment.txt"]
    assert "numpy " in parts["versions.txt"]
    assert "generators " in parts["versions.txt"]
    everything = "".join(parts.values())
    assert "hunter2" not in everything
    assert "somebody" not in everything


def test_a_problem_brings_plan_and_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "cache"))
    words = ["--conv", "--dir=FWD_I", "--isa=avx2", "--threads=1", "mb1ic8ih6oc16oh6kh3ph1"]
    assert main(["doctor", "--bundle=x.zip", *words]) == 0
    parts = contents("x.zip")
    assert parts["problem.txt"].startswith("asmdnn bench --conv --dir=FWD_I --isa=avx2 --threads=1 mb1ic8")
    assert "direct:avx2" in parts["plan0.txt"]
    assert "conv_f32_" in parts["plan0.txt"]
    assert "exit status" in parts["run0.txt"]


def test_what_cannot_be_planned_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["doctor", "--bundle=x.zip", "--isa=sse9", "mb1ic8ih6oc16oh6kh3ph1"]) == 0
    parts = contents("x.zip")
    assert "InvalidArguments: isa 'sse9'" in parts["plan0.txt"]
    assert "asmdnn: isa 'sse9'" in parts["run0.txt"]
    assert "exit status 2" in parts["run0.txt"]


def test_a_broken_machine_still_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> tuple[str, str]:
        raise RuntimeError("unexpected")

    monkeypatch.setitem(doctor.CHECKS, "ISA", fail)
    monkeypatch.setattr(info, "cpu_brand", lambda: (_ for _ in ()).throw(AsmdnnError("no CPU")))
    assert main(["doctor", "--bundle=x.zip"]) == 0
    parts = contents("x.zip")
    assert "RuntimeError: unexpected" in parts["doctor.txt"]
    assert "no CPU" in parts["info.txt"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--bundle=none/x.zip"], "cannot be written"),
        (["--bundle=."], "cannot be written"),
        (["--bundle=x.zip", "ic8"], "ic8"),
        (["--bundle=x.zip", "--dir=FWD_I"], "takes a problem"),
        (["--bundel=x.zip"], "no option '--bundel=x.zip': did you mean --bundle"),
    ],
)
def test_bad_words(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *words]) == 2
    error = capsys.readouterr().err
    assert what in error
    assert len(error.splitlines()) == 1
    assert not os.path.exists("x.zip")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/home/somebody/x", "~/x"), ("/home/somebody", "~"), ("/home/other/x:1", "~/x:1"), ("/homes/x", "/homes/x"),
        ("somebody@host", "NAME@host"), ("somebodyelse", "somebodyelse"), ("/home/somebody2/x", "~/x"),
    ],
)  # fmt: skip
def test_names_are_taken_out(text: str, clean: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "machine7")
    assert bundle.without_names(text) == clean
    assert bundle.without_names("on machine7.") == "on NAME."
