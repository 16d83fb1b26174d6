"""The OpenMP runtime for this Python: libgomp of the distribution's package, put where asmdnn looks for it."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from asmdnn.errors import Unimplemented
from asmdnn.setup.debian import Packages, install_command

LIBRARY: Final = "libgomp.so.1"

# In a process of its own: this one may have looked already, and would not look again.
_REASON: Final = "from asmdnn.runtime import threads; print(threads.single_thread_reason() or '', end='')"


def missing() -> str:
    """Why there are no threads, or nothing if there are."""
    return subprocess.run([sys.executable, "-c", _REASON], capture_output=True, text=True, check=True).stdout


def install(packages: Packages) -> str:
    """Put libgomp into the environment and say where it is.  Raises Unimplemented with the way out."""
    unpacked = packages.unpack("libgomp1")
    found = sorted(unpacked.glob(f"usr/lib/*/{LIBRARY}")) if unpacked else []
    target = Path(sys.prefix, "lib", LIBRARY)
    try:
        if found:
            shutil.copy(found[0], target)
    except OSError as error:
        raise Unimplemented(f"{target} cannot be written ({error.strerror}): {_way_out()}") from None
    if missing():
        raise Unimplemented(f"no OpenMP runtime can be had: {_way_out()}")
    return str(target)


def _way_out() -> str:
    if shutil.which("apt-get"):
        return f"run {install_command('libgomp1')}"
    return "install libgomp, GCC's OpenMP runtime, with the distribution's tool; until then use threads=1"
