"""Scripts in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_PEACHPY = """
import json, sys

class NoPeachPy:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("peachpy", "six"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoPeachPy())
"""  # the beginning of a script in which PeachPy is not installed
OF_OPENMP = ("OMP_", "GOMP_", "KMP_")


# Of what plans and generates one module each: what runs from a pack, or from the cache on disk, imports none of them.
NOT_TO_RUN = (
    "peachpy", "asmdnn.network.planned", "asmdnn.isa.assembler", "asmdnn.isa.avx2", "asmdnn.generators.dot.matmul",
)  # fmt: skip
IMPORTED = f"print([name for name in {NOT_TO_RUN} if sys.modules.get(name)])"


def python(
    script: str,
    *arguments: object,
    cwd: Path | None = None,
    without: tuple[str, ...] = (),
    seconds: float = 300,
    **environment: str,
) -> str:
    """What the script prints in a new process, which ends well, and in time.  without: how variables begin that it does
    not inherit."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(without)}
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=base | {"PYTHONPATH": str(ROOT)} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    return done.stdout.strip()
