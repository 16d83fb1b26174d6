"""`asmdnn analyze` as a command; timings are taken, but nothing is said about them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from asmdnn.cli.main import main
from asmdnn.isa.cpu import cpu_features, cpu_name
from asmdnn.runtime import rates
from asmdnn.runtime.rates import Rates

PROBLEM = "mb1ic8ih6oc16oh6kh1"


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rates,
        "measure",
        lambda isa: Rates(
            cpu_name(), isa, clock_ghz=3.0, fma_gflops=96.0, l1_gbs=200.0, l2_gbs=100.0, l3_gbs=50.0, dram_gbs=20.0
        ),
    )
    monkeypatch.setattr("asmdnn.analyze.measure.SAMPLE_SECONDS", 1e-4)


def output_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["analyze", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.isa("avx2")
def test_text_json_and_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "roofline.svg"
    text = output_of(capsys, "--isa=avx2", "--dir=FWD_I", f"--svg={picture}", PROBLEM)
    assert "FMA peak       96.0 GFLOP/s" in text
    assert ElementTree.parse(picture).getroot().tag.endswith("svg")
    data = json.loads(output_of(capsys, "--isa=avx2", "--dir=FWD_I", "--json", PROBLEM))
    assert data["point"]["flops"] == 2 * 8 * 16 * 36
    assert data["point"]["bytes"] == 4 * (8 * 36 + 16 * 8 + 16 * 36)
    assert data["rates"]["fma_gflops"] == 96.0
    assert all(kernel["measured"]["hot"] > 0 and kernel["measured"]["in_order"] > 0 for kernel in data["kernels"])


@pytest.mark.parametrize(
    ("isa", "types", "instruction"),
    [
        pytest.param(isa, types, instruction, marks=pytest.mark.isa(isa))
        for isa, types, instruction in (
            ("avx2", "u8:s8:f32", "VPMADDWD"),
            ("avx512_core_vnni", "u8:s8:f32", "VPDPBUSD"),
            ("avx512_core_bf16", "bf16:bf16:f32", "VDPBF16PS"),
            ("avx512_core_amx", "bf16:bf16:f32", "TDPBF16PS"),
        )
    ],
)
def test_the_peak_is_that_of_the_dot(
    isa: str,
    types: str,
    instruction: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Pairs of bf16 are fast on one, tiles are on the other.
    monkeypatch.setenv("ASMDNN_MACHINE", "sapphire_rapids" if isa == "avx512_core_amx" else "zen4")
    picture = tmp_path / "roofline.svg"
    words = ("--matmul", f"--isa={isa}", f"--dt={types}", f"--svg={picture}", "64x64:64x64")
    data = json.loads(output_of(capsys, "--json", *words))
    assert set(data["peaks"]) == {"FMA", instruction}
    assert data["peaks"]["FMA"] == data["rates"]["fma_gflops"]
    assert data["point"]["multiply_adds"][instruction] == 2 * 64**3
    assert f"{instruction} peak" in output_of(capsys, *words)
    assert f"{instruction} peak" in picture.read_text()


@pytest.mark.isa("avx2")
def test_weights_of_4_bits(capsys: pytest.CaptureFixture[str]) -> None:
    assert "roofline of one core" in output_of(capsys, "--matmul", "--isa=avx2", "--dt=f32:u4:f32", "1x64:64x64")


@pytest.mark.isa("avx2")
def test_png(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "roofline.png"
    output_of(capsys, "--isa=avx2", f"--png={picture}", PROBLEM)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_level_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    if "avx512f" in cpu_features():
        pytest.skip("this CPU has AVX-512")
    text = output_of(capsys, "--isa=avx512_core", PROBLEM)
    assert "roofline: not measured, isa avx512_core cannot be executed here" in text
    assert main(["analyze", "--isa=avx512_core", "--svg=x.svg", PROBLEM]) == 2
    assert "there is no roofline to draw" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), ""),
        (("--isa=pentium", PROBLEM), "isa 'pentium' is not one of avx2"),
        ((PROBLEM, PROBLEM), "analyze: takes one problem, 2 are given"),
        (("--threads=2", PROBLEM), "analyze: --threads=2: the roofline is that of one core"),
        (("--mcpu=", PROBLEM), "analyze: --mcpu needs a value, such as --mcpu=znver3"),
        (("--png", PROBLEM), "analyze: --png needs a value"),
        (("--svg=/nonexistent/x.svg", "--isa=avx2", PROBLEM), "--svg=/nonexistent/x.svg cannot be written"),
        (("--roof=1", PROBLEM), "--roof=1: no such option"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not words:
        assert output_of(capsys, *words).startswith("asmdnn analyze")
        return
    assert main(["analyze", *words]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert says in captured.err
