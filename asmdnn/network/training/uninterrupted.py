"""Ctrl-C that waits for the end of a step, so that what a step has written is counted, too.

Python raises KeyboardInterrupt as soon as a native call returns: parameters would be new, and the count of steps old.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """What Ctrl-C does is done after the block; in the main thread, as others do not hear of it."""
    before: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *args: came.append(args))
    except ValueError:  # of a sub-interpreter
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[-1])
