"""Streams that are closed, full or left, and places that cannot be written: one line, and the right status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def shell(line: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    """`line` under a shell, with $A for the command."""
    return subprocess.run(
        ["bash", "-c", line],
        env=os.environ | {"PYTHONPATH": str(ROOT), "A": f"{sys.executable} -m asmdnn", "P": sys.executable},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        ("$A --help > /dev/full", 2, "asmdnn: the output cannot be used (No space left on device)"),
        ("$A bench --mode=L --batch=resnet_50 > /dev/full", 2, "asmdnn: the output cannot be used (No space left"),
        ("$A --help >&-", 2, "asmdnn: stdout is closed"),
        ("$A nonsense > /dev/full", 2, "asmdnn: no command"),
        ("set -o pipefail; $A bench --mode=L --batch=resnet_50 --batch=vgg_16 | head -1 > /dev/null", 0, ""),
        ("$A --help 2>&- > /dev/null", 0, ""),
        ("$A nonsense 2> /dev/full", 2, ""),
        ("$A nonsense 2>&-", 2, ""),
        ("$A --help > /dev/full 2> /dev/full", 2, ""),
    ],
)
def test_streams(line: str, status: int, says: str, tmp_path: Path) -> None:
    done = shell(line, tmp_path)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == bool(says)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("variable", "says"),
    [
        ("ASMDNN_NOPE=1", "asmdnn: ASMDNN_NOPE is no variable of asmdnn and is ignored: there are"),
        ("ASMDNN_CACHE=perhaps", "asmdnn: ASMDNN_CACHE=perhaps is neither yes nor no"),
        (
            "ASMDNN_CACHE_DIR=/proc/x",
            "asmdnn: The kernel cache /proc/x cannot be used (No such file or directory)",
        ),
        ("ASMDNN_MEMORY_LIMITS=plans:x", "asmdnn: ASMDNN_MEMORY_LIMITS=plans:x: plans=x is not a size"),
    ],
)
def test_warnings_of_commands(variable: str, says: str, tmp_path: Path) -> None:
    """A line each, without places in the code and numbers of the system."""
    done = shell(f"{variable} $A bench --matmul --mode=C 2x3:3x4 > /dev/null", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
    assert "Errno" not in done.stderr


def test_the_demo_in_a_tree_that_cannot_be_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "file").touch()  # root ignores permissions, but cannot make a directory below a file either
    script = (
        "import sys; from pathlib import Path; from tools import demo_kernels as demo;"
        "sys.argv[1:] = ['--threads', '1'];"
        "demo.SHEET = Path('file/demo/sheet.png'); demo.resnet_job = lambda *a: True; sys.exit(demo.main())"
    )
    done = shell(f'$P -c "{script}" > /dev/null', tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("demo-kernels: ")
    assert "Not a directory" in done.stderr
    assert done.stderr.count("\n") == 1
