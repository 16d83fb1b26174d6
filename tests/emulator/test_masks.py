"""Mask registers, gathers and scatters, against their definitions in the Intel manual."""

import numpy as np
import pytest
from iced_x86 import Instruction

from asmdnn.emulator.cpu import Cpu
from asmdnn.emulator.machine import CompiledCode
from asmdnn.emulator.memory import EmulationFault
from tests.emulator.assembling import Mem, assemble, ins
from tests.emulator.forms import MEMORY_BYTES
from tests.emulator.single import State, after, random_state

WIDTHS = {"B": 8, "W": 16, "D": 32, "Q": 64}


def state_of(seed: int) -> State:
    return random_state(np.random.default_rng(seed))


@pytest.mark.parametrize("width", WIDTHS)
def test_logic(width: str) -> None:
    low = (1 << WIDTHS[width]) - 1
    state = state_of(1)
    a, b = state.k[2], state.k[3]
    want = {"KAND": a & b, "KANDN": ~a & b, "KOR": a | b, "KXOR": a ^ b, "KXNOR": ~(a ^ b), "KADD": a + b}
    for name, value in want.items():
        assert after(ins(f"VEX_{name}{width}_KR_KR_KR", "k1", "k2", "k3"), state).k[1] == value & low
    assert after(ins(f"VEX_KNOT{width}_KR_KR", "k1", "k2"), state).k[1] == ~a & low
    for count in (0, 3, WIDTHS[width]):
        shifted = after(ins(f"VEX_KSHIFTL{width}_KR_KR_IMM8", "k1", "k2", count), state)
        assert shifted.k[1] == a << count & low
        shifted = after(ins(f"VEX_KSHIFTR{width}_KR_KR_IMM8", "k1", "k2", count), state)
        assert shifted.k[1] == (a & low) >> count


@pytest.mark.parametrize("width", WIDTHS)
def test_moves(width: str) -> None:
    bits = WIDTHS[width]
    low, state = (1 << bits) - 1, state_of(2)
    register = ("R64", "r9") if bits == 64 else ("R32", "r9d")
    assert after(ins(f"VEX_KMOV{width}_KR_{register[0]}", "k1", register[1]), state).k[1] == state.gpr[9] & low
    assert after(ins(f"VEX_KMOV{width}_{register[0]}_KR", register[1], "k2"), state).gpr[9] == state.k[2] & low
    assert after(ins(f"VEX_KMOV{width}_KR_KM{bits}", "k1", "k2"), state).k[1] == state.k[2] & low
    loaded = after(ins(f"VEX_KMOV{width}_KR_KM{bits}", "k1", Mem("rcx", 5)), state)
    assert loaded.k[1] == int.from_bytes(state.memory[5 : 5 + bits // 8].tobytes(), "little")
    stored = after(ins(f"VEX_KMOV{width}_M{bits}_KR", Mem("rcx", 5), "k2"), state)
    assert stored.memory[5 : 5 + bits // 8].tobytes() == (state.k[2] & low).to_bytes(bits // 8, "little")
    assert np.array_equal(np.flatnonzero(stored.footprint.written), np.arange(5, 5 + bits // 8))


@pytest.mark.parametrize(("first", "second", "zero", "carry"), [
    (0, 0, True, False), (0xFF00, 0x00FF, False, True), (0x0100, 0, False, False), (0xAB_0000, 0, True, False),
])  # fmt: skip
def test_kortest(first: int, second: int, zero: bool, carry: bool) -> None:
    """Into SETE and SETB, on 16 of the 64 bits."""
    state = state_of(3)
    state.k[2:4] = first, second
    instruction = ins("VEX_KORTESTW_KR_KR", "k2", "k3")
    assert flags_after(instruction, state) == (zero, carry)


@pytest.mark.parametrize(("first", "second", "zero", "carry"), [
    (0xF0, 0x0F, True, False), (0xFF, 0x0F, False, True), (0x18, 0x0F, False, False),
])  # fmt: skip
def test_ktest(first: int, second: int, zero: bool, carry: bool) -> None:
    state = state_of(3)
    state.k[2:4] = first, second
    assert flags_after(ins("VEX_KTESTW_KR_KR", "k2", "k3"), state) == (zero, carry)


def flags_after(instruction: Instruction, state: State) -> tuple[bool | None, bool | None]:
    cpu = Cpu()
    cpu.k[:] = state.k
    CompiledCode(cpu, assemble(instruction)).block(0).steps[0]()
    return cpu.zf, cpu.cf


@pytest.mark.parametrize(("width", "count"), [("X", 4), ("Y", 8), ("Z", 16)])
@pytest.mark.parametrize("scale", [1, 4])
def test_gather_and_scatter(width: str, count: int, scale: int) -> None:
    """Only the active lanes are accessed, a scatter's last lane wins, and the mask is zero afterwards."""
    rng, state = np.random.default_rng(4), state_of(4)
    index = rng.integers(-16, (MEMORY_BYTES - 68) // scale, count)
    state.lanes(9, np.int32)[:count] = index
    register, operand = f"{width.lower()}mm", Mem("rcx", 64, f"{width.lower()}mm9", scale)
    active = [i for i in range(count) if state.k[6] >> i & 1]
    assert 0 < len(active) < count

    got = after(ins(f"EVEX_VGATHERDPS_{width}MM_K1_VM32{width}", f"{register}20", operand, mask="k6"), state)
    want, touched = state.vectors[20].copy(), np.zeros(MEMORY_BYTES, bool)
    want[4 * count :] = 0
    for i in active:
        at = 64 + int(index[i]) * scale
        want[4 * i : 4 * i + 4] = state.memory[at : at + 4]
        touched[at : at + 4] = True
    assert np.array_equal(got.vectors[20], want)
    assert np.array_equal(got.footprint.read, touched)
    assert got.k[6] == 0

    got = after(ins(f"EVEX_VSCATTERDPS_VM32{width}_K1_{width}MM", operand, f"{register}20", mask="k6"), state)
    memory = state.memory.copy()
    for i in active:
        at = 64 + int(index[i]) * scale
        memory[at : at + 4] = state.vectors[20, 4 * i : 4 * i + 4]
    assert np.array_equal(got.memory, memory)
    assert np.array_equal(got.footprint.written, touched)
    assert got.k[6] == 0


def test_gather_faults_only_for_active_lanes() -> None:
    state = state_of(5)
    state.lanes(9, np.int32)[:] = 1 << 20
    state.lanes(9, np.int32)[3] = 0
    gather = ins("EVEX_VGATHERDPS_ZMM_K1_VM32Z", "zmm20", Mem("rcx", 0, "zmm9", 4), mask="k6")
    state.k[6] = 0b1000
    assert after(gather, state).lanes(20, np.uint32)[3] == state.memory.view(np.uint32)[0]
    state.k[6] = 0b1001
    with pytest.raises(EmulationFault, match="past the end of 'memory'"):
        after(gather, state)
