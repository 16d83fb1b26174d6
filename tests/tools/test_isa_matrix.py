"""Some kernels on the emulated Haswell and on this CPU: right there, and what is wrong is noticed."""

import re
from pathlib import Path

import pytest

from asmdnn.corpus.families import kernel_specs
from tools.isa_matrix import __main__ as tool
from tools.isa_matrix import case_file, machines

EVERY = 30


def programs(*, emulator: bool) -> None:
    """Skip where one is missing, and say which."""
    try:
        machines.compiler()
        if emulator:
            machines.qemu()
    except machines.Missing as missing:
        pytest.skip(str(missing))


def test_kernels_on_the_emulated_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    programs(emulator=True)
    assert tool.main([f"--every={EVERY}", "--no-library"]) == 0
    lines = capsys.readouterr().out.splitlines()
    count = len([spec for spec in kernel_specs() if spec.isa == "avx2"][::EVERY])
    assert lines[0].startswith(f"{count} avx2 kernels on qemu-x86_64")
    assert lines[1].startswith(f"{count} executed") and "; 0 failed; the CPU has avx2: yes, avx512f: no" in lines[1]


def test_the_emulated_cpu_has_no_avx512(capsys: pytest.CaptureFixture[str]) -> None:
    programs(emulator=True)
    assert tool.main(["--isa=avx512_core", "--every=200"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all("Illegal instruction" in line for line in lines[1:-2])
    executed, failed = re.findall(r"(\d+) (?:executed|failed)", lines[-2])
    assert executed == failed != "0"


@pytest.mark.isa("avx2")
def test_kernels_on_this_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    """Guard pages directly beside the buffers."""
    programs(emulator=False)
    assert tool.main([f"--every={EVERY}", "--native"]) == 0
    assert "; 0 failed" in capsys.readouterr().out


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("place", "says"), [("wanted", "byte "), ("code", "Segmentation fault")])
def test_what_is_wrong_is_noticed(
    place: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another expectation; a kernel that reads from address 0."""
    programs(emulator=False)
    if place == "wanted":
        right = case_file.wanted_bytes
        monkeypatch.setattr(case_file, "wanted_bytes", lambda buffer: right(buffer)[:-1] + b"\x55")
    else:
        right_case = case_file.case_bytes
        code = bytes.fromhex("488b042500000000")  # mov rax, [0]

        def wrong(spec: object, slack: int) -> bytes:
            found = right_case(spec, slack)  # type: ignore[arg-type]
            at = 8 + int.from_bytes(found[:8], "little") + 8
            return found[:at] + code + found[at + len(code) :]

        monkeypatch.setattr(case_file, "case_bytes", wrong)
    assert tool.main(["--every=300", "--native"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("FAIL ") and says in lines[1]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(machines, "FETCHED", Path("/nonexistent"))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert tool.main([]) == 2
    error = capsys.readouterr().err
    assert (
        error.startswith("isa_matrix: qemu-x86_64 is not on PATH: apt-get install qemu-user") and error.count("\n") == 1
    )
    assert tool.main(["--native"]) == 2
    assert capsys.readouterr().err == "isa_matrix: gcc is not on PATH: apt-get install gcc libc6-dev\n"


@pytest.mark.slow
def test_everything() -> None:
    """All kernels, and the library itself, which chooses avx2 there."""
    programs(emulator=True)
    assert tool.main([]) == 0
