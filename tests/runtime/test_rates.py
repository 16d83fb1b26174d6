"""The machine's ceilings: measured once, kept by CPU and level, and never trusted when the file is not sane."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from asmdnn.errors import Unimplemented
from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.cpu import cpu_features, cpu_name
from asmdnn.planning.host import executable_isas
from asmdnn.runtime import peak
from asmdnn.runtime import rates as module
from asmdnn.runtime.rates import FILE, Rates, bandwidth_gbs, clock_ghz, rates


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The levels that were measured, in an empty cache directory, by something faster than the real thing."""
    calls: list[str] = []

    def measure(isa: str) -> Rates:
        calls.append(isa)
        return Rates(
            cpu_name(), isa, clock_ghz=3.0, fma_gflops=96.0, l1_gbs=200.0, l2_gbs=100.0, l3_gbs=50.0,
            dram_gbs=20.0 + len(calls),
        )  # fmt: skip

    monkeypatch.setenv("ASMDNN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "measure", measure)
    return calls


def test_once(measured: list[str], tmp_path: Path) -> None:
    first = rates("avx2")
    assert rates("avx2") == first
    assert measured == ["avx2"]
    assert rates("avx2", again=True).dram_gbs == 22.0
    assert rates("avx2").dram_gbs == 22.0
    assert json.loads((tmp_path / FILE).read_text()) == {cpu_name(): {"avx2": asdict(rates("avx2"))}}
    assert os.listdir(tmp_path) == [FILE]  # no temporary file is left


@pytest.mark.parametrize(
    "content", ["", "nonsense", "[]", "{}", "null", '{"NAME": 3}', '{"NAME": {"avx2": {}}}',
                '{"NAME": {"avx2": {"cpu": "NAME", "isa": "avx2", "clock_ghz": -1}}}', "\x00\xff"],
)  # fmt: skip
def test_a_file_that_is_not_sane(content: str, measured: list[str], tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content.replace("NAME", cpu_name()))
    assert rates("avx2").fma_gflops == 96.0
    assert measured == ["avx2"]
    assert rates("avx2").fma_gflops == 96.0
    assert measured == ["avx2"]  # now it is


@pytest.mark.parametrize("value", ["fast", -1.0, 0, float("inf"), float("nan"), None, True])
def test_numbers_that_are_none(value: object, measured: list[str], tmp_path: Path) -> None:
    sane = asdict(
        Rates(
            cpu_name(), "avx2", clock_ghz=3.0, fma_gflops=96.0, l1_gbs=200.0, l2_gbs=100.0, l3_gbs=50.0, dram_gbs=20.0
        )
    )
    (tmp_path / FILE).write_text(json.dumps({cpu_name(): {"avx2": {**sane, "l2_gbs": value}}}))
    rates("avx2")
    assert measured == ["avx2"]


def test_other_cpus_are_kept_and_not_believed(measured: list[str], tmp_path: Path) -> None:
    other = asdict(
        Rates("another", "avx2", clock_ghz=9.0, fma_gflops=9.0, l1_gbs=9.0, l2_gbs=9.0, l3_gbs=9.0, dram_gbs=9.0)
    )
    (tmp_path / FILE).write_text(json.dumps({"another": {"avx2": other}}))
    assert rates("avx2").clock_ghz == 3.0
    assert json.loads((tmp_path / FILE).read_text())["another"] == {"avx2": other}


def test_no_cache(measured: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CACHE", "0")
    rates("avx2"), rates("avx2")
    assert measured == ["avx2", "avx2"]
    assert os.listdir(tmp_path) == []


def test_a_directory_that_cannot_be_written(measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASMDNN_CACHE_DIR", "/proc/none")
    assert rates("avx2").fma_gflops == 96.0


def test_a_level_that_is_not_here(measured: list[str]) -> None:
    if "avx512f" in cpu_features():
        pytest.skip("this CPU has AVX-512")
    with pytest.raises(Unimplemented, match="avx512_core cannot be executed here"):
        rates("avx512_core")


@pytest.mark.isa("avx2")
def test_real_measurements_are_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLES", 1)
    monkeypatch.setattr(module, "BYTES_OF_SAMPLE", 1 << 24)
    assert 0.1 < clock_ghz() < 10
    assert 0.1 < bandwidth_gbs("avx2", 16 << 10) < 5000


def test_the_cpu_has_a_name() -> None:
    assert "(family " in cpu_name()
    assert cpu_name().isprintable()


def test_rates_that_a_result_exceeds_are_measured_again_and_only_rise(measured: list[str]) -> None:
    first = rates("avx2")
    higher = replace(first, fma_gflops=97.0, l1_gbs=1.0)
    again = rates("avx2", exceeded=higher)
    assert measured == ["avx2", "avx2"]
    assert (again.fma_gflops, again.l1_gbs, again.dram_gbs) == (97.0, 200.0, 22.0)
    assert rates("avx2") == again


def test_rates_are_forgotten(measured: list[str], tmp_path: Path) -> None:
    rates("avx2")
    assert module.forget()
    assert not module.forget()
    assert os.listdir(tmp_path) == []
    rates("avx2")
    assert measured == ["avx2", "avx2"]


def test_load_is_kept_and_told(measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = Rates(
        cpu_name(), "avx2", clock_ghz=3.0, fma_gflops=96.0, l1_gbs=200.0, l2_gbs=100.0, l3_gbs=50.0, dram_gbs=20.0,
        busy_cpus=0.1,
    )  # fmt: skip
    assert quiet.disturbance == ""
    busy = replace(quiet, busy_cpus=1.5)
    assert "other programs kept 1.5 CPUs busy" in busy.disturbance
    monkeypatch.setattr(module, "measure", lambda isa: busy)
    assert rates("avx2") == rates("avx2") == busy


def test_a_peak_that_a_result_exceeds_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, int]] = []
    found = iter((100.0, 90.0, 120.0, 50.0, 200.0))

    def measured(spec: PeakSpec, threads: int) -> float:
        asked.append((spec.isa, spec.instruction, threads))
        return next(found)

    peak._best.cache_clear()
    monkeypatch.setattr(peak, "_measured", measured)
    monkeypatch.setattr(peak, "require_executable", lambda isa: None)
    reached = (0.0, 99.0, 101.0, 105.0, 110.0)
    peaks = [peak.multiply_add_gflops("avx2", "VPMADDWD", reached=r) for r in reached]
    assert peaks == [100.0, 100.0, 100.0, 120.0, 120.0]
    assert peak.multiply_add_gflops("avx2", "VPMULLD") == 50.0
    assert peak.multiply_add_gflops("avx512_core_bf16", threads=2) == 200.0
    assert asked == [("avx2", "VPMADDWD", 1)] * 3 + [("avx2", "VPMULLD", 1), ("avx512_core", "FMA", 2)]
    peak._best.cache_clear()


@pytest.mark.isa("avx2")
def test_real_peaks_are_plausible() -> None:
    assert 0 < peak.multiply_add_gflops("avx2", "VPMADDWD") < 10_000
    if "avx512_core_amx" in [isa.name for isa in executable_isas()]:
        assert 0 < peak.multiply_add_gflops("avx512_core_amx", "TDPBF16PS") < 100_000
        return
    with pytest.raises(Unimplemented, match="avx512_core_amx cannot be executed here"):
        peak.multiply_add_gflops("avx512_core_amx", "TDPBF16PS")
