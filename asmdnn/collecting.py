"""Python's collector of cycles waits while much is made that stays: its walks over all objects would find nothing."""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_waiting = 0  # calls that are inside, on all threads


@contextmanager
def without_collections() -> Iterator[None]:
    """While any thread is inside, nothing is collected; afterwards as before.  It changes nothing where the program has
    switched the collector off."""
    global _waiting
    with _lock:
        counts = bool(_waiting) or gc.isenabled()
        _waiting += counts
        if counts:
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _waiting = max(0, _waiting - counts)  # in a fork made inside nothing waits
            if counts and not _waiting:
                gc.enable()


def _in_child() -> None:
    """A fork has one thread, which is not inside."""
    global _lock, _waiting
    if _waiting:
        gc.enable()
    _lock, _waiting = threading.Lock(), 0


os.register_at_fork(after_in_child=_in_child)
