"""Executable memory that is never writable and executable at the same time (W^X)."""

import functools
import mmap
import os
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from asmdnn.errors import AsmdnnError, InvalidArguments, OutOfMemory
from asmdnn.jit.native import address, ffi, function, open_library

CODE_ALIGNMENT_BYTES = 64  # a cache line: alignment inside a kernel (loops, constants) survives the mapping
INT3 = b"\xcc"  # fills the gaps, so that a kernel which runs past its end traps instead of entering the next one


class ExecutableMemory:
    """One private mapping that holds the given codes, each at a 64-byte aligned address.

    The pages are mapped read-write, filled, and then made read-execute.  `addresses[i]` is where `codes[i]` starts.
    They are valid until `close()` or until this object is garbage collected: whoever keeps an address keeps the object.
    At interpreter exit nothing is unmapped, because another thread may still be running a kernel.

    Raises InvalidArguments if there is no code or an empty one, OutOfMemory if the system refuses the mapping,
    AsmdnnError if it refuses to make it executable.
    """

    __slots__ = ("__weakref__", "_finalizer", "addresses", "size_bytes")

    addresses: tuple[int, ...]
    size_bytes: int

    def __init__(self, codes: Sequence[bytes]) -> None:
        if not codes or not all(codes):
            lengths = [len(code) for code in codes]
            raise InvalidArguments(f"codes must be a non-empty list of non-empty bytes, got the lengths {lengths}.")
        offsets, image = _layout(codes)
        self.size_bytes = len(image)
        base = _map_writable(self.size_bytes)
        self._finalizer = weakref.finalize(self, _libc().munmap, base, self.size_bytes)
        self._finalizer.atexit = False
        ffi.memmove(base, image, len(image))
        if _libc().mprotect(base, self.size_bytes, mmap.PROT_READ | mmap.PROT_EXEC):
            error = ffi.errno
            self.close()
            raise AsmdnnError(_refusal("mprotect", self.size_bytes, error)) from OSError(error, os.strerror(error))
        self.addresses = tuple(address(base) + offset for offset in offsets)

    def close(self) -> None:
        """Unmap now; every address becomes invalid.  Calling it again does nothing."""
        self._finalizer()


def map_first_page(fd: int) -> None:
    """Map the first page of a file readable and executable, until the process ends; the file may be shorter.

    Nothing there is ever run: perf records executable mappings of files.  Raises OSError.
    """
    protection = mmap.PROT_READ | mmap.PROT_EXEC
    if _libc().mmap(ffi.NULL, mmap.PAGESIZE, protection, mmap.MAP_PRIVATE, fd, 0) == ffi.cast("void *", -1):
        raise OSError(ffi.errno, os.strerror(ffi.errno))


class _Libc(NamedTuple):
    mmap: Any
    mprotect: Any
    munmap: Any


@functools.cache
def _libc() -> _Libc:
    process = open_library(None)
    return _Libc(
        function(process, "void *(*)(void *, size_t, int, int, int, long)", "mmap"),
        function(process, "int (*)(void *, size_t, int)", "mprotect"),
        function(process, "int (*)(void *, size_t)", "munmap"),
    )


def _layout(codes: Sequence[bytes]) -> tuple[list[int], bytes]:
    offsets, image = [], bytearray()
    for code in codes:
        image += INT3 * (-len(image) % CODE_ALIGNMENT_BYTES)
        offsets.append(len(image))
        image += code
    image += INT3 * (-len(image) % mmap.PAGESIZE)
    return offsets, bytes(image)


def _map_writable(size_bytes: int) -> Any:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _libc().mmap(ffi.NULL, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if base == ffi.cast("void *", -1):
        raise OutOfMemory(_refusal("mmap", size_bytes, ffi.errno)) from OSError(ffi.errno, os.strerror(ffi.errno))
    return base


def _refusal(call: str, size_bytes: int, error: int) -> str:
    way_out = (
        "allow processes to make their own pages executable (SELinux deny_execmem, systemd MemoryDenyWriteExecute)"
        if call == "mprotect"
        else "free memory or raise the address space limit (ulimit -v)"
    )
    return f"{call} refused {size_bytes} bytes of kernel code with {os.strerror(error)!r}: {way_out}."
