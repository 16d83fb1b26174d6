"""Unwind information that the running process knows: exceptions of C++, backtrace() and profilers get through the code.

libgcc_s, which all of them ask, keeps a list of .eh_frame sections that programs announce.  Where it is missing (musl),
nothing is announced, and unwinding ends at the code.
"""

import functools
import weakref
from typing import Any

from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi, function, open_library
from asmdnn.jit.unwind import eh_frame, prologue

LIBRARY = "libgcc_s.so.1"


def announce_frames(code: bytes, address: int, memory: ExecutableMemory) -> bool:
    """Announces the frames of `code`, which lies at `address`, until `memory` is gone; whether there was anything to
    say: of code that leaves rsp alone every unwinder can guess."""
    calls = _calls()
    if calls is None or not prologue(code):
        return False
    section = ffi.new("char[]", eh_frame(code, address))
    announce, withdraw = calls
    announce(section)
    # The section lives as long as this finalizer; at exit another thread may still be in the code.
    weakref.finalize(memory, withdraw, section).atexit = False
    return True


@functools.cache
def _calls() -> "tuple[Any, Any] | None":
    try:
        library = open_library(LIBRARY)
        found = [function(library, "void (*)(void *)", name) for name in ("__register_frame", "__deregister_frame")]
    except (OSError, AttributeError):
        return None
    return found[0], found[1]
