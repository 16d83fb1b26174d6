"""The run's last word on ISA levels, from runs of their own under a cap that every machine can have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asmdnn.isa.cpu import cpu_features
from asmdnn.isa.levels import AVX512_CORE_AMX

ROOT = Path(__file__).parents[1]


# A conftest of its own is that of the tests; what a file in another folder executes is noted all the same.
ITEMS = """
import numpy as np, pytest
import asmdnn as dnn

def sum_up(**engine):
    x = np.ones((4, 4), np.float32)
    assert dnn.ops.matmul(x, x, engine=dnn.Engine(threads=1, **engine))[0, 0] == 4

@pytest.mark.isa("avx2")
def test_under_its_cap():
    sum_up()

@pytest.mark.isa("avx512_core")
def test_of_another_level():
    sum_up(isa="avx2")

def test_without_a_level():
    sum_up(isa="avx2")

def test_of_the_default_level():
    sum_up()
"""


def pytest_run(*words: str, **environment: str) -> tuple[int, list[str]]:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        env=os.environ | {"ASMDNN_MAX_CPU_ISA": "avx2", "ASMDNN_MACHINE": ""} | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return result.returncode, result.stdout.splitlines()


@pytest.fixture
def items(tmp_path: Path) -> list[str]:
    (tmp_path / "test_items.py").write_text(ITEMS)
    settings = ["-c", str(ROOT / "pyproject.toml"), f"--confcutdir={tmp_path}"]
    return ["-p", "tests.conftest", *settings, "-rA", str(tmp_path)]


def test_what_was_not_executed_is_said(items: list[str]) -> None:
    code, lines = pytest_run(*items, "-k", "cap or another", ASMDNN_REQUIRE_ISA="avx2")
    assert code == 0
    assert "ISA matrix: executed avx2 (1 tests); not executed on a CPU: avx512_core (" in "\n".join(lines)
    assert "1 passed, 1 skipped" in lines[-1]


def test_a_required_level_does_not_skip(items: list[str]) -> None:
    code, lines = pytest_run(*items, "-k", "cap or another", ASMDNN_REQUIRE_ISA="avx2,avx512_core")
    assert code == 1
    assert any("ASMDNN_REQUIRE_ISA asks for avx512_core: " in line for line in lines)
    assert "1 passed" in lines[-1]
    assert "1 error" in lines[-1] or "1 failed" in lines[-1]


def test_what_ran_is_counted_and_not_names(items: list[str]) -> None:
    """Three tests execute avx2, one of which is named after no level."""
    code, lines = pytest_run(*items)
    assert code == 0
    assert "ISA matrix: executed avx2 (3 tests); " in "\n".join(lines)
    assert "3 passed, 1 skipped" in lines[-1]


def test_a_primitive_of_another_level_fails_its_item(items: list[str]) -> None:
    """The obstacle is taken away, so that the item for avx512_core runs, with avx2."""
    plugin = "import tests.conftest as c; c.obstacle = lambda name: ''"
    Path(items[-1], "no_obstacle.py").write_text(plugin)
    path = f"{items[-1]}{os.pathsep}{ROOT}"
    code, lines = pytest_run("-p", "no_obstacle", *items, PYTHONPATH=path, ASMDNN_MAX_CPU_ISA="")
    assert code == 1
    assert "executes avx2, but is for avx512_core" in "\n".join(lines)


def test_a_foreign_host_caps_its_items(items: list[str]) -> None:
    """On a CPU with AVX-512, as if on a laptop without it, everything runs with avx2."""
    code, lines = pytest_run(*items, ASMDNN_MACHINE="haswell", ASMDNN_MAX_CPU_ISA="")
    assert code == 0
    assert "ISA matrix, as if on haswell: executed avx2 (3 tests); " in "\n".join(lines)


def test_a_foreign_host_skips_what_this_cpu_lacks(items: list[str]) -> None:
    """The default level is AMX there: its item runs where this CPU has that, and is skipped elsewhere."""
    words = ["-k", "cap or without or default"]
    code, lines = pytest_run(*items, *words, ASMDNN_MACHINE="sapphire_rapids", ASMDNN_MAX_CPU_ISA="")
    assert code == 0
    assert "ISA matrix, as if on sapphire_rapids: executed avx2 (2 tests)" in "\n".join(lines)
    assert ("3 passed" if AVX512_CORE_AMX.features <= cpu_features() else "2 passed, 1 skipped") in lines[-1]
