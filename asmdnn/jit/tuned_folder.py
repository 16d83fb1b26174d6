"""The folder of tuned plans beside the kernels: whether there are any, known without reading one."""

import os
from functools import cache
from pathlib import Path
from typing import Final

from asmdnn import environment
from asmdnn.jit.store import TUNED_FOLDER, default_directory, enabled

VARIABLES: Final = (environment.TUNED, environment.CACHE, environment.CACHE_DIR, "XDG_CACHE_HOME", "HOME")


def tuned_directory() -> Path:
    return default_directory() / TUNED_FOLDER


def is_asked() -> bool:
    """Whether stored choices are taken: yes, unless ASMDNN_TUNED says no, or ASMDNN_CACHE does."""
    return enabled() and environment.flag(environment.TUNED, default=True)


def has_any() -> bool:
    """Whether choices are taken and there may be some: without them nobody pays for a key.

    The file system is asked once for each value of the variables that decide this.  What this process keeps is seen at
    once, what another one keeps first after clear_caches, which lets go of the plans made before, too.
    """
    return _answer(*map(environment.raw, VARIABLES))


@cache
def _answer(*values: bytes | None) -> bool:
    return is_asked() and os.path.isdir(tuned_directory())


def look_again() -> None:
    """The next has_any asks the file system."""
    _answer.cache_clear()


def state() -> tuple[tuple[str, int], ...]:
    """What is different when other choices are kept: for what is made of several plans, and kept itself.

    The folder is looked at, so that these plans are those of the state.
    """
    look_again()
    if not has_any():
        return ()
    with os.scandir(tuned_directory()) as files:
        return tuple(sorted((file.name, file.stat().st_mtime_ns) for file in files))
