"""Ctrl-C that waits for the end of a step, so that what a step has written is counted, too.

Python raises KeyboardInterrupt as soon as a native call returns: parameters would be new, and the count of steps old.
"""

# The functions behind those of `signal`, which make enumerations of what they take and return: 7 us of a step.
from _signal import getsignal, signal  # type: ignore[import-not-found]
from signal import SIGINT
from threading import current_thread, main_thread
from typing import Any

_SIGINT = int(SIGINT)


class Uninterrupted:
    """`with Uninterrupted(): ...`: what Ctrl-C does is done after the block; in the main thread, as others do not hear
    of it."""

    __slots__ = ("_before", "_came")

    def __enter__(self) -> None:
        self._before: Any = getsignal(_SIGINT)
        self._came: list[Any] = []
        if current_thread() is not main_thread() or not callable(self._before):
            self._before = None
            return
        try:
            signal(_SIGINT, self._remember)
        except ValueError:  # of a sub-interpreter
            self._before = None

    def _remember(self, *arguments: Any) -> None:
        self._came.append(arguments)

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal(_SIGINT, self._before)
            if self._came:
                self._before(*self._came[-1])
