"""Every corpus spec's bytes are what they were: a commit that means to change none, changes none."""

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from asmdnn.corpus.families import corpus
from tests.generators.codes import code_of, exhaustive
from tests.golden.hashes import hashes, hashes_of_threads

FILE = Path(__file__).with_name("kernels.json")
ROOT = FILE.parents[2]
MOST_NAMES = 20  # in a message

ADVICE = """{changed}
A refactoring must not change kernels.  If the commit means to make other code (a faster kernel, a corrected one, a
changed name or spec, another PeachPy), run `pytest tests/golden --update-golden` and say in its message why; the
commit that makes code faster shows the bench table.
"""

generated = lru_cache(hashes)


def changes(old: dict[str, str], new: dict[str, str]) -> str:
    """What differs, by name; "" if nothing does."""
    kinds = {
        "bytes changed": [name for name in new if name in old and old[name] != new[name]],
        "new in the corpus": [name for name in new if name not in old],
        "gone from the corpus": [name for name in old if name not in new],
    }
    lines = []
    for kind, names in kinds.items():
        more = [f"... and {len(names) - MOST_NAMES} more"] * (len(names) > MOST_NAMES)
        lines += [f"{len(names)} kernels, {kind}:"] * bool(names) + [f"  {n}" for n in names[:MOST_NAMES] + more]
    return "\n".join(lines)


def test_kernels_are_what_they_were(pytestconfig: pytest.Config) -> None:
    new = generated()
    if pytestconfig.getoption("--update-golden", default=False):
        FILE.write_text(json.dumps(dict(sorted(new.items())), indent=0) + "\n")
    changed = changes(json.loads(FILE.read_text()), new)
    if changed:
        pytest.fail(ADVICE.format(changed=changed), pytrace=False)


def test_changes_are_named() -> None:
    old, new = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}
    assert changes(old, old) == ""
    assert changes(old, new).splitlines() == [
        "1 kernels, bytes changed:", "  b",
        "1 kernels, new in the corpus:", "  d",
        "1 kernels, gone from the corpus:", "  c",
    ]  # fmt: skip
    many = changes({}, {str(i): "" for i in range(30)})
    assert many.endswith("\n  ... and 10 more")


def test_again() -> None:
    """The same bytes a second time, in two threads at once, and with a listing."""
    assert hashes_of_threads(2) == [generated()] * 2
    assert all(len(code_of(spec).data) for spec in corpus() if spec not in exhaustive())


def test_in_another_process() -> None:
    """Neither the order of sets, nor the cap on the ISA, nor threads that start with cold caches matter."""
    environment = {**os.environ, "PYTHONHASHSEED": "271828", "ASMDNN_MAX_CPU_ISA": "avx2", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "tests.golden.hashes"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [generated()] * 2
