"""What an Emulator reports of a call: results, footprints, CPUID features, callbacks; and what it refuses to start."""

import numpy as np
import pytest

from asmdnn.emulator.machine import Emulator
from asmdnn.emulator.memory import EmulationFault, MemoryRegion
from tests.emulator.assembling import Label, Mem, argument, assemble, ins

FRAME, BUFFER, CODE, HOST = 0x1000, 0x2_0000, 0x40_0000, 0x50_0000


def frame(*values: int) -> MemoryRegion:
    return MemoryRegion("frame", FRAME, np.array(values, np.int64).view(np.uint8))


def buffer(size: int = 256) -> MemoryRegion:
    return MemoryRegion("buffer", BUFFER, np.zeros(size, np.uint8), writable=True)


def test_a_loop_with_constants() -> None:
    """dst[i] = src[i] * 3 + 1: a counted loop, and constants after the code, at two addresses."""
    source = np.arange(64, dtype=np.float32)
    program = [
        argument("rax", 0), argument("rdx", 1), ins("MOV_R32_IMM32", "ecx", 8),
        ins("VEX_VBROADCASTSS_YMM_M32", "ymm1", Mem("rip", 0)), ins("VEX_VBROADCASTSS_YMM_M32", "ymm2", Mem("rip", 4)),
        ins("VEX_VMOVUPS_YMM_YMMM256", "ymm0", Mem("rax")),
        ins("VEX_VFMADD213PS_YMM_YMM_YMMM256", "ymm0", "ymm1", "ymm2"),
        ins("VEX_VMOVUPS_YMMM256_YMM", Mem("rdx"), "ymm0"),
        ins("ADD_RM64_IMM8", "rax", 32), ins("ADD_RM64_IMM8", "rdx", 32), ins("SUB_RM64_IMM8", "rcx", 1),
        ins("JNE_REL8_64", Label(5)), ins("VEX_VZEROUPPER"), ins("RETNQ"),
    ]  # fmt: skip
    size = len(assemble(*program))
    program[3].memory_displacement, program[4].memory_displacement = size, size + 4
    code = assemble(*program) + np.array([3, 1], np.float32).tobytes()
    for address in (CODE, CODE + 192):
        result = buffer()
        machine = Emulator([frame(0x3_0000, BUFFER), result, MemoryRegion("source", 0x3_0000, source.view(np.uint8))],
                          record=True)  # fmt: skip
        machine.call(code, address, FRAME)
        assert np.array_equal(result.array.view(np.float32), source * 3 + 1)
        assert machine.instructions == 5 + 8 * 7 + 2
        assert machine.features == {"avx", "fma"}
        assert machine.footprints is not None
        assert machine.footprints["buffer"].written.all()
        assert not machine.footprints["buffer"].read.any()
        assert machine.footprints["source"].read.all()
        assert machine.footprints["frame"].read.all()


def test_features_of_what_was_executed() -> None:
    """A jump over AVX-512 code does not need AVX-512."""
    code = assemble(
        argument("rax", 0),
        ins("TEST_RM64_R64", "rax", "rax"),
        ins("JE_REL8_64", Label(4)),
        ins("EVEX_VPXORD_YMM_K1Z_YMM_YMMM256B32", "ymm16", "ymm16", "ymm16"),
        ins("RETNQ"),
    )
    machine = Emulator([frame(0)])
    machine.call(code, CODE, FRAME)
    assert machine.features == set()
    machine = Emulator([frame(1)])
    machine.call(code, CODE, FRAME)
    assert machine.features >= {"avx512f", "avx512vl"}


def test_footprints_accumulate_byte_ranges() -> None:
    load, store = ins("MOV_R32_RM32", "ecx", Mem("rax", 4)), ins("MOV_RM16_R16", Mem("rax", 9), "cx")
    code = assemble(argument("rax", 0), load, store, ins("RETNQ"))
    machine = Emulator([frame(BUFFER), buffer()], record=True)
    machine.call(code, CODE, FRAME)
    assert machine.footprints is not None
    touched = machine.footprints["buffer"]
    assert np.flatnonzero(touched.read).tolist() == [4, 5, 6, 7]
    assert np.flatnonzero(touched.written).tolist() == [9, 10]
    machine.regions[0].array.view(np.int64)[0] += 100
    machine.call(code, CODE, FRAME)
    assert np.flatnonzero(touched.read).tolist() == [4, 5, 6, 7, 104, 105, 106, 107]


CALLER = assemble(
    ins("PUSH_R64", "rbx"),
    ins("MOV_R64_RM64", "rbx", "rdi"),
    ins("MOV_R32_IMM32", "esi", 7),
    ins("CALL_RM64", Mem("rbx")),
    ins("MOV_RM64_R64", Mem("rbx", 8), "rax"),
    ins("POP_R64", "rbx"),
    ins("RETNQ"),
)


def test_host_callback() -> None:
    """It gets the integer arguments and gives rax."""
    calls = []

    def host(rdi: int, rsi: int, rdx: int, rcx: int, r8: int, r9: int) -> int:
        calls.append((rdi, rsi))
        return 42

    data = np.array([HOST, 0], np.int64).view(np.uint8)
    machine = Emulator([MemoryRegion("frame", FRAME, data, writable=True)], callbacks={HOST: host})
    machine.call(CALLER, CODE, FRAME)
    assert calls == [(FRAME, 7)]
    assert data.view(np.int64)[1] == 42


def test_a_callback_may_run_another_code() -> None:
    """Which is how an executor calls kernels; a violation names the place in both codes."""
    inner = assemble(ins("ADD_RM32_IMM8", Mem("rdi", 16), 5), ins("RETNQ"))
    data = np.array([HOST, 0, 1], np.int64).view(np.uint8)
    machine = Emulator([MemoryRegion("frame", FRAME, data, writable=True)])

    def host(rdi: int, *_: int) -> None:
        machine.call(inner, CODE + 4096, rdi + 8 * len(calls))
        calls.append(rdi)

    calls: list[int] = []
    machine.callbacks[HOST] = host
    machine.call(CALLER, CODE, FRAME)
    assert data.view(np.int64)[2] == 6
    with pytest.raises(EmulationFault, match=r"at 0x9: call .*: at 0x0: add dword ptr \[rdi\+10h\],5: reads 4 bytes"):
        machine.call(CALLER, CODE, FRAME)


def test_calls_leave_no_value_in_caller_saved_registers() -> None:
    code = assemble(
        ins("SUB_RM64_IMM8", "rsp", 8),
        ins("MOV_R64_RM64", "rcx", "rdi"),
        ins("CALL_RM64", Mem("rdi")),
        ins("MOV_R64_RM64", "rax", Mem("rcx")),
        ins("ADD_RM64_IMM8", "rsp", 8),
        ins("RETNQ"),
    )
    with pytest.raises(EmulationFault, match=r"mov rax,\[rcx\]: reads 8 bytes at 0xbad0"):
        Emulator([frame(HOST)], callbacks={HOST: lambda *_: None}).call(code, CODE, FRAME)


def test_calls_need_an_aligned_stack_and_a_target() -> None:
    unaligned = assemble(ins("CALL_RM64", Mem("rdi")), ins("RETNQ"))
    with pytest.raises(EmulationFault, match="not a multiple of 16"):
        Emulator([frame(HOST)], callbacks={HOST: lambda *_: None}).call(unaligned, CODE, FRAME)
    with pytest.raises(EmulationFault, match="neither in the code nor a callback"):
        Emulator([frame(HOST)]).call(CALLER, CODE, FRAME)


def test_each_call_starts_afresh() -> None:
    """Registers and stack of one call are not seen by the next."""
    write = assemble(ins("MOV_RM64_R64", Mem("rsp", -8), "rdi"), ins("RETNQ"))
    read = assemble(ins("MOV_R64_RM64", "rax", Mem("rsp", -8)), ins("MOV_RM64_R64", Mem("rdi", 8), "rax"), ins("RETNQ"))
    data = np.zeros(16, np.uint8)
    machine = Emulator([MemoryRegion("frame", FRAME, data, writable=True)])
    machine.call(write, CODE, FRAME)
    machine.call(read, CODE, FRAME)
    assert data[8:].tolist() == [0xAB] * 8


def test_regions_are_checked() -> None:
    overlap = Emulator([frame(0), MemoryRegion("other", FRAME + 4, np.zeros(8, np.uint8))])
    with pytest.raises(ValueError, match="'other' at 0x1004 overlaps region 'frame'"):
        overlap.call(assemble(ins("RETNQ")), CODE, FRAME)
    with pytest.raises(ValueError, match="names must be distinct"):
        Emulator([frame(0), frame(0)])
    floats = Emulator([MemoryRegion("floats", FRAME, np.zeros(8, np.float32))])
    with pytest.raises(ValueError, match="contiguous uint8"):
        floats.call(assemble(ins("RETNQ")), CODE, FRAME)
    frozen = np.zeros(8, np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="is writable but its array is not"):
        Emulator([MemoryRegion("frozen", FRAME, frozen, writable=True)]).call(assemble(ins("RETNQ")), CODE, FRAME)
