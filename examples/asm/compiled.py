"""The same function in C, compiled by gcc -O3 -march=native where there is a gcc: what the tables compare with."""

import ctypes
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from asmdnn import asm
from asmdnn.asm import Timing

COMPILER = shutil.which("gcc") or shutil.which("cc")
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-std=gnu11")
# What of -ffast-math lets sums become vectors.  The whole of it would also make the CPU take small numbers for 0, in
# all of this process, since gcc then links a start-up file that says so.
REORDERED = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
INCLUDES = "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n"
_NAME = re.compile(r"(\w+)\(")


class CompiledFunction:
    """A function of C at an address."""

    def __init__(self, prototype: str, library: ctypes.CDLL) -> None:
        found = _NAME.search(prototype)
        assert found
        self.prototype, self._function = prototype, getattr(library, found[1])
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def __call__(self, *arguments: Any) -> None:
        """With arrays and integers; no result."""
        pointers = (ctypes.c_void_p(a.ctypes.data) if hasattr(a, "ctypes") else ctypes.c_size_t(a) for a in arguments)
        self._function(*pointers)

    def bench(self, *arguments: Any) -> Timing:
        """As of a function of asmdnn.asm."""
        return asm.bench(self.prototype, self.address, *arguments)


def compiled(prototype: str, body: str, before: str = "", flags: tuple[str, ...] = ()) -> CompiledFunction | None:
    """The function of "int64_t twice(int64_t x)" and "return 2 * x;"; None without a compiler."""
    if not COMPILER:
        return None
    source = f"{INCLUDES}{before}\n{prototype} {{ {body} }}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peer.so"
        words = [COMPILER, *FLAGS, *flags, "-x", "c", "-", "-o", str(path), "-lm"]
        subprocess.run(words, input=source.encode(), check=True, capture_output=True)
        return CompiledFunction(prototype, ctypes.CDLL(str(path)))


def exported(prototype: str) -> CompiledFunction:
    """A function of the C library."""
    return CompiledFunction(prototype, ctypes.CDLL(None))
