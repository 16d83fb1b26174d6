"""Executable memory: runs code, keeps W and X apart, gives everything back."""

import gc
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.jit import executable
from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import address, ffi


def returns(value: int) -> bytes:
    """MOV EAX, value; RET"""
    return b"\xb8" + value.to_bytes(4, "little") + b"\xc3"


def call(where: int) -> int:
    return int(ffi.cast("int (*)(void)", where)())


def permissions(where: int) -> str:
    """The page permissions at an address, e.g. r-xp, or an empty string if nothing is mapped there."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            start, end, mode = re.match(r"(\w+)-(\w+) (....)", line).groups()  # type: ignore[union-attr]
            if int(start, 16) <= where < int(end, 16):
                return str(mode)
    return ""


def test_every_code_runs_at_its_aligned_address() -> None:
    codes = [returns(i) + b"\x90" * (37 * i) for i in range(200)]
    memory = ExecutableMemory(codes)
    assert [call(where) for where in memory.addresses] == list(range(200))
    assert all(where % 64 == 0 for where in memory.addresses)
    assert [
        bytes(ffi.buffer(ffi.cast("char *", a), len(c))) for a, c in zip(memory.addresses, codes, strict=True)
    ] == codes


def test_gaps_trap() -> None:
    memory = ExecutableMemory([b"\xc3", b"\xc3"])
    gap = ffi.buffer(ffi.cast("char *", memory.addresses[0] + 1), 63)
    assert bytes(gap) == b"\xcc" * 63


class WatchedLibc:
    """The C functions, with the permissions of the mapping noted around `mprotect`."""

    def __init__(self, error: int = 0) -> None:
        self.real = executable._libc()
        self.error = error
        self.seen: list[str] = []
        self.mmap, self.munmap = self.real.mmap, self.real.munmap
        self.base: Any = None

    def mprotect(self, base: Any, size: int, protection: int) -> int:
        self.base = address(base)
        self.seen.append(permissions(self.base))
        if self.error:
            ffi.errno = self.error
            return -1
        result = int(self.real.mprotect(base, size, protection))
        self.seen.append(permissions(self.base))
        return result


def test_never_writable_and_executable_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = WatchedLibc()
    monkeypatch.setattr(executable, "_libc", lambda: libc)
    memory = ExecutableMemory([returns(1)])
    assert libc.seen == ["rw-p", "r-xp"]
    assert permissions(memory.addresses[0]) == "r-xp"


def test_writing_to_code_faults() -> None:
    script = (
        "from asmdnn.jit.executable import ExecutableMemory\n"
        "from asmdnn.jit.native import ffi\n"
        "memory = ExecutableMemory([b'\\xc3'])\n"
        "ffi.cast('char *', memory.addresses[0])[0] = b'\\x90'\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == -signal.SIGSEGV


def test_close_and_collection_unmap() -> None:
    memory = ExecutableMemory([b"\xc3" * 5000])
    closed = memory.addresses[0]
    memory.close()
    memory.close()
    assert permissions(closed) == ""
    memory = ExecutableMemory([b"\xc3" * 5000])
    collected = memory.addresses[0]
    del memory
    gc.collect()
    assert permissions(collected) == ""


def test_a_refused_mprotect_is_one_sentence_and_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = WatchedLibc(error=13)
    monkeypatch.setattr(executable, "_libc", lambda: libc)
    with pytest.raises(
        AsmdnnError, match=r"^mprotect refused 4096 bytes .*Permission denied.*MemoryDenyWriteExecute"
    ) as error:
        ExecutableMemory([b"\xc3"])
    assert isinstance(error.value.__cause__, OSError)
    assert error.value.__cause__.errno == 13
    assert permissions(libc.base) == ""


def test_a_refused_mmap_is_one_sentence() -> None:
    script = (
        "import resource\n"
        "from asmdnn.errors import AsmdnnError\n"
        "from asmdnn.jit.executable import ExecutableMemory\n"
        "code = bytes([0xcc]) * (1 << 28)\n"
        "ExecutableMemory([b'\\xc3'])\n"
        "import asmdnn.jit.executable as executable\n"
        "executable._layout = lambda codes: ([0], code)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\n"
        "try:\n"
        "    ExecutableMemory([code])\n"
        "except AsmdnnError as error:\n"
        "    print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert re.match(
        r"mmap refused 268435456 bytes of kernel code with 'Cannot allocate memory': .*ulimit -v", result.stdout
    )


@pytest.mark.parametrize("codes", [[], [b""], [b"\xc3", b""]])
def test_no_code_is_refused(codes: list[bytes]) -> None:
    with pytest.raises(InvalidArguments, match="codes"):
        ExecutableMemory(codes)
