"""Scratchpads: the temporary memory of calls, one pool for all primitives of the process.

A call takes a scratchpad and gives it back, so that there are as many as there ever were calls at one time, each as
large as the largest plan needed: primitives that run one after another share one.  What is idle is bounded.
"""

import weakref

import numpy as np
import numpy.typing as npt

from asmdnn.memory.allocation import allocated
from asmdnn.planning.plan import ALIGNMENT_BYTES
from asmdnn.runtime.limits import Limited

LIMIT_BYTES = 512 << 20


def aligned_bytes(size: int) -> npt.NDArray[np.uint8]:
    """`size` bytes that start at a multiple of 64.  Raises OutOfMemory."""
    raw = allocated(np.empty, size + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + size]


class Scratchpad:
    """Memory for one call at a time."""

    __slots__ = ("__weakref__", "_storage", "address", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self._storage = aligned_bytes(size_bytes)
        self.address: int = self._storage.ctypes.data
        self.size_bytes = size_bytes


class ScratchPool(Limited):
    """Idle scratchpads, of at most `limit_bytes` together.  No lock: a list's `append` and `pop` are atomic."""

    def __init__(self, default_bytes: int = LIMIT_BYTES, name: str = "") -> None:
        super().__init__(default_bytes, name)
        self._idle: list[Scratchpad] = []
        self._all: weakref.WeakSet[Scratchpad] = weakref.WeakSet()

    def take(self, size_bytes: int) -> Scratchpad:
        """A scratchpad of at least this size, for the caller alone until it is given back, or forgotten."""
        try:
            pad = self._idle.pop()
            if pad.size_bytes >= size_bytes:
                return pad
        except IndexError:
            pass
        pad = Scratchpad(size_bytes)  # instead of the one that was too small, if there was one: their number stays
        self._all.add(pad)
        return pad

    def give(self, pad: Scratchpad) -> None:
        """Back for the next call; beyond the limit, the one that lay idle longest is freed."""
        self._idle.append(pad)
        if len(self._idle) > 1 or pad.size_bytes > self.limit_bytes:
            self._trim()

    @property
    def idle_count(self) -> int:
        return len(self._idle)

    @property
    def busy_count(self) -> int:
        return max(0, len(self._all) - len(self._idle))

    @property
    def idle_bytes(self) -> int:
        return sum(pad.size_bytes for pad in list(self._idle))

    @property
    def busy_bytes(self) -> int:
        """Of scratchpads that calls are using now."""
        return max(0, sum(pad.size_bytes for pad in list(self._all)) - self.idle_bytes)

    def limit(self, limit_bytes: int) -> None:
        """Another limit, from now on."""
        self._given = limit_bytes
        self._trim()

    def clear(self) -> None:
        """Free what is idle."""
        self._idle.clear()

    def _trim(self) -> None:
        limit = self.limit_bytes
        while self._idle and self.idle_bytes > limit:
            try:
                self._idle.pop(0)
            except IndexError:  # another thread took the last one
                return


scratch_pool = ScratchPool(name="scratchpads")
