"""What each kind of primitive brings: kinds/DRIVER.txt, in words of `asmdnn bench`, by sections.

| section | what it has |
|---|---|
| cases | what its code distinguishes, and the edges of each; problems in all layouts, types and forms |
| emulated | small ones by every implementation, for a CPU that is interpreted, and for pages that fault |
| sample | options with the values to draw from, and problems |
| without post-ops | one by each implementation, if it takes none; those that do are in tests/primitives/every_kind.py |
| exact | those whose results have the same bits in every way to compute them |
| inexact | why there are none |
| empty | without elements, if it takes such |
| bytes | one with its type as {0}, if its elements are bytes |
| implementations | those that the cases reach, without "reorder+", where that is not the driver's name alone |
| no parts | what it says to tensors that are parts of larger ones, if it takes only whole ones |
"""

from pathlib import Path

from asmdnn.bench.driver import AnyCase
from tests.support.cases import read

KINDS = {path.stem: path for path in sorted((Path(__file__).parent / "kinds").glob("*.txt"))}
SECTIONS = (
    "cases", "emulated", "sample", "without post-ops", "exact", "inexact", "empty", "bytes", "implementations",
    "no parts",
)  # fmt: skip


def section(kind: str, name: str) -> str:
    """Its words, or "" if there is none."""
    found, inside = [], False
    for line in KINDS[kind].read_text().splitlines():
        if line in SECTIONS:
            inside = line == name
        elif inside:
            found.append(line)
    return " ".join(found)


def with_section(name: str) -> list[str]:
    """The kinds that have it."""
    return [kind for kind in KINDS if section(kind, name)]


def cases(kind: str, name: str) -> list[AnyCase]:
    """Of a section."""
    return read(f"--{kind} {section(kind, name)}") if section(kind, name) else []
