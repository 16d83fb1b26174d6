"""A progress bar for long runs: one line on the terminal, nothing at all in a pipe or a file."""

import shutil
import time
from typing import TextIO

MIN_COLUMNS = 30


class Progress:
    """`with Progress(total, sys.stderr) as bar: bar.update(done, "what runs now")`; `clear()` before other output."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._columns = shutil.get_terminal_size().columns - 1
        self._shown = total > 0 and stream.isatty() and self._columns >= MIN_COLUMNS
        self._start = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.clear()

    def update(self, done: int, label: str = "") -> None:
        """Draw `done` of `total`."""
        if not self._shown:
            return
        width = self._columns // 4
        filled = width * done // self._total
        seconds = int(time.monotonic() - self._start)
        head = f"[{'#' * filled}{'.' * (width - filled)}] {done}/{self._total} {seconds // 60}:{seconds % 60:02d} "
        self._write("\r" + (head + label)[: self._columns].ljust(self._columns))

    def clear(self) -> None:
        """Wipe the line, so that other output starts on an empty one."""
        if self._shown:
            self._write("\r" + " " * self._columns + "\r")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
