"""How large the kernel cache on disk may become and is, and which of its files go when it is larger."""

import contextlib
import os
import re
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from asmdnn import environment
from asmdnn.errors import InvalidArguments

DEFAULT_LIMIT_BYTES: Final = 1 << 30
SUFFIX: Final = ".kernel"
IMAGE_SUFFIX: Final = ".network"
SAMPLED: Final = 512  # kernels of many, of which a look takes the size: a look at 20,000 files takes 0.01 s, not 0.15
ABANDONED_S: Final = 3600  # a temporary file of this age belongs to nobody any more
KERNEL_FILE: Final = rf"([0-9a-f]{{64}}){re.escape(SUFFIX)}"
IMAGE_FILE: Final = rf"([0-9a-f]{{64}}){re.escape(IMAGE_SUFFIX)}"
ANY_FILE: Final = f"{KERNEL_FILE}|{IMAGE_FILE}"
TEMPORARY_FILE: Final = r"\.[0-9a-f]{64}\.[0-9a-f]{16}\.tmp"
_SIZE: Final = r"([0-9]{1,15})\s*([KMGT]?)(?:I?B)?"
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


class StoredFile(NamedTuple):
    """last_used: seconds of the epoch."""

    last_used: float
    size_bytes: int
    name: str


def surplus(files: Iterable[StoredFile], limit_bytes: int) -> list[StoredFile]:
    """The least recently used files, without which the others have at most `limit_bytes` together.

    Networks leave a quarter of that to kernels, as far as these need it.
    """
    every = list(files)
    networks = [file for file in every if file.name.endswith(IMAGE_SUFFIX)]
    kernels_bytes = sum(file.size_bytes for file in every) - sum(file.size_bytes for file in networks)
    gone = oldest(networks, limit_bytes - min(kernels_bytes, limit_bytes // 4))
    return [*gone, *oldest(set(every).difference(gone), limit_bytes)]


def oldest(files: Iterable[StoredFile], limit_bytes: int) -> list[StoredFile]:
    """Those without which the others keep to a limit."""
    oldest_first = sorted(files)
    total = sum(file.size_bytes for file in oldest_first)
    removed = []
    for file in oldest_first:
        if total <= limit_bytes:
            break
        removed.append(file)
        total -= file.size_bytes
    return removed


def matching(directory_fd: int | None, pattern: str) -> Iterator[tuple[str, re.Match[str]]]:
    for file in [] if directory_fd is None else os.listdir(directory_fd):
        if match := re.fullmatch(pattern, file):
            yield file, match


def estimated_bytes(directory_fd: int) -> int:
    """What all files have together: every network's size, and that of every so manieth kernel where there are many."""
    names = os.listdir(directory_fd)
    kernels = [name for name in names if name.endswith(SUFFIX)]
    images = [name for name in names if name.endswith(IMAGE_SUFFIX)]
    step = max(1, len(kernels) // SAMPLED)
    sampled, whole = (of_names(directory_fd, some) for some in (kernels[::step], images))
    return step * sum(file.size_bytes for file in sampled) + sum(file.size_bytes for file in whole)


def stored(directory_fd: int, pattern: str) -> Iterator[StoredFile]:
    yield from of_names(directory_fd, (file for file, _ in matching(directory_fd, pattern)))


def of_names(directory_fd: int, names: Iterable[str]) -> Iterator[StoredFile]:
    for file in names:
        with contextlib.suppress(OSError):  # removed by somebody else since it was listed
            info = os.stat(file, dir_fd=directory_fd, follow_symlinks=False)
            yield StoredFile(info.st_mtime, info.st_size, file)


def remove_surplus(directory_fd: int, limit_bytes: int) -> tuple[int, int]:
    """Those of surplus and abandoned ones go.  Returns how many kernels and networks went, and their bytes."""
    files = surplus(stored(directory_fd, ANY_FILE), limit_bytes)
    latest = time.time() - ABANDONED_S
    abandoned = (file for file in stored(directory_fd, TEMPORARY_FILE) if file.last_used < latest)
    for file in (*files, *abandoned):
        with contextlib.suppress(OSError):
            os.unlink(file.name, dir_fd=directory_fd)
    return len(files), sum(file.size_bytes for file in files)


def parse_size(name: str, text: str) -> int:
    """Bytes from words such as 268435456, 256M and 1GiB.  Raises InvalidArguments, naming `name`."""
    match = re.fullmatch(_SIZE, text.strip(), re.IGNORECASE)
    if match is None:
        raise InvalidArguments(f"{name}={text} is not a size: use a number of bytes, or one such as 64M or 1G")
    return int(match[1]) << _UNITS[match[2].upper()]


def size_limit() -> int:
    """What ASMDNN_CACHE_SIZE says; a word that is no size costs one warning, and the default holds."""
    text = environment.text(environment.CACHE_SIZE)
    return _limit_of(text) if text else DEFAULT_LIMIT_BYTES


@cache
def _limit_of(text: str) -> int:
    try:
        return parse_size(environment.CACHE_SIZE, text)
    except InvalidArguments as error:
        warnings.warn(f"{error}; until then it is 1G.", RuntimeWarning, stacklevel=4)
        return DEFAULT_LIMIT_BYTES
