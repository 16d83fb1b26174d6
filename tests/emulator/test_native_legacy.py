"""SSE instructions, and those without a VEX form, do on this CPU what they do emulated, upper halves included."""

import re
import zlib

import numpy as np
import pytest
from iced_x86 import Code

from asmdnn.emulator.legacy import COPIES, OWN, TWICE, UNALIGNED
from asmdnn.emulator.memory import EmulationFault
from tests.emulator.assembling import Mem, ins
from tests.emulator.native import check_twin, vector_twin
from tests.emulator.single import after, random_state

RUNS, ALIGNED_BYTES = 6, 16
OPERAND = re.compile(r"XMM|XMMM(?P<size>\d+)|M128|IMM8|R(?:32|64)|RM32|RM64|R(?:32|64)M(?:8|16)")
BY_COUNT = re.compile(r"PS[LR][LA][WDQ]$")  # a count in a register is refused


def forms(mnemonic: str) -> list[tuple[str, tuple[str, ...]]]:
    """iced-x86's names of the forms whose operands are understood here, and these operands."""
    found = []
    for name in vars(Code):
        head, *operands = name.split("_")
        known = all(OPERAND.fullmatch(operand) for operand in operands)
        if head == mnemonic and operands and known and not (BY_COUNT.match(mnemonic) and "IMM8" not in operands):
            found.append((name, tuple(operands)))
    return found


def value(operand: str, rng: np.random.Generator, *, memory: bool) -> "str | int | Mem":
    if operand == "IMM8":
        return int(rng.integers(256))
    if memory and (operand.startswith("XMMM") or operand == "M128"):
        return Mem("rcx", ALIGNED_BYTES * int(rng.integers(12)))
    if operand.startswith("R"):
        return f"r{8 + rng.integers(4)}" + "d" * ("32" in operand)
    return f"xmm{rng.integers(3)}"


def has_memory(operands: tuple[str, ...]) -> bool:
    return any(operand.startswith("XMMM") or operand == "M128" for operand in operands)


@pytest.mark.parametrize("mnemonic", sorted({*COPIES, *TWICE, *OWN}))
@pytest.mark.one_in(3)
def test_forms(mnemonic: str) -> None:
    rng, program = np.random.default_rng(zlib.crc32(mnemonic.encode())), []
    for name, operands in forms(mnemonic):
        for memory in (False, True) if has_memory(operands) else (False,):
            if "M128" in operands and not memory:
                continue
            program += [ins(name, *(value(o, rng, memory=memory) for o in operands)) for _ in range(2)]
    assert program, mnemonic
    twin = vector_twin(program)
    arithmetic = re.fullmatch(r"(ADD|SUB|MUL|DIV|SQRT)[PS][SD]", mnemonic)
    check_twin(twin, rng, runs=RUNS, nan_payloads=not arithmetic)


@pytest.mark.parametrize("name", ["PADDD_XMM_XMMM128", "MOVAPS_XMM_XMMM128", "SHA256MSG1_XMM_XMMM128"])
def test_memory_must_be_aligned(name: str) -> None:
    state = random_state(np.random.default_rng(0))
    after(ins(name, "xmm1", Mem("rcx", 32)), state)
    with pytest.raises(EmulationFault, match="needs an address aligned to 16 bytes"):
        after(ins(name, "xmm1", Mem("rcx", 33)), state)


def test_what_may_be_unaligned() -> None:
    for mnemonic in UNALIGNED[:3]:
        state = random_state(np.random.default_rng(0))
        found = after(ins(f"{mnemonic}_XMM_XMMM128", "xmm1", Mem("rcx", 33)), state)
        assert found.vectors[1, :16].tobytes() == state.memory[33:49].tobytes()
        assert (found.vectors[1, 16:] == state.vectors[1, 16:]).all()


def test_registers_of_mmx_are_refused() -> None:
    with pytest.raises(EmulationFault, match="with registers of MMX"):
        after(ins("PADDD_MM_MMM64", "mm1", "mm2"), random_state(np.random.default_rng(0)))
