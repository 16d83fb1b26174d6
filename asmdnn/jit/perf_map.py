"""/tmp/perf-PID.map, where `perf report` finds the names of generated code: a line an entry, `START SIZE name` in hex.

Python 3.12 and later write this file themselves under `-X perf`; their own function is used where it exists, so that
its lines and ours do not interleave.  perf reads the file after the fact and knows no end of an entry: whoever
announces code keeps it mapped.
"""

import contextlib
import os
import time
from collections.abc import Callable

from asmdnn.jit.native import ffi, function, open_library

CLOCK_MARGIN_S = 1.0


def path() -> str:
    """perf looks nowhere else."""
    return f"/tmp/perf-{os.getpid()}.map"


def writer(forked: bool) -> Callable[[str, int, int], None]:
    """A function that adds (name, address, size) to this process's file; both raise OSError.

    forked: this process is a fork()ed child of one that had a writer.
    """
    _remove_leftover()
    return _interpreters(forked) or _own()


def _interpreters(forked: bool) -> Callable[[str, int, int], None] | None:
    python = open_library(None)
    try:
        write = function(python, "int (*)(const void *, unsigned, const char *)", "PyUnstable_WritePerfMapEntry")
        forget = function(python, "void (*)(void)", "PyUnstable_PerfMapState_Fini")
    except AttributeError:
        return None
    if forked:
        forget()  # the interpreter still has its parent's file

    def add(name: str, address: int, size_bytes: int) -> None:
        if write(ffi.cast("const void *", address), size_bytes, name.encode()):
            raise OSError(ffi.errno, os.strerror(ffi.errno), path())

    return add


def _own() -> Callable[[str, int, int], None]:
    fd = os.open(path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def add(name: str, address: int, size_bytes: int) -> None:
        os.write(fd, f"{address:x} {size_bytes:x} {name}\n".encode())

    return add


def _remove_leftover() -> None:
    """A file older than this process is of an earlier one with the same number, and its names would be wrong."""
    with contextlib.suppress(OSError):
        if os.stat(path(), follow_symlinks=False).st_mtime < _start_of_process() - CLOCK_MARGIN_S:
            os.unlink(path())


def _start_of_process() -> float:
    """Seconds of the epoch.  /proc/PID itself has the time of its first use."""
    with open("/proc/self/stat", encoding="latin-1") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # the name, in parentheses, may contain anything
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age
