"""Every kernel of the corpus that this machine can execute, on buffers that end, then start, at an unmapped page.

What a call may not write is a read-only page, what it may only prefetch is an unmapped one.  Then as a trampoline sees
it: whether it keeps the System V AMD64 ABI.  All of it in one child, which makes the kernel and its case once.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from asmdnn.corpus.families import kernel_specs
from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.levels import isa_of
from tests.abi.trampoline import call_with_known_registers
from tests.generators.cases import case_of
from tests.generators.codes import by_family, by_name, code_of, exhaustive
from tests.support.emulation import emulate
from tests.support.native import Kernel, call_guarded, first_failure


def check_guarded(spec: KernelSpec, at_end: bool) -> None:
    kernel = Kernel(code_of(spec).data)
    for case in {case_of(spec, integers) for integers in (True, False)}:
        case.check(call_guarded(kernel, spec.frame, case.buffers, at_end))


def check_abi(spec: KernelSpec) -> None:
    frame, data = np.zeros(len(spec.frame), np.int64), []
    for i, name in enumerate(spec.frame):
        buffer = case_of(spec).buffers[name]
        if buffer is not None:
            data.append(buffer.before.copy())
            frame[i] = data[-1].ctypes.data + buffer.pointer_bytes
    state = call_with_known_registers(Kernel(code_of(spec).data), frame.ctypes.data, isa_of(spec.isa).vector_bytes)
    assert not state.offences()


CHECKS: dict[str, Callable[[KernelSpec], None]] = {
    "buffers end at a page": partial(check_guarded, at_end=True),
    "buffers start at a page": partial(check_guarded, at_end=False),
    "registers": check_abi,
}


@by_family()
def test_guard_pages_and_abi(specs: tuple[KernelSpec, ...]) -> None:
    checks = [(spec, what) for spec in specs for what in CHECKS]
    failure = first_failure([partial(CHECKS[what], spec) for spec, what in checks])
    assert failure is None, f"{checks[failure[0]]}: {failure[1]}"


@by_name(tuple(spec for spec in kernel_specs() if spec not in exhaustive())[::7], "isa")
def test_emulation_agrees(spec: KernelSpec) -> None:
    """Bit by bit on real numbers: what an emulated level shows is what a CPU would show."""
    case = case_of(spec, integers=False)
    emulated = emulate(code_of(spec).data, spec.frame, case.buffers).after
    native = call_guarded(Kernel(code_of(spec).data), spec.frame, case.buffers, at_end=True)
    for name, data in emulated.items():
        assert np.array_equal(data, native[name])
