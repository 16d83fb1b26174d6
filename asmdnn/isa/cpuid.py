"""CPUID and XGETBV, executed from a few bytes of machine code; and Linux, asked for the tile registers in the same way.

The bytes are literal, so that asking the CPU needs neither PeachPy nor a compiler; tests/isa/test_cpuid.py has the same
kernels written for the assembler and compares.  Sources: Intel manual, volume 2, CPUID and XGETBV; Linux,
Documentation/arch/x86/xstate.rst.
"""

import os
from functools import cache
from typing import Any, Final

from asmdnn.forking import importing

# void cpuid(int64_t *frame): leaf frame[0], subleaf frame[1]; eax, ebx, ecx, edx into frame[2..5]
CPUID_CODE: Final = bytes.fromhex("538b078b4f080fa24889471048895f1848894f20488957285bc3")
# void xgetbv(int64_t *frame): register frame[0]; eax, edx into frame[1..2]
XGETBV_CODE: Final = bytes.fromhex("8b0f0f01d04889470848895710c3")
# void arch_prctl(int64_t *frame): code frame[0], address or number frame[1]; the answer into frame[2]
ARCH_PRCTL_CODE: Final = bytes.fromhex("4989f8498b38498b7008b89e0000000f0549894010c3")
_STUBS: Final = (CPUID_CODE, XGETBV_CODE, ARCH_PRCTL_CODE)

_OSXSAVE_BIT: Final = 27  # of leaf 1, ecx: the system has enabled XGETBV
_REQUEST_PERMISSION: Final = 0x1023  # ARCH_REQ_XCOMP_PERM
_TILE_DATA: Final = 18  # the component of XSAVE that the tile registers are


def cpuid(leaf: int, subleaf: int = 0) -> tuple[int, int, int, int]:
    """(eax, ebx, ecx, edx) of a CPUID leaf; zeros for one that the CPU does not have."""
    highest = _run(CPUID_CODE, (leaf & 0x80000000, 0), 4)[0]
    if leaf > highest:
        return 0, 0, 0, 0
    eax, ebx, ecx, edx = _run(CPUID_CODE, (leaf, subleaf), 4)
    return eax, ebx, ecx, edx


def xcr0() -> int:
    """The register states that the operating system saves; 0 when it does not tell."""
    if not cpuid(1)[2] >> _OSXSAVE_BIT & 1:
        return 0
    low, high = _run(XGETBV_CODE, (0,), 2)
    return high << 32 | low


@cache
def may_use_tiles() -> bool:
    """Whether Linux lets this process use the tile registers; asked for once a process, after which all threads may.

    Threads that exist get it too, and a child of fork keeps it.  Kernels before 5.16 and sandboxes refuse.
    """
    return os.uname().sysname == "Linux" and _run(ARCH_PRCTL_CODE, (_REQUEST_PERMISSION, _TILE_DATA), 1) == [0]


def is_x86_64() -> bool:
    """Whether this process may execute the code above at all."""
    return os.uname().machine.lower() in ("x86_64", "amd64")


@cache
def _memory() -> Any:
    with importing():
        from asmdnn.jit.executable import ExecutableMemory

    return ExecutableMemory(_STUBS)


def _run(code: bytes, arguments: tuple[int, ...], results: int) -> list[int]:
    """Executes a stub on a frame of the arguments followed by room for the results."""
    with importing():
        from asmdnn.jit.native import ffi

    address = _memory().addresses[_STUBS.index(code)]
    frame: Any = ffi.new("int64_t[]", [*arguments, *[0] * results])
    ffi.cast("void (*)(int64_t *)", address)(frame)
    return list(frame)[len(arguments) :]
