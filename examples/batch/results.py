"""The file of results: a line of JSON for each image, written as answers come, so that a run can go on from it."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from examples.batch.work import Row


def done_so_far(path: Path) -> set[str]:
    """The images that have a whole line.  A last line that a crash has cut off is removed from the file."""
    if not path.exists():
        return set()
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with path.open("r+b") as stream:
            stream.truncate(len(whole))
    return {json.loads(line)["file"] for line in whole.splitlines()}


def add(stream: TextIO, rows: Iterable[Row]) -> None:
    """Append rows, and have them on disk before this returns."""
    stream.writelines(json.dumps(row) + "\n" for row in rows)
    stream.flush()
    os.fsync(stream.fileno())
