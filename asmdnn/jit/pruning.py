"""How large the kernel cache on disk may become, and which of its files go when it is larger."""

import re
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from asmdnn import environment
from asmdnn.errors import InvalidArguments

DEFAULT_LIMIT_BYTES: Final = 1 << 30
IMAGE_SUFFIX: Final = ".network"
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
