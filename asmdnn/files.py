"""Files and descriptors that an interrupt leaves neither open nor half written.

Ctrl-C raises KeyboardInterrupt behind any call of a C function, also between os.open() and the assignment of what it
returns.  So descriptors here belong to an object before control comes back to Python code.
"""

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from asmdnn import environment


class opened:
    """`with opened(path, flags) as fd:` a descriptor, not inherited, closed in the end.  Raises OSError."""

    _unclosed: Iterator[int] = iter(())  # until there is one

    def __init__(self, path: str | Path, flags: int, *, mode: int = 0o600, dir_fd: int | None = None) -> None:
        held: list[int] = []
        self._unclosed = iter(held)
        # Opening and keeping, and below taking and closing, are one step for Python.
        held.extend(map(partial(os.open, mode=mode, dir_fd=dir_fd), (path,), (flags | os.O_CLOEXEC,)))
        self.fd = held[0]

    def close(self) -> None:
        """Calling it again does nothing."""
        for _ in map(os.close, self._unclosed):
            pass

    def __enter__(self) -> int:
        return self.fd

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def replace_file(
    path: str | Path, data: bytes, *, temporary: str = "", mode: int = 0o666, dir_fd: int | None = None
) -> None:
    """Write a file as a whole: whoever reads at the same time sees the old content or the new.  Raises OSError.

    temporary: the name, in the same directory, under which it is written; default one that nobody else has.  Whatever
    happens, that file is gone in the end.  No fsync: a crash of the machine may leave an incomplete file.
    """
    directory, name = os.path.split(path)
    unfinished = os.path.join(directory, temporary or f".{name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(unfinished, "xb", opener=partial(os.open, mode=mode, dir_fd=dir_fd)) as file:
            file.write(data)
        os.replace(unfinished, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:  # an interrupt, too
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=dir_fd)
        raise


def temporary_directory() -> str:
    """Where files go that nobody keeps; tempfile.gettempdir() holds a lock, which a fork could leave held."""
    return environment.text("TMPDIR") or "/tmp"
