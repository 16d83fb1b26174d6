"""A progress bar for long runs: one line on the terminal, nothing at all in a pipe or a file."""

import time
from typing import TextIO

from asmdnn.cli.terminal import columns_of

MIN_COLUMNS = 30
WIPE = "\r\x1b[K"  # to the start of the line, and erase to its end, however long it is by now


class Progress:
    """`with Progress(total, sys.stderr) as bar: bar.update(done, "what runs now")`; `clear()` before other output."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._is_drawn = False
        self._start = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.clear()

    def update(self, done: int, label: str = "") -> None:
        """Draw `done` of `total`, one column less than the terminal has now: it may have been resized."""
        columns = (columns_of(self._stream) or 0) - 1
        self.clear()
        if columns < MIN_COLUMNS or not self._total:
            return
        width = columns // 4
        filled = width * done // self._total
        seconds = int(time.monotonic() - self._start)
        head = f"[{'#' * filled}{'.' * (width - filled)}] {done}/{self._total} {seconds // 60}:{seconds % 60:02d} "
        self._write((head + label)[:columns])
        self._is_drawn = True

    def clear(self) -> None:
        """Wipe the line, so that other output starts on an empty one."""
        if self._is_drawn:
            self._write(WIPE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
