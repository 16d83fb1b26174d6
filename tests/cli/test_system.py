"""`info`, `doctor` and `cache`: the rows, the verdicts, and the kernels on disk."""

import json
import subprocess
from pathlib import Path

import pytest

from asmdnn.cli import doctor, info
from asmdnn.cli.main import main
from asmdnn.errors import AsmdnnError
from asmdnn.isa.levels import LEVELS
from asmdnn.jit.store import DiskStore
from asmdnn.planning.host import as_machine, effective_isa
from asmdnn.planning.machine import machine_of

RUNS = "; sums of the same type if allowed: f16"


@pytest.fixture(autouse=True)
def cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "kernels"
    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(directory))
    monkeypatch.delenv("ASMDNN_CACHE", raising=False)
    return directory


def rows(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("machine", "row"), [
    ("zen4", "native: f32, bf16, u8 x s8, s8 x s8; widened to f32: f16"),
    ("sapphire_rapids", f"tiles for many rows: bf16, u8 x s8, s8 x s8; native: f32; widened to f32: f16{RUNS}"),
    ("zen3", "native: f32; widened to f32: bf16, f16; exact by words: u8 x s8, s8 x s8"),
])  # fmt: skip
def test_products_of_machines(capsys: pytest.CaptureFixture[str], machine: str, row: str) -> None:
    """Tiles of AMX take many rows; few rows go by vectors."""
    with as_machine(machine_of(machine)):
        assert main(["info"]) == 0
    assert f"{'products':<{info.NAME_WIDTH}} {row}" in rows(capsys)


def test_products_of_every_level(capsys: pytest.CaptureFixture[str]) -> None:
    """Also of levels that the machine lacks; one that has VDPBF16PS, but slowly, says so."""
    with as_machine(machine_of("zen3")):
        assert main(["info"]) == 0
    found = {row[: info.NAME_WIDTH].strip(): row[info.NAME_WIDTH :].strip() for row in rows(capsys)}
    assert {level.name: found[level.name] for level in LEVELS} == {
        "avx2": "native: f32; widened to f32: bf16, f16; exact by words: u8 x s8, s8 x s8",
        "avx2_vnni": "native: f32, u8 x s8, s8 x s8; widened to f32: bf16, f16",
        "avx512_core": "native: f32; widened to f32: bf16, f16; exact by words: u8 x s8, s8 x s8",
        "avx512_core_vnni": "native: f32, u8 x s8, s8 x s8; widened to f32: bf16, f16",
        "avx512_core_bf16": "native: f32, bf16, u8 x s8, s8 x s8; widened to f32: f16",
        "avx512_core_fp16": f"native: f32, bf16, u8 x s8, s8 x s8; widened to f32: f16{RUNS}",
        "avx512_core_amx": f"tiles for many rows: bf16, u8 x s8, s8 x s8; native: f32; widened to f32: f16{RUNS}",
    }


def test_info(capsys: pytest.CaptureFixture[str], cache_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "cpu_brand", lambda: "A CPU")
    assert main(["info"]) == 0
    found = {row[: info.NAME_WIDTH].strip(): row[info.NAME_WIDTH :].strip() for row in rows(capsys)}
    assert found["CPU"] == "A CPU"
    assert "avx2" in found["features"].split()
    assert effective_isa().name in found["ISA levels"].split(", ")
    assert found["kernel cache"] == str(cache_directory)
    assert "L2" in found["caches"]


def test_info_tells_a_cap(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "cpu_brand", lambda: "A CPU")
    monkeypatch.setenv("ASMDNN_MAX_CPU_ISA", "avx2")
    assert main(["info"]) == 0
    assert any("avx2, capped by ASMDNN_MAX_CPU_ISA=avx2" in row for row in rows(capsys))


def answers(monkeypatch: pytest.MonkeyPatch, output: bytes | None) -> None:
    """What py-cpuinfo prints; None: it hangs."""

    def run(*command: object, **options: object) -> "subprocess.CompletedProcess[bytes]":
        if output is None:
            raise subprocess.TimeoutExpired("cpuinfo", 1)
        return subprocess.CompletedProcess([], 0, output)

    monkeypatch.setattr(info, "find_spec", lambda name: object())
    monkeypatch.setattr(info.subprocess, "run", run)


@pytest.mark.parametrize("output", [b"", b"{", b"[]", b'{"brand_raw": ""}', None])
@pytest.mark.parametrize("listed", ["processor\t: 0\nflags\t: fpu\n", None])
def test_a_cpu_of_which_nobody_knows_the_name(
    output: bytes | None, listed: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "cpuinfo"
    if listed is not None:
        path.write_text(listed)
    monkeypatch.setattr(info, "CPU_LIST", path)
    answers(monkeypatch, output)
    assert info.cpu_brand() == "unknown"


def test_the_cpus_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That of Linux, for which no process is started, else py-cpuinfo's."""
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(info, "CPU_LIST", path)
    answers(monkeypatch, b'{"brand_raw": " CPU B"}')
    assert info.cpu_brand() == "CPU B"
    path.write_text("processor\t: 0\nmodel name\t: CPU A\nmodel name\t: CPU C\n")
    assert info.cpu_brand() == "CPU A"


def test_doctor_finds_this_machine_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = rows(capsys)
    assert lines[-1] == "ready"
    assert {line[9:27].strip() for line in lines} >= set(doctor.CHECKS)


@pytest.mark.parametrize("subject", list(doctor.CHECKS))
def test_doctor_reports_what_is_missing(
    subject: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> tuple[str, str]:
        raise AsmdnnError("get it\nthis way")

    monkeypatch.setitem(doctor.CHECKS, subject, fail)
    assert main(["doctor"]) == 1
    lines = rows(capsys)
    assert f"missing  {subject:<18} get it this way" in lines
    assert lines[-1] == f"not ready: {subject}"


def test_doctor_on_the_cache(monkeypatch: pytest.MonkeyPatch, cache_directory: Path) -> None:
    status, text = doctor.CHECKS["kernel cache"]()
    assert (status, text) == ("ok", str(cache_directory))
    assert not cache_directory.exists()  # looking changes nothing
    cache_directory.mkdir(mode=0o777)
    cache_directory.chmod(0o777)
    status, text = doctor.CHECKS["kernel cache"]()
    assert status == "absent"
    assert str(cache_directory) in text
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    assert doctor.CHECKS["kernel cache"]()[0] == "absent"


def test_cache_list_and_clear(capsys: pytest.CaptureFixture[str], cache_directory: Path) -> None:
    store = DiskStore(cache_directory)
    store.put("a" * 64, "conv_one__avx2", b"\xc3")
    store.put("b" * 64, "conv_two__avx2", b"\xc3" * 100)
    assert main(["cache", "list"]) == 0
    lines = rows(capsys)
    assert [line.split()[-1] for line in lines[:2]] == ["conv_one__avx2", "conv_two__avx2"]
    assert lines[2].startswith("2 kernels, ")
    assert main(["cache", "clear"]) == 0
    assert rows(capsys) == [f"2 kernels and networks removed from {cache_directory}"]
    assert main(["cache", "list"]) == 0
    assert rows(capsys) == [f"0 kernels, 0.0 KiB in {cache_directory}"]


@pytest.mark.parametrize("size", ["64", " 1048575", "1"])
def test_prune_refuses_a_size_without_its_unit(
    size: str, capsys: pytest.CaptureFixture[str], cache_directory: Path
) -> None:
    """It would remove nearly everything; 0, and a size with a unit, are meant."""
    DiskStore(cache_directory).put("a" * 64, "conv_one__avx2", b"\xc3")
    assert main(["cache", "prune", size]) == 2
    assert f"SIZE={size.strip()}" in (said := capsys.readouterr().err.replace("= ", "="))
    assert f"say {size.strip()}M, or {size.strip()}B" in said
    assert len(DiskStore(cache_directory).list()) == 1
    assert main(["cache", "prune", "1048576"]) == 0
    assert len(DiskStore(cache_directory).list()) == 1
    assert main(["cache", "prune", "1B"]) == 0
    assert not DiskStore(cache_directory).list()


@pytest.mark.parametrize("words", [["prune", "--help"], ["list", "-h"], ["--help", "list"]])
def test_help_of_a_word_of_cache(words: list[str], capsys: pytest.CaptureFixture[str], cache_directory: Path) -> None:
    DiskStore(cache_directory).put("a" * 64, "conv_one__avx2", b"\xc3")
    assert main(["cache", *words]) == 0
    assert capsys.readouterr().out.startswith("asmdnn cache list")
    assert len(DiskStore(cache_directory).list()) == 1


def test_info_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "cpu_brand", lambda: "A CPU")
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert main(["info"]) == 0
    shown = {row[: info.NAME_WIDTH].strip(): row[info.NAME_WIDTH :].strip() for row in rows(capsys)}
    assert found == shown


def test_doctor_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ready"] is True
    assert {finding["subject"] for finding in found["findings"]} >= set(doctor.CHECKS)
    monkeypatch.setitem(doctor.CHECKS, "ISA", lambda: ("missing", "no CPU"))
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ready"] is False
    assert {"subject": "ISA", "status": "missing", "text": "no CPU"} in found["findings"]


def test_cache_list_as_json(capsys: pytest.CaptureFixture[str], cache_directory: Path) -> None:
    DiskStore(cache_directory).put("a" * 64, "conv_one__avx2", b"\xc3")
    assert main(["cache", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (kernel,) = found.pop("kernels")
    assert (kernel["name"], kernel["key"], kernel["bytes"] > 1) == ("conv_one__avx2", "a" * 64, True)
    assert 0 <= kernel["unused_s"] < 3600
    assert found == {"directory": str(cache_directory), "enabled": True, "networks": [], "tuned": [], "machine": {}}


@pytest.mark.parametrize("words", [["info", "--jso"], ["doctor", "--json", "x"], ["cache", "clear", "--json"]])
def test_json_is_one_word_and_only_shows(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
