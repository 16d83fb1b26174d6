"""The run's last word on ISA levels, from runs of their own under a cap that every machine can have."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMALL = "tests/primitives/test_conv_special_values.py::test_zero_and_denormals_through_relu"  # two tests a level


def pytest_run(**environment: str) -> tuple[int, list[str]]:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SMALL],
        env=os.environ | {"ASMDNN_MAX_CPU_ISA": "avx2"} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.returncode, result.stdout.splitlines()


def test_what_was_not_executed_is_said() -> None:
    code, lines = pytest_run(ASMDNN_REQUIRE_ISA="avx2")
    assert code == 0
    assert lines[-2].startswith("ISA matrix: executed avx2 (2 tests); not executed on a CPU: avx512_core (")
    assert "2 passed, 2 skipped" in lines[-1]


def test_a_required_level_does_not_skip() -> None:
    code, lines = pytest_run(ASMDNN_REQUIRE_ISA="avx2,avx512_core")
    assert code == 1
    assert any("ASMDNN_REQUIRE_ISA asks for avx512_core: " in line for line in lines)
    assert "2 passed, 2 errors" in lines[-1] or "2 failed, 2 passed" in lines[-1]
