"""`asmdnn pack`: the words it takes, the file it writes, and what it refuses."""

import json
from pathlib import Path

import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.jit import packs
from asmdnn.primitives.core.packing import read_pack

PROBLEM = "mb1ic8ih6oc16oh6kh3ph1"
UNTAKEN = ("--alg=wino", "mb1ic8ih6oc16oh3kh3sh2ph1")  # only stride 1 is


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(packs, "_loaded", [])


def test_make_list_load(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pack", "--dir=FWD_I", "--attr-post-ops=relu", PROBLEM, "--isa", "avx512_core,avx2", "-o", "x.pack"]
    assert main(words) == 0
    assert "plans for avx512_core, avx2" in capsys.readouterr().out
    assert main(["pack", "--list", "x.pack"]) == 0
    listed = capsys.readouterr().out.splitlines()
    pack = dnn.load_pack("x.pack")
    assert f"{pack.kernels} kernels and {pack.plans} plans for avx512_core, avx2" in listed[0]
    assert sum(row.startswith("kernel") for row in listed) == pack.kernels
    assert sum(row.startswith("plan") for row in listed) == pack.plans
    assert main(["pack", "--list", "x.pack", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["facts"]["runs here"] == [name for name in found["facts"]["runs here"] if name in pack.isas]
    kinds = [part["kind"] for part in found["parts"]]
    assert (kinds.count("kernel"), kinds.count("plan")) == (pack.kernels, pack.plans)
    assert all(part["bytes"] > 0 and part["key"] and part["isa"] for part in found["parts"])
    assert {entry.isa for entry in pack.entries()} == {"avx512_core", "avx2", "x86_64"}
    kinds = [entry.name for entry in pack.entries() if entry.kind == "plan"]
    assert sum("convolution forward" in name for name in kinds) == 4, "two levels, two propagation kinds"
    assert any("reorder of f32 16x8x3x3 oihw" in name for name in kinds)


def test_sets_and_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").write_text(f"--mb=1 --dir=FWD_I\n{PROBLEM}\n{PROBLEM}\n")
    assert main(["pack", "mine", "--output=x.pack", "--isa=avx2"]) == 0
    assert len(read_pack("x.pack").facts["problems"]) == 1
    assert main(["pack", "--mb=1", "--l2-bytes=1048576", "vgg_16", "-o", "y.pack", "--isa=avx512_core"]) == 0
    assert read_pack("y.pack").facts["l2_bytes"] == 1 << 20
    assert read_pack("y.pack").facts["problems"][0].startswith("--conv mb1ic3ih224")


def test_what_is_no_problem_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    no_layer = "l1t2mb1sic24slc40dhc40"  # the state that it takes is not as wide as the one that it makes
    assert main(["pack", "--dir=FWD_I", PROBLEM, "--rnn", no_layer, "-o", "x.pack"]) == 0
    assert f"skipped {no_layer}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([PROBLEM], "name the file to write"),
        (["-o", "x.pack"], "no problem is given"),
        ([PROBLEM, "-o"], "-o needs a value"),
        (["ic8", "-o", "x.pack"], "ic8"),
        (["nothing_50", "-o", "x.pack"], "nothing_50"),
        ([PROBLEM, "-o", "x.pack", "--isa=sse9"], "isa 'sse9'"),
        ([PROBLEM, "-o", "x.pack", "--isa="], "--isa needs a value, such as --isa=avx2"),
        (["-o", "--isa=avx2", PROBLEM], "-o needs a value before --isa=avx2"),
        (["-o=", PROBLEM], "-o needs a value"),
        (["model.onnx", "-o", "--isa=avx2"], "-o needs a value before --isa=avx2"),
        (["model.onnx", "-o"], "-o needs a value, such as -o model.pack"),
        ([PROBLEM, "--mb=4", "-o", "x.pack"], "--mb=4 stands after the last problem"),
        ([PROBLEM, "-o", "x.pack", "--l2-bytes=much"], "--l2-bytes=much"),
        ([PROBLEM, "-o", "none/x.pack"], "cannot be written"),
        ([PROBLEM, "-o", "."], "cannot be written"),
        ([*UNTAKEN, "-o", "x.pack"], "stride"),
        (["--list"], "--list needs a value"),
        (["--list", "--json"], "--list needs a value before --json"),
        (["--list", "model.onnx"], "--list is for packs, 'model.onnx' is a model: asmdnn run --explain shows one"),
        (["--list=model.onnx", "--json"], "--list is for packs"),
        (["--list", "x.pack", PROBLEM], "takes one file"),
        (["--list", "missing.pack"], "cannot be read"),
        (["--bogus=1", PROBLEM, "-o", "x.pack"], "--bogus=1"),
    ],
)  # fmt: skip
def test_bad_words(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", *words]) == 2
    error = capsys.readouterr().err
    assert what in error
    assert len(error.splitlines()) == 1
    assert not Path("x.pack").exists()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "--help"]) == 0
    assert "resnet_50" in capsys.readouterr().out
