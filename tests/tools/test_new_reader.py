"""The path of a new reader: the commands that the script has exist; the whole of it installs, so it is slow."""

import re
import subprocess
from pathlib import Path

import pytest

from asmdnn.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "new_reader.sh"


def test_its_commands_exist_and_it_reads_as_a_script() -> None:
    found = set(re.findall(r"^asmdnn (\w+)", SCRIPT.read_text(), re.MULTILINE))
    assert {"setup", "doctor", "run", "explain", "studio", "pack", "export"} <= found <= set(COMMANDS)
    assert subprocess.run(["sh", "-n", SCRIPT], check=False).returncode == 0


@pytest.mark.slow
def test_the_whole_path(tmp_path: Path) -> None:
    """Needs the package index, and a Python that can make environments."""
    done = subprocess.run(["sh", SCRIPT, tmp_path], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr
