"""Buffers with an unmapped page before and after, and children that may die of touching it."""

import mmap
import os
import signal
import traceback
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.jit.native import ffi, function, open_library
from asmdnn.planning.plan import Plan

PAGE = mmap.PAGESIZE
CHILD_SECONDS = 60
PATIENCE = 20  # times as long, if it waits or other programs have the cores


class GuardedBuffer:
    """`size_bytes` that start (or, `at_end`, end) exactly where a mapping does; past both sides every access faults."""

    def __init__(self, size_bytes: int, at_end: bool) -> None:
        self._inner_bytes = -(-size_bytes // PAGE) * PAGE
        self._mapping = mmap.mmap(-1, self._inner_bytes + 2 * PAGE)
        whole = np.frombuffer(self._mapping, np.uint8)
        self._first = whole.ctypes.data + PAGE
        start = PAGE + (self._inner_bytes - size_bytes if at_end else 0)
        self.array: npt.NDArray[np.uint8] = whole[start : start + size_bytes]
        for guard in (self._first - PAGE, self._first + self._inner_bytes):
            protect(guard, PAGE, 0)

    def make_read_only(self) -> None:
        protect(self._first, self._inner_bytes, mmap.PROT_READ)


def protect(address: int, size_bytes: int, protection: int) -> None:
    mprotect = function(open_library(None), "int (*)(void *, size_t, int)", "mprotect")
    assert mprotect(ffi.cast("void *", address), size_bytes, protection) == 0


def guarded_memory(desc: dnn.MemoryDesc, at_end: bool) -> tuple[dnn.Memory, GuardedBuffer]:
    buffer = GuardedBuffer(desc.size_bytes, at_end)
    return dnn.Memory(desc, buffer.array, padding_is_zero=True), buffer


def guarded_tensors(plan: Plan, at_end: bool, fill: Callable[[str, dnn.Memory], None]) -> dict[str, dnn.Memory]:
    """All tensors of a plan, each at one end of its pages; once they are filled, inputs cannot be written."""
    memories = {}
    for name, desc in plan.tensors.items():
        memories[name], buffer = guarded_memory(desc, at_end)
        fill(name, memories[name])
        if name not in plan.outputs:
            buffer.make_read_only()
    return memories


def check_at_pages(run: Callable[[bool], None]) -> None:
    """Raise AssertionError with what goes wrong in a child whose tensors end, then start, at an unmapped page."""
    for at_end in (True, False):
        failure = in_child(lambda at_end=at_end: run(at_end))  # type: ignore[misc]
        assert not failure, f"{'end' if at_end else 'start'} of the buffers: {failure}"


def in_child(action: Callable[[], None]) -> str:
    """What went wrong when a fork()ed child did it: "" if nothing, else the traceback or the signal."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        report = ""
        try:
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # a fault is a result, not a crash to be reported
            for ending in (signal.SIGALRM, signal.SIGPROF):
                signal.signal(ending, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, CHILD_SECONDS)  # of this process's own time: others may be busy
            signal.alarm(PATIENCE * CHILD_SECONDS)  # one that waits for ever takes none
            action()
        except BaseException:
            report = traceback.format_exc()
        os.write(writing, report.encode()[-4096:])
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as pipe:
        report = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return report or (f"killed by {signal.Signals(-code).name}" if code else "")
