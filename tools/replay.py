"""Which kernels a change changed: `python tools/replay.py REV` generates all at a revision and now, and compares.

All are those of the corpus and of the resnet_50 problem set, planned for AVX2 and for AVX-512.  Of every kernel that
differs, a diff of its disassembly is shown.  Exit status: 0 none differs, 1 some do, 2 the comparison was not possible.
A refactoring changes none; kernels that are only new, or only have another name, are listed and do not count.
"""

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from asmdnn.bench import batch_files
from asmdnn.bench.problems import parse_problem
from asmdnn.errors import InvalidArguments

ROOT = Path(__file__).resolve().parents[1]
COLLECT = Path(__file__).with_name("replay_collect.py")
PROBLEM_SET = "resnet_50"
ENGINES = (("avx2", 512 << 10), ("avx512_core", 1 << 20))  # level and bytes of L2, on which plans depend
DIFFERENT, IMPOSSIBLE = 1, 2
CONTEXT_LINES = 3

Kernels = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Names of kernels: other bytes under the same name; gone; new; and (old, new) names of the same bytes."""

    changed: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]

    @property
    def differs(self) -> bool:
        return bool(self.changed or self.gone)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print("usage: python tools/replay.py REV: any name of a git commit, such as main or HEAD~3")
        return 0 if arguments and arguments[0] in ("-h", "--help") else IMPOSSIBLE
    try:
        revision = arguments[0]
        with tempfile.TemporaryDirectory() as folder:
            extract(revision, Path(folder))
            old = collect(Path(folder), revision)
        new = collect(ROOT, "the working tree")
    except InvalidArguments as error:
        print(f"replay: {error}", file=sys.stderr)
        return IMPOSSIBLE
    compared = compare(old, new)
    for line in report(compared, old, new, revision):
        print(line)
    return DIFFERENT if compared.differs else 0


def extract(revision: str, folder: Path) -> None:
    """Put the package as it was at the revision into `folder`.  Raises InvalidArguments."""
    commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if not commit:
        raise InvalidArguments(f"'{revision}' is no commit of the repository {ROOT}: name a branch, a tag or a commit")
    archive = git("archive", "--format=zip", commit.decode().strip(), "asmdnn")
    if not archive:
        raise InvalidArguments(f"revision {revision} has no directory asmdnn: name a later one")
    with zipfile.ZipFile(BytesIO(archive)) as packed:
        packed.extractall(folder)


def git(*words: str) -> bytes:
    """What git prints; nothing if it fails."""
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True).stdout
    except FileNotFoundError:
        raise InvalidArguments("git is not installed: install it to read a revision") from None


def collect(tree: Path, title: str) -> Kernels:
    """The kernels of a tree, generated in a process of its own.  Raises InvalidArguments."""
    kernels: Kernels = run_in(tree, COLLECT, convolutions(), f"the kernels of {title} cannot be generated")
    return kernels


def run_in(tree: Path, script: Path, given: Any, failure: str) -> Any:
    """What a script prints for what it is given, both JSON, with the package of a tree.  Raises InvalidArguments."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASMDNN_")}
    done = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(given), capture_output=True, text=True, cwd=tree,
        env={**environment, "ASMDNN_TUNED": "0", "PYTHONPATH": str(tree)},
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InvalidArguments(f"{failure}: {last}")
    return json.loads(done.stdout)


def convolutions() -> list[dict[str, Any]]:
    """The problem set for each engine, in numbers."""
    found = []
    for line in batch_files.lines(batch_files.problem_sets()[PROBLEM_SET]):
        for word in line.words:
            if word.startswith("-"):
                continue
            problem = parse_problem(word)
            numbers = {
                "src": problem.src_dims, "weights": problem.weights_dims, "dst": problem.dst_dims,
                "strides": problem.strides, "dilations": problem.dilations,
                "padding_l": problem.padding_l, "padding_r": problem.padding_r,
            }  # fmt: skip
            found += [{**numbers, "isa": isa, "l2_bytes": l2_bytes} for isa, l2_bytes in ENGINES]
    return found


def compare(old: Kernels, new: Kernels) -> Comparison:
    """By name, and by bytes for names that only one side has."""
    changed = tuple(name for name in old if name in new and old[name]["data"] != new[name]["data"])
    added = [name for name in new if name not in old]
    by_bytes = {new[name]["data"]: name for name in added}
    gone = [name for name in old if name not in new]
    renamed = tuple((name, by_bytes[old[name]["data"]]) for name in gone if old[name]["data"] in by_bytes)
    kept = {name for pair in renamed for name in pair}
    only_old, only_new = (tuple(name for name in names if name not in kept) for names in (gone, added))
    return Comparison(changed, only_old, only_new, renamed)


def report(compared: Comparison, old: Kernels, new: Kernels, revision: str) -> Iterator[str]:
    """The diffs, then what is new, gone or renamed, then the verdict."""
    for name in compared.changed:
        yield from diff(name, old[name], new[name], revision)
    yield from (f"gone: {name}" for name in compared.gone)
    yield from (f"new: {name}" for name in compared.new)
    yield from (f"same bytes, other name: {before} -> {after}" for before, after in compared.renamed)
    if compared.differs:
        yield f"{len(compared.changed)} of {len(old)} kernels differ from {revision}, {len(compared.gone)} are gone"
    else:
        yield f"none of {len(old)} kernels differs from {revision}; {len(compared.new)} are new"


def diff(name: str, old: dict[str, Any], new: dict[str, Any], revision: str) -> Iterator[str]:
    """What a reader sees of it: instructions; their bytes only if the instructions are the same."""
    for show in (instructions, encodings):
        lines = list(difflib.unified_diff(
            show(old), show(new), f"{name} at {revision}", f"{name} now", lineterm="", n=CONTEXT_LINES
        ))  # fmt: skip
        if lines:
            yield from lines
            return


def instructions(kernel: dict[str, Any]) -> list[str]:
    """Texts, then constants.  Of a jump's target only the name: addresses after a change all differ."""
    return [re.sub(r" 0x[0-9a-f]+ <", " <", text) for _, text in kernel["listing"]] + constants(kernel)


def encodings(kernel: dict[str, Any]) -> list[str]:
    return [f"{data:24} {text}" for data, text in kernel["listing"]] + constants(kernel)


def constants(kernel: dict[str, Any]) -> list[str]:
    """The bytes after the code, 16 a line."""
    behind = kernel["data"][sum(len(data) for data, _ in kernel["listing"]) :]
    return [f".byte {behind[i : i + 32]}" for i in range(0, len(behind), 32)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
