"""Kernels and networks on disk: one file each, for processes of the same user, trusted only when intact.

A file is executed, so it is read only from a directory that nobody else can write to, and only if it is a regular file
of this user whose checksum holds.  Anything else counts as absent: the kernel is generated again and the file replaced.

A kernel's file is that of kernel_file.py; that of a network is an image (image_file.py) whose text has its key, and
which is mapped.
"""

import contextlib
import os
import stat
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from asmdnn import environment
from asmdnn.errors import reason_of
from asmdnn.files import opened, replace_file, temporary_directory
from asmdnn.jit.image_file import Image, map_image
from asmdnn.jit.kernel_file import pack, unpack
from asmdnn.jit.pruning import (
    ANY_FILE,
    IMAGE_FILE,
    IMAGE_SUFFIX,
    KERNEL_FILE,
    SUFFIX,
    TEMPORARY_FILE,
    estimated_bytes,
    matching,
    remove_surplus,
    size_limit,
)
from asmdnn.jit.trust import distrust, distrust_link, distrust_way, make_private

MAX_FILE_BYTES = 1 << 26  # a kernel has kilobytes; what is larger is not one of ours and not worth reading
TUNED_FOLDER = "tuned"  # beside them: plans that measurements chose
LARGEST_SHARE = 2  # an image has at most this part of the limit
LOOKS = 16  # at the whole directory, while as much as its limit is written
_warned: dict[str, object] = {}  # directories whose one warning has been given


class StoreEntry(NamedTuple):
    """A stored kernel or network: name, key, the file's size in bytes, its last use in seconds of the epoch."""

    name: str
    key: str
    size: int
    mtime: float


class DiskStore:
    """Kernel code by key (64 hexadecimal digits) in one directory, which is created with mode 0700 when first needed.

    No method raises because of the file system: what cannot be read is absent, and a directory that cannot be used (or
    must not be: other owner, writable by others or below such a directory, behind a symbolic link of somebody else)
    costs one warning a process, after which `get` finds nothing and `put` stores nothing.  Any number of threads and
    processes may use the directory at once.

    limit_bytes: what all files may have together; None: anything.  Whoever writes looks at the directory the first
    time, and whenever it has written 1/16 of the limit since; if it has become too large, by a sample where there are
    many, those that were not used for longest go, until nine tenths are left.
    """

    def __init__(self, directory: str | os.PathLike[str], limit_bytes: int | None = None) -> None:
        self.directory = os.path.abspath(directory)
        self.limit_bytes = limit_bytes
        self._is_way_trusted = False
        self._unseen_bytes: float = float("inf")  # written since the directory was looked at

    def get(self, key: str, name: str) -> bytes | None:
        """The code stored under `key` by that name, or None.  It counts as used now."""
        with self._open() as fd:
            found = read_kernel(fd, key)
            if found:
                with contextlib.suppress(OSError):  # of a file system that can only be read
                    os.utime(key + SUFFIX, dir_fd=fd, follow_symlinks=False)
        return found[1] if found and found[0] == name else None

    def put(self, key: str, name: str, data: bytes) -> None:
        """Store `data`, replacing what is there; readers see the old file or the new one, never a part."""
        self._write(key, SUFFIX, pack(key, name, data))

    def get_image(self, key: str) -> Image | None:
        """The image stored under `key`, mapped, or None.  It counts as used now."""
        with self._open() as fd:
            found = read_image(fd, key)
            if found:
                with contextlib.suppress(OSError):
                    os.utime(key + IMAGE_SUFFIX, dir_fd=fd, follow_symlinks=False)
        return found

    def put_image(self, key: str, image: Sequence[bytes | memoryview]) -> None:
        """Store an image whose text has this key, in pieces, if it leaves room for others."""
        if self.limit_bytes is None or sum(map(len, image)) * LARGEST_SHARE <= self.limit_bytes:
            self._write(key, IMAGE_SUFFIX, *image)

    def _write(self, key: str, suffix: str, *data: bytes | memoryview) -> None:
        with self._open(create=True) as fd:
            if fd is None:
                return
            try:
                temporary = f".{key}.{os.urandom(8).hex()}.tmp"
                replace_file(key + suffix, *data, temporary=temporary, mode=0o600, dir_fd=fd)
                self._keep_to_limit(fd, sum(map(len, data)))
            except FileNotFoundError:  # the cache was cleared while this was written: there is no harm in a miss
                pass
            except OSError as error:
                self._warn(f"cannot be written ({reason_of(error)})")

    def prune(self, limit_bytes: int) -> tuple[int, int]:
        """Remove what was not used for longest, until the rest has at most so many bytes; and temporary files that
        were left behind.  Returns how many kernels and networks went, and their bytes."""
        with self._open() as fd:
            return (0, 0) if fd is None else remove_surplus(fd, limit_bytes)

    def _keep_to_limit(self, fd: int, written_bytes: int) -> None:
        if self.limit_bytes is None:
            return
        self._unseen_bytes += written_bytes
        if self._unseen_bytes * LOOKS > self.limit_bytes:
            self._unseen_bytes = 0
            if estimated_bytes(fd) > self.limit_bytes:
                remove_surplus(fd, self.limit_bytes * 9 // 10)

    def list(self) -> tuple[StoreEntry, ...]:
        """The intact kernels of the directory, by name."""
        entries = []
        with self._open() as fd:
            for file, match in matching(fd, KERNEL_FILE):
                with contextlib.suppress(OSError):  # removed by somebody else since it was listed
                    info = os.stat(file, dir_fd=fd, follow_symlinks=False)
                    if found := read_kernel(fd, match[1]):
                        entries.append(StoreEntry(found[0], match[1], info.st_size, info.st_mtime))
        return tuple(sorted(entries))

    def images(self) -> tuple[StoreEntry, ...]:
        """The intact networks of the directory, by title."""
        entries = []
        with self._open() as fd:
            for _, match in matching(fd, IMAGE_FILE):
                if found := read_image(fd, match[1]):
                    title, size = str(found.text.get("title")), len(found.whole)
                    entries.append(StoreEntry(title, match[1], size, found.last_used))
        return tuple(sorted(entries))

    def clear(self) -> int:
        """Remove every kernel and network, intact or not, and temporary files; other files stay.  Returns how many
        kernels and networks went."""
        removed = 0
        with self._open() as fd:
            for pattern in (ANY_FILE, TEMPORARY_FILE):
                for file, _ in matching(fd, pattern):
                    with contextlib.suppress(OSError):
                        os.unlink(file, dir_fd=fd)
                        removed += pattern is ANY_FILE
        return removed

    @contextlib.contextmanager
    def _open(self, create: bool = False) -> Iterator[int | None]:
        """A descriptor of the directory, so that nobody exchanges it between check and use; None if unusable."""
        directory = self._opened(create)
        try:
            yield directory.fd if directory else None
        finally:
            if directory:
                directory.close()

    def _opened(self, create: bool) -> opened | None:
        try:
            if create:
                make_private(self.directory)
            reason = distrust_link(os.lstat(self.directory))
            directory = opened(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            reason = reason or distrust(os.fstat(directory.fd)) or self._distrust_way()
        except OSError as error:
            if create or not isinstance(error, FileNotFoundError):
                self._warn(f"cannot be used ({reason_of(error)})")
            return None
        if reason:
            self._warn(f"is not used, because it {reason}")
            return None
        return directory

    def _distrust_way(self) -> str | None:
        """Looked at once: what others cannot write to now, they cannot make writable later."""
        reason = None if self._is_way_trusted else distrust_way(self.directory)
        self._is_way_trusted = reason is None
        return reason

    def _warn(self, problem: str) -> None:
        token = object()
        if _warned.setdefault(self.directory, token) is token:  # atomic, unlike a test followed by an insertion
            warnings.warn(
                f"The kernel cache {self.directory} {problem}, and every process generates its kernels anew: "
                "set ASMDNN_CACHE_DIR to a directory that only you can write to, or ASMDNN_CACHE=0.",
                RuntimeWarning,
                stacklevel=2,
            )


def default_directory() -> Path:
    """ASMDNN_CACHE_DIR, else XDG_CACHE_HOME/asmdnn, else ~/.cache/asmdnn; without any home, asmdnn-UID in /tmp."""
    if directory := environment.path(environment.CACHE_DIR):
        return directory
    xdg = environment.text("XDG_CACHE_HOME")
    if os.path.isabs(xdg):  # the XDG specification: a relative path is invalid and to be ignored
        return Path(xdg, "asmdnn")
    home = os.path.expanduser("~")
    if os.path.isabs(home):
        return Path(home, ".cache", "asmdnn")
    return Path(temporary_directory(), f"asmdnn-{os.getuid()}")


def enabled() -> bool:
    """Whether kernels are to be kept on disk: yes, unless ASMDNN_CACHE says no."""
    return environment.flag(environment.CACHE, default=True)


def default_store() -> DiskStore | None:
    """The store that the environment asks for, None if it asks for none."""
    return DiskStore(default_directory(), size_limit()) if enabled() else None


def read_kernel(directory_fd: int | None, key: str) -> tuple[str, bytes] | None:
    """Name and payload of an intact, trustworthy file, else None."""
    if directory_fd is None:
        return None
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO in the place of a kernel must not hang the reader
    try:
        with opened(key + SUFFIX, flags, dir_fd=directory_fd) as fd:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or distrust(info) or info.st_size > MAX_FILE_BYTES:
                return None
            return unpack(key, os.read(fd, info.st_size))
    except OSError:
        return None


def read_image(directory_fd: int | None, key: str) -> Image | None:
    """An intact, trustworthy image, else None."""
    if directory_fd is None:
        return None
    try:
        with opened(key + IMAGE_SUFFIX, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory_fd) as fd:
            found = None if distrust(os.fstat(fd)) else map_image(fd, key)
    except (OSError, ValueError):  # what map_image raises is a ValueError
        return None
    return found if found and found.text.get("key") == key else None
