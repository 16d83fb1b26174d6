"""Codes that call one another under emulation: laid out one after another, as one piece of code."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.emulator import MemoryRegion
from tests.support.arena import Bytes

CODE = 0x20_0000_0000
INT3 = b"\xcc"


def blob_of(codes: Sequence[bytes]) -> tuple[bytes, list[int]]:
    """The bytes, to be mapped at CODE, and the address of each code; 64-byte aligned, traps between them."""
    blob, addresses = bytearray(), []
    for code in codes:
        blob += INT3 * (-len(blob) % 64)
        addresses.append(CODE + len(blob))
        blob += code
    return bytes(blob), addresses


class Words:
    """int64 arrays at addresses: the data structures that an executor walks."""

    def __init__(self, address: int, capacity: int = 1 << 16) -> None:
        self.address, self.used = address, 0
        self.values = np.zeros(capacity, np.int64)

    def add(self, words: Sequence[int] | npt.NDArray[Any]) -> int:
        """The address that the words got."""
        start, self.used = self.used, self.used + len(words)
        self.values[start : self.used] = words
        return self.address + 8 * start

    def region(self, name: str, writable: bool = False) -> MemoryRegion:
        """What has been added, and no word more."""
        data: Bytes = self.values[: self.used].view(np.uint8)
        return MemoryRegion(name, self.address, data, writable=writable)
