"""Every corpus spec's bytes are what they were: a commit that means to change none, changes none."""

import json
import os
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from asmdnn.corpus.families import files, specs_of
from tests.generators.codes import code_of
from tests.golden.hashes import THREADS, hashes, sample

FOLDER = Path(__file__).with_name("kernels")
ROOT = FOLDER.parents[2]
GROUPS = 3  # of files, each in a process of its own
MOST_NAMES = 20  # in a message
FILES = (*files(), "families")

ADVICE = """{changed}
A refactoring must not change kernels.  If the commit means to make other code (a faster kernel, a corrected one,
another PeachPy), run `pytest tests/golden --update-golden -k {file}` and say in its message why;
the commit that makes code faster shows the bench table.
"""


def changes(old: dict[str, str], new: dict[str, str]) -> str:
    """What differs, by name; "" if nothing does.  The same bytes under another name are a rename, and no difference."""
    gone, added = ({name: x[name] for name in x if name not in y} for x, y in ((old, new), (new, old)))
    kinds = {
        "bytes changed": [name for name in new if name in old and old[name] != new[name]],
        "new in the corpus": unmatched(added, gone),
        "gone from the corpus": unmatched(gone, added),
    }
    lines = []
    for kind, names in kinds.items():
        more = [f"... and {len(names) - MOST_NAMES} more"] * (len(names) > MOST_NAMES)
        lines += [f"{len(names)} kernels, {kind}:"] * bool(names) + [f"  {n}" for n in names[:MOST_NAMES] + more]
    return "\n".join(lines)


def unmatched(some: dict[str, str], others: dict[str, str]) -> list[str]:
    """The names whose bytes are not among those of the others, each of which stands for one name."""
    free = Counter(others.values())
    names = []
    for name, digest in some.items():
        if free[digest]:
            free[digest] -= 1
        else:
            names.append(name)
    return names


@pytest.mark.parametrize("file", FILES)
def test_kernels_are_what_they_were(file: str, pytestconfig: pytest.Config) -> None:
    new, path = hashes(specs_of(file)), FOLDER / f"{file}.json"
    if pytestconfig.getoption("--update-golden", default=False):
        path.write_text(json.dumps(dict(sorted(new.items())), indent=0) + "\n")
    changed = changes(json.loads(path.read_text()) if path.exists() else {}, new)
    if changed:
        pytest.fail(ADVICE.format(changed=changed, file=file), pytrace=False)


def test_no_file_is_left_over() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(FILES)


def test_changes_are_named() -> None:
    old, new = {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}
    assert changes(old, old) == ""
    assert changes(old, new).splitlines() == [
        "1 kernels, bytes changed:", "  b",
        "1 kernels, new in the corpus:", "  d",
        "1 kernels, gone from the corpus:", "  c",
    ]  # fmt: skip
    assert changes({"a": "1", "b": "2"}, {"c": "2", "a": "1"}) == ""  # renamed
    assert changes({"a": "1", "b": "2"}, {"b": "1"}).splitlines()[0] == "1 kernels, bytes changed:"
    many = changes({}, {str(i): "" for i in range(30)})
    assert many.endswith("\n  ... and 10 more")


@pytest.mark.parametrize("files", [FILES[i::GROUPS] for i in range(GROUPS)], ids=" ".join)
def test_again(files: tuple[str, ...]) -> None:
    """The same bytes with a listing, and in another process, of two threads that start together with cold caches.

    Neither the order of sets nor the cap on the ISA matters.
    """
    expected = {spec.name: sha256(code_of(spec).data).hexdigest() for file in files for spec in sample(file)}
    environment = {**os.environ, "PYTHONHASHSEED": "271828", "ASMDNN_MAX_CPU_ISA": "avx2", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-m", "tests.golden.hashes", *files], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [expected] * THREADS
    golden = {digest for file in files for digest in json.loads((FOLDER / f"{file}.json").read_text()).values()}
    assert set(expected.values()) <= golden
