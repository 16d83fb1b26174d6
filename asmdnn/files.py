"""Files and descriptors that an interrupt leaves neither open nor half written.

Ctrl-C raises KeyboardInterrupt after any call of a C function, also between os.open() and the assignment of what it
returns.  So descriptors here belong to an object before control comes back to Python code.
"""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from asmdnn import environment
from asmdnn.errors import InvalidArguments, shown


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


@contextlib.contextmanager
def regular_file(path: str | Path) -> Iterator[BinaryIO]:
    """`with regular_file(path) as file:` a file to read.  Raises OSError, also for what is none: a pipe would have its
    reader wait, and a device may never end."""
    with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd, open(fd, "rb", closefd=False) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield file


def content_of(path: str | Path, most_bytes: int) -> bytes:
    """All of a regular file.  Raises OSError, also if it has more bytes."""
    with regular_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"it has {size} bytes, at most {most_bytes} are read")
        return file.read(size)


def replace_file(
    path: str | Path,
    *data: bytes | memoryview,
    temporary: str = "",
    mode: int = 0o666,
    dir_fd: int | None = None,
) -> None:
    """Write a file as a whole: whoever reads at the same time sees the old content or the new.  Raises OSError.

    temporary: the name, in the same directory, under which it is written; default one that nobody else has.  Whatever
    happens, that file is gone in the end.  No fsync: a crash of the machine may leave an incomplete file.
    """
    directory, name = os.path.split(path)
    unfinished = os.path.join(directory, temporary or f".{name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(unfinished, "xb", opener=partial(os.open, mode=mode, dir_fd=dir_fd)) as file:
            file.writelines(data)
        os.replace(unfinished, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException as error:  # an interrupt, too
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=dir_fd)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None  # by the name that was asked for
        raise


def temporary_directory() -> str:
    """Where files go that nobody keeps; tempfile.gettempdir() holds a lock, which a fork could leave held."""
    return environment.text("TMPDIR") or "/tmp"


def check_sha256(name: str, content: bytes | memoryview, wanted: str) -> None:
    """Raise InvalidArguments unless the content of a file has this sha256, in hexadecimal; "" is any."""
    found = hashlib.sha256(content).hexdigest() if wanted else ""
    if found != wanted.lower():
        raise InvalidArguments(
            f"the file {shown(name)} has the sha256 {found}, not {wanted}: get the one that you trust"
        )
