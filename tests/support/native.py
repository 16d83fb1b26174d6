"""Kernels on this machine: every buffer lies directly after, or directly before, a page that nobody may touch."""

import mmap
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi
from tests.primitives.guarded import PAGE, GuardedBuffer, in_child
from tests.support.arena import Buffer, Bytes


class Kernel:
    """Machine code that can be called with the address of a frame."""

    def __init__(self, code: bytes) -> None:
        self.memory = ExecutableMemory([code])
        self.address = self.memory.addresses[0]
        self.entry = ffi.cast("void (*)(void *)", self.address)

    def __call__(self, frame: int) -> None:
        self.entry(ffi.cast("void *", frame))


def call_guarded(
    kernel: Kernel, arguments: Sequence[str], buffers: Mapping[str, Buffer | None], at_end: bool
) -> dict[str, Bytes]:
    """What the call leaves in each buffer.  An access to anything else kills the process: run it in a child."""
    placed, frame = {}, GuardedBuffer(8 * len(arguments), at_end)
    pointers = frame.array.view(np.int64)
    pointers[:] = frame.array.ctypes.data // PAGE * PAGE - PAGE  # the guard: what is not used can only be prefetched
    for i, name in enumerate(arguments):
        buffer = buffers[name]
        if buffer is not None:
            placed[name] = GuardedBuffer(len(buffer.before), at_end)
            placed[name].array[:] = buffer.before
            pointers[i] = placed[name].array.ctypes.data + buffer.pointer_bytes
            if not buffer.written.any():
                placed[name].make_read_only()
    kernel(frame.array.ctypes.data)
    return {name: guarded.array for name, guarded in placed.items()}


def first_failure(checks: Sequence[Callable[[], None]]) -> tuple[int, str] | None:
    """The first that raises or kills its process, a child that makes all of them, and how; None if none does."""
    progress = mmap.mmap(-1, 8)  # shared with the child

    def check_all() -> None:
        for i, check in enumerate(checks):
            progress[:] = i.to_bytes(8, "little")
            check()

    failure = in_child(check_all)
    return (int.from_bytes(progress[:], "little"), failure) if failure else None
