"""What no family of the corpus has keeps the System V AMD64 ABI as well, and the trampoline notices what does not.

Kernels are called by it in tests/generators/test_native.py.  tests/generators/test_emulated.py runs every kernel of
every level on an emulated CPU, whose Machine asserts the same, and the proof shows it without running any.
"""

import numpy as np
import pytest

from asmdnn.generators.executor import ExecutorSpec
from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.levels import isa_of
from tests.abi.trampoline import CALLEE_SAVED, call_with_known_registers
from tests.emulator.assembling import Mem, assemble, ins
from tests.generators.codes import code_of
from tests.generators.executors import COUNTS
from tests.support.native import Kernel

RET = ins("RETNQ")
CALLER_SAVED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
MOVE_RSP = (ins("MOV_R64_RM64", "rcx", Mem("rsp")), ins("ADD_RM64_IMM8", "rsp", 16), ins("JMP_RM64", "rcx"))


def test_peak(isa: str) -> None:
    passes = np.array([3], np.int64)
    kernel = Kernel(code_of(PeakSpec(isa=isa)).data)
    assert not call_with_known_registers(kernel, passes.ctypes.data, isa_of(isa).vector_bytes).offences()


@pytest.mark.parametrize("arguments", COUNTS)
def test_executor(arguments: int) -> None:
    """Its state is in callee-saved registers, all of which its kernels get, too: they may change the others only.  It
    changes MXCSR twice, and puts it back."""
    kernel = Kernel(assemble(*(ins("XOR_R64_RM64", name, name) for name in CALLER_SAVED), RET))
    records, table = np.zeros((5, 1 + arguments), np.int64), np.array([kernel.address], np.int64)
    step, zeros = records.strides[0], np.zeros(arguments, np.int64)
    ways = (step, 0, 5 * step, 8 * arguments)
    shares = np.array([(0, 0, 0, 2 * step, *ways), (0, 2 * step, 0, 5 * step, *ways)], np.int64)
    rounds = [(0, 0), (zeros.ctypes.data, zeros.ctypes.data)]
    places = (records.ctypes.data, shares.ctypes.data, table.ctypes.data)
    phases = [(*places, 1, mode, *again, arguments, *zeros) for mode in (0x1F80, 0x9FC0) for again in rounds]
    context = np.array([0, 0, 0, 2, 4, *(word for phase in phases for word in phase)], np.int64)
    executor = Kernel(code_of(ExecutorSpec(arguments=arguments)).data)
    assert not call_with_known_registers(executor, context.ctypes.data).offences()


@pytest.mark.parametrize(
    ("program", "offence"),
    [
        *(((ins("ADD_RM64_IMM8", name, 1), RET), f"{name} changed") for name in CALLEE_SAVED),
        ((ins("STD"), RET), "direction flag set"),
        (MOVE_RSP, "rsp moved by 8"),
        ((ins("LDMXCSR_M32", Mem("rdi")), RET), "MXCSR is 0x1f80"),
        ((ins("VEX_VBROADCASTSS_YMM_M32", "ymm5", Mem("rdi")), RET), "vector 5 dirty"),
        ((RET,), ""),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_offences_are_noticed(program: tuple[object, ...], offence: str) -> None:
    usual_mxcsr = np.array([0x1F80], np.int64)
    state = call_with_known_registers(Kernel(assemble(*program)), usual_mxcsr.ctypes.data)  # type: ignore[arg-type]
    assert state.offences() == [offence] * bool(offence)
