"""C functions of shared libraries, without a compiler and without cffi's C parser.

`cffi.FFI().cdef(...)` loads pycparser and builds its grammar: 60 ms in a fresh process.  The extension module below it
parses C *types* on its own, which is what every out-of-line cffi module uses, so `ffi` here costs 0.03 ms and does the
same for casts, buffers and function pointers; its values mix with those of any other FFI instance.
"""

import os
from typing import Any

import _cffi_backend  # type: ignore[import-untyped, unused-ignore]

ffi: Any = _cffi_backend.FFI()


def open_library(path: str | None) -> Any:
    """The shared library of that path or name (None: whatever the process has loaded); OSError if there is none.

    It is never unloaded: function pointers do not hold their library, and at interpreter exit its threads (OpenMP's)
    would still be running in the memory that unloading takes away.
    """
    return _cffi_backend.load_library(path, os.RTLD_NOW | os.RTLD_NODELETE)


def function(library: Any, signature: str, name: str) -> Any:
    """The exported function as a cffi function pointer, e.g. `function(libc, "int (*)(void *, size_t)", "munmap")`.

    Calls release the GIL; errno of the last call is `ffi.errno`.  AttributeError if the library does not export it.
    """
    return library.load_function(ffi.typeof(signature), name)


def address(pointer: Any) -> int:
    """The address held by any cffi pointer or function pointer."""
    return int(ffi.cast("uintptr_t", pointer))
