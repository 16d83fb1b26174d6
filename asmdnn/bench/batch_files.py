"""Batch files of `asmdnn bench`: where they are, and their words.

A file holds options and problems separated by blanks or line ends; blanks inside double quotes do not separate.  A word
that starts with # hides the rest of its line.  A backslash at the end of a line continues it: after a comma, or in
front of one, the lines join into one word.
"""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from asmdnn.errors import InvalidArguments, did_you_mean, reason_of

LARGEST_FILE_BYTES = 16 << 20

_WORD = re.compile(r'(?:[^\s"]+|"[^"]*")+')


class BatchLine(NamedTuple):
    """The words of a line; of continued lines, together, under the number of the first; and what is wrong with it."""

    number: int
    words: list[str]
    mistake: str = ""


def problem_sets() -> dict[str, Path]:
    """The sets that come with the package, by name."""
    folder = Path(str(resources.files("asmdnn.bench"))) / "problem_sets"
    return {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}


def find(name: str, directory: Path, driver: str = "") -> Path:
    """The file `name` in `directory` or where benchdnn keeps those of a driver, else the problem set of that name.

    Raises InvalidArguments, which names the nearest set.
    """
    above = (folder for folder in directory.parents if driver and folder.name == driver)
    for folder in (directory, directory / "inputs" / driver, directory.parent / driver, *above):
        path = folder / name
        if name and path.is_file():
            return path.resolve()
    sets = problem_sets()
    if name not in sets:
        if name and (directory / name).is_dir():
            raise InvalidArguments(f"--batch={name}: it is a directory: name a file in it, or a problem set")
        raise InvalidArguments(f"--batch={name}: no such file, and no problem set either: {did_you_mean(name, sets)}")
    return sets[name]


def lines(path: Path) -> Iterator[BatchLine]:
    """The lines of `path` that have words.  Raises InvalidArguments when it cannot be read as text."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "it is no text"
        raise InvalidArguments(f"--batch={path} cannot be read: {why}") from None
    if len(data) > LARGEST_FILE_BYTES:
        raise InvalidArguments(f"--batch={path}: larger than {LARGEST_FILE_BYTES >> 20} MiB")
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        first = first or number
        if line.endswith("\\") and not line.startswith("#"):
            pending = _join(pending, line[:-1].strip())
            continue
        words, mistake = _words(_join(pending, line))
        if words or mistake:
            yield BatchLine(first, words, mistake)
        pending, first = "", 0
    if pending:
        yield BatchLine(first, [], "the last line ends in a backslash, nothing continues it")


def _join(left: str, right: str) -> str:
    together = not left or left.endswith(",") or right.startswith(",")
    return left + right if together else f"{left} {right}"


def _words(line: str) -> tuple[list[str], str]:
    """The words up to a quote that is not closed, which is a mistake."""
    if "#" not in line and line.count('"') % 2 == 0:
        return (_WORD.findall(line) if '"' in line else line.split()), ""
    words: list[str] = []
    at = 0
    while at < len(line):
        if line[at].isspace():
            at += 1
        elif line[at] == "#":
            break
        else:
            match = _WORD.match(line, at)
            end = match.end() if match else at
            if line[end : end + 1] == '"':
                return words, f"a quote is not closed: {line[at : at + 80]}"
            words.append(line[at:end])
            at = end
    return words, ""
