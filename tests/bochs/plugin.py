"""`make test BOCHS=1`: what the CPU at hand cannot execute runs on an emulated one, kernels and executors as they are.

Code of the library is entered in one way, by a function pointer to `void (void *)`.  Here such a pointer is a call of
the guest.  It runs the whole team's work on one thread; all results are the same for any number.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import asmdnn.runtime.execution
from asmdnn.isa import cpu
from asmdnn.isa.levels import isa_of
from asmdnn.jit import executable
from asmdnn.jit.native import ffi
from tests.bochs.guest import guest
from tests.support import native

LEVEL = "avx512_core"  # what Bochs's Cannon Lake has, without VNNI and BF16
ENTRY = "void (*)(void *)"
CALLS = "calls on Bochs"


class Entry:
    """A function pointer into the guest."""

    def __init__(self, address: int) -> None:
        self._address = int(address)

    def __call__(self, argument: Any) -> None:
        guest().call(self._address, int(ffi.cast("uintptr_t", argument)))

    def __int__(self) -> int:
        """Asked for by tests that enter code with registers and MXCSR of their own, by machine code of this CPU."""
        pytest.skip("calls it in a way of its own, which the guest does not know")


class GuestFfi:
    """cffi, but for pointers to generated code."""

    def __getattr__(self, name: str) -> Any:
        return getattr(ffi, name)

    def cast(self, kind: str, value: Any) -> Any:
        return Entry(value) if kind == ENTRY else ffi.cast(kind, value)


@pytest.hookimpl(tryfirst=True)  # before anybody asks what this CPU can do
def pytest_configure(config: pytest.Config) -> None:
    features = cpu.cpu_features() | isa_of(LEVEL).features
    cpu.cpu_features = lambda: features
    for module in (asmdnn.runtime.execution, native):
        module.ffi = GuestFfi()
    asmdnn.runtime.execution.openmp = lambda: None
    # Bochs keeps what it has decoded by address: what was code stays code.
    libc = executable._libc()._replace(munmap=lambda address, size: 0)
    executable._libc = lambda: libc


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = guest().calls
    result = yield
    item.user_properties.append((CALLS, guest().calls - before))
    return result


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = [report for report in terminalreporter.stats.get("passed", []) if report.when == "call"]
    counts = [count for report in passed for name, count in report.user_properties if name == CALLS and count]
    terminalreporter.write_line(f"{len(counts)} tests passed with {sum(counts)} calls on the CPU that Bochs emulates")
