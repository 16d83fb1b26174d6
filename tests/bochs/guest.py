"""Calls of machine code on a CPU with AVX-512 that Bochs emulates, in the memory of this process.

Bochs (bochscpu-python, an optional package) is nobody's of ours: it has decoded and executed AVX-512 for whole systems
since 2014.  Where the CPU at hand lacks a level, this is the nearest thing to running the library's own calls there.
"""

import ctypes
import functools
import mmap
import threading
from typing import Any

import bochscpu
import bochscpu.cpu

from tests.bochs.address_space import AddressSpace

STACK_BYTES = 1 << 18
RED_ZONE_BYTES = 4096  # free above the first frame, as a caller's would be
HLT, HLT_BYTES = b"\xf4", 16
ENTRY_MXCSR, EXCEPTION_FLAGS = 0x1F80, 0x3F
CR4_OSFXSR, CR4_OSXMMEXCPT, CR4_OSXSAVE = 1 << 9, 1 << 10, 1 << 18
XCR0_AVX512 = 0xE7  # x87, xmm, ymm, k, zmm0-15, zmm16-31
CALLEE_SAVED = {"rbx": 0x1111, "rbp": 0x2222, "r12": 0x3333, "r13": 0x4444, "r14": 0x5555, "r15": 0x6666}


class GuestFault(Exception):
    """The code left the memory of this process, raised an exception of the CPU, or broke the ABI."""


class Guest:
    """One CPU: of threads that call, one after the other."""

    def __init__(self) -> None:
        self.calls = 0
        self._alone = threading.Lock()
        self._memory = AddressSpace()
        self._stack, self._halt = mmap.mmap(-1, STACK_BYTES), mmap.mmap(-1, mmap.PAGESIZE)
        self._halt[:HLT_BYTES] = HLT * HLT_BYTES
        self._unmapped: int | None = None
        self._ended = ""
        self._session = bochscpu.Session()
        self._session.missing_page_handler = self._missing
        self._hook = bochscpu.Hook()
        self._hook.hlt = lambda session, cpu: self._stop("hlt")
        self._hook.exception = lambda session, cpu, vector, code: self._stop(f"exception {vector}, code {code:#x}")

    def call(self, entry: int, argument: int) -> None:
        """Call `void entry(void *argument)`.

        Raises GuestFault; also unless rsp, MXCSR and the registers that a callee saves are as before.
        """
        with self._alone:
            after, top = self._run(entry, argument)
            if self._ended != "hlt":
                what = self._ended if self._unmapped is None else f"nothing is mapped at {self._unmapped:#x}, read"
                raise GuestFault(f"{what} at {after.rip:#x}")
        broken = [name for name, value in CALLEE_SAVED.items() if getattr(after, name) != value]
        broken += ["rsp"] * (after.rsp != top) + ["MXCSR"] * (after.mxcsr & ~EXCEPTION_FLAGS != ENTRY_MXCSR)
        if broken:
            raise GuestFault(f"returns with another {', '.join(broken)}")

    def _run(self, entry: int, argument: int) -> tuple[Any, int]:
        """The state that the code leaves, and where rsp was before the call."""
        self._memory.refresh()
        self._ended, self._unmapped = "", None
        top = _address(self._stack) + STACK_BYTES - RED_ZONE_BYTES
        ctypes.c_uint64.from_address(top - 8).value = _address(self._halt)
        state = self._state()
        state.rip, state.rdi, state.rsp = entry, argument, top - 8
        for name, value in CALLEE_SAVED.items():
            setattr(state, name, value)
        self._session.cpu.state = state
        self._session.run([self._hook])
        self.calls += 1
        return self._session.cpu.state, top

    def _state(self) -> Any:
        """64-bit mode with AVX-512 enabled; all vector registers zero."""
        state = bochscpu.State()
        bochscpu.cpu.set_long_mode(state)
        state.cr3 = self._memory.root
        state.cr4 |= CR4_OSFXSR | CR4_OSXMMEXCPT | CR4_OSXSAVE
        state.xcr0 = XCR0_AVX512
        state.cs = _segment(selector=0x10, attributes=0x209B)
        state.ds = state.es = state.ss = state.fs = state.gs = _segment(selector=0x18, attributes=0x0C93)
        state.mxcsr, state.mxcsr_mask, state.rflags = ENTRY_MXCSR, 0xFFFF, 2
        return state

    def _missing(self, physical: int) -> None:
        self._unmapped = self._memory.provide(physical)
        if self._unmapped is not None:
            self._stop("")

    def _stop(self, why: str) -> None:
        self._ended = why
        self._session.stop()


@functools.cache
def guest() -> Guest:
    """The one that a process can have."""
    return Guest()


def _segment(selector: int, attributes: int) -> Any:
    segment = bochscpu.Segment()
    segment.limit, segment.selector, segment.attr, segment.present = 0xFFFFFFFF, selector, attributes, True
    return segment


def _address(mapping: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(mapping))
