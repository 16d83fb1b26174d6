"""Kernels on disk: one file a kernel, readable by other processes of the same user, trusted only when intact.

A file is executed, so it is read only from a directory that nobody else can write to, and only if it is a regular file
of this user whose checksum holds.  Anything else counts as absent: the kernel is generated again and the file replaced.

    magic 8 | format version u32 | name length u32 | payload length u64 | sha256 32 | name, UTF-8 | payload

The sha256 covers the key (hence the file name) and every byte of the file but itself.
"""

import contextlib
import hashlib
import os
import re
import secrets
import stat
import struct
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from asmdnn import environment

MAGIC = b"asmdnnKC"
FORMAT_VERSION = 1
MAX_FILE_BYTES = 1 << 26  # a kernel has kilobytes; what is larger is not one of ours and not worth reading
SUFFIX = ".kernel"

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEADER_BYTES = _PREFIX.size + _DIGEST_BYTES
_KERNEL_FILE = re.compile(rf"([0-9a-f]{{64}}){re.escape(SUFFIX)}")
_TEMPORARY_FILE = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]{16}\.tmp")
_warned: dict[str, object] = {}  # directories whose one warning has been given


class Entry(NamedTuple):
    """A stored kernel: its name, its key, the file's size in bytes and modification time in seconds of the epoch."""

    name: str
    key: str
    size: int
    mtime: float


class DiskStore:
    """Kernel code by key (64 hexadecimal digits) in one directory, which is created with mode 0700 when first needed.

    No method raises because of the file system: what cannot be read is absent, and a directory that cannot be used (or
    must not be: other owner, writable by others, a symbolic link) costs one warning a process, after which `get` finds
    nothing and `put` stores nothing.  Any number of threads and processes may use the directory at once.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.path.abspath(directory)

    def get(self, key: str, name: str) -> bytes | None:
        """The code stored under `key` by that name, or None."""
        with self._open() as fd:
            found = _read(fd, key)
        return found[1] if found and found[0] == name else None

    def put(self, key: str, name: str, data: bytes) -> None:
        """Store `data`, replacing what is there; readers see the old file or the new one, never a part."""
        with self._open(create=True) as fd:
            if fd is None:
                return
            try:
                _replace(fd, key, _pack(key, name, data))
            except FileNotFoundError:  # the cache was cleared while this was written: there is no harm in a miss
                pass
            except OSError as error:
                self._warn(f"cannot be written ({error})")

    def list(self) -> tuple[Entry, ...]:
        """The intact kernels of the directory, by name."""
        entries = []
        with self._open() as fd:
            for file, match in _matching(fd, _KERNEL_FILE):
                with contextlib.suppress(OSError):  # removed by somebody else since it was listed
                    info = os.stat(file, dir_fd=fd, follow_symlinks=False)
                    if found := _read(fd, match[1]):
                        entries.append(Entry(found[0], match[1], info.st_size, info.st_mtime))
        return tuple(sorted(entries))

    def clear(self) -> int:
        """Remove every kernel, intact or not, and temporary files; other files stay.  Returns how many kernels went."""
        removed = 0
        with self._open() as fd:
            for pattern in (_KERNEL_FILE, _TEMPORARY_FILE):
                for file, _ in _matching(fd, pattern):
                    with contextlib.suppress(OSError):
                        os.unlink(file, dir_fd=fd)
                        removed += pattern is _KERNEL_FILE
        return removed

    @contextlib.contextmanager
    def _open(self, create: bool = False) -> Iterator[int | None]:
        """A descriptor of the directory, so that nobody exchanges it between check and use; None if unusable."""
        try:
            if create:
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
            fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if create or not isinstance(error, FileNotFoundError):
                self._warn(f"cannot be used ({error})")
            yield None
            return
        try:
            reason = _distrust(os.fstat(fd))
            if reason:
                self._warn(f"is not used, because it {reason}")
            yield None if reason else fd
        finally:
            os.close(fd)

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
    return Path(tempfile.gettempdir(), f"asmdnn-{os.getuid()}")


def enabled() -> bool:
    """Whether kernels are to be kept on disk: yes, unless ASMDNN_CACHE says no."""
    return environment.flag(environment.CACHE, default=True)


def default_store() -> DiskStore | None:
    """The store that the environment asks for, None if it asks for none."""
    return DiskStore(default_directory()) if enabled() else None


def _distrust(info: os.stat_result) -> str | None:
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"is writable by others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def _matching(directory_fd: int | None, pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for file in [] if directory_fd is None else os.listdir(directory_fd):
        if match := pattern.fullmatch(file):
            yield file, match


def _read(directory_fd: int | None, key: str) -> tuple[str, bytes] | None:
    """Name and payload of an intact, trustworthy file, else None."""
    if directory_fd is None:
        return None
    try:  # O_NONBLOCK: a FIFO in the place of a kernel must not hang the reader
        fd = os.open(key + SUFFIX, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory_fd)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or _distrust(info) or info.st_size > MAX_FILE_BYTES:
            return None
        return _unpack(key, os.read(fd, info.st_size))
    except OSError:
        return None
    finally:
        os.close(fd)


def _replace(directory_fd: int, key: str, image: bytes) -> None:
    temporary = f".{key}.{secrets.token_hex(8)}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory_fd)
    try:  # no fsync: a file that a crash leaves incomplete fails its checksum and is generated again
        with open(fd, "wb") as file:
            file.write(image)
        os.replace(temporary, key + SUFFIX, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory_fd)
        raise


def _digest(key: str, prefix: bytes, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + prefix + body).digest()


def _pack(key: str, name: str, data: bytes) -> bytes:
    encoded = name.encode()
    prefix = _PREFIX.pack(MAGIC, FORMAT_VERSION, len(encoded), len(data))
    return prefix + _digest(key, prefix, encoded + data) + encoded + data


def _unpack(key: str, image: bytes) -> tuple[str, bytes] | None:
    if len(image) < _HEADER_BYTES:
        return None
    prefix, digest, body = image[: _PREFIX.size], image[_PREFIX.size : _HEADER_BYTES], image[_HEADER_BYTES:]
    magic, version, name_bytes, data_bytes = _PREFIX.unpack(prefix)
    if (magic, version, name_bytes + data_bytes) != (MAGIC, FORMAT_VERSION, len(body)):
        return None
    if _digest(key, prefix, body) != digest:
        return None
    return body[:name_bytes].decode(), body[name_bytes:]
