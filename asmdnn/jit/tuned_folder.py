"""The folder of tuned plans beside the kernels: whether there are any, known without reading one."""

import os
from pathlib import Path

from asmdnn import environment
from asmdnn.jit.store import TUNED_FOLDER, default_directory, enabled


def tuned_directory() -> Path:
    return default_directory() / TUNED_FOLDER


def is_asked() -> bool:
    """Whether stored choices are taken: yes, unless ASMDNN_TUNED says no, or ASMDNN_CACHE does."""
    return enabled() and environment.flag(environment.TUNED, default=True)


def has_any() -> bool:
    """Whether choices are taken and there may be some: without them nobody pays for a key."""
    return is_asked() and os.path.isdir(tuned_directory())


def state() -> tuple[tuple[str, int], ...]:
    """What is different when other choices are kept: for what is made of several plans, and kept itself."""
    if not has_any():
        return ()
    with os.scandir(tuned_directory()) as files:
        return tuple(sorted((file.name, file.stat().st_mtime_ns) for file in files))
