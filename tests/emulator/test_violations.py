"""Every rule that a kernel can break is reported with the instruction that breaks it."""

import re

import numpy as np
import pytest
from iced_x86 import Instruction

from asmdnn.emulator.machine import Emulator
from asmdnn.emulator.memory import EmulationFault, MemoryRegion
from tests.emulator.assembling import Label, Mem, argument, assemble, ins

FRAME, SRC, DST, CODE = 0x1000, 0x2_0000, 0x3_0000, 0x40_0000
RET = ins("RETNQ")
NARROW = ins("VEX_VZEROUPPER")


def machine(max_instructions: int = 1000) -> Emulator:
    """frame = (src, dst); src is 256 bytes to read, dst 128 bytes to write but not to read."""
    frame = np.array([SRC, DST], np.int64).view(np.uint8)
    return Emulator([MemoryRegion("frame", FRAME, frame), MemoryRegion("src", SRC, np.arange(256, dtype=np.uint8)),
                    MemoryRegion("dst", DST, np.zeros(128, np.uint8), readable=False, writable=True)],
                   max_instructions=max_instructions, record=True)  # fmt: skip


def call(*program: Instruction) -> Emulator:
    """Run with rax = src, rdx = dst."""
    it = machine()
    it.call(assemble(argument("rax", 0), argument("rdx", 1), *program), CODE, FRAME)
    return it


def refused(message: str, *program: Instruction) -> None:
    with pytest.raises(EmulationFault, match=message):
        call(*program)


LOAD, STORE = "VEX_VMOVUPS_YMM_YMMM256", "VEX_VMOVUPS_YMMM256_YMM"


@pytest.mark.parametrize(("displacement", "message"), [
    (225, r"reads 32 bytes at 0x200e1, the last 1 of them past the end of 'src' \[0x20000, 0x20100\)"),
    (-31, "the first 31 of them before the start of 'src'"),
    (256, "0 bytes past the end of 'src'"),
    (356, "100 bytes past the end of 'src'"),
    (-40, "8 bytes short of the start of 'src'"),
])  # fmt: skip
def test_load_outside(displacement: int, message: str) -> None:
    load = ins(LOAD, "ymm1", Mem("rax", displacement))
    refused(message, load, NARROW, RET)


def test_the_edges_are_inside() -> None:
    call(ins(LOAD, "ymm1", Mem("rax", 224)), ins(LOAD, "ymm1", Mem("rax")), ins(STORE, Mem("rdx", 96), "ymm1"),
         NARROW, RET)  # fmt: skip


def test_location() -> None:
    """The offset in the code, the instruction, and what it did."""
    code = assemble(argument("rax", 0), ins("MOV_R64_RM64", "rcx", Mem("rax", 1 << 20)), RET)
    with pytest.raises(EmulationFault) as caught:
        machine().call(code, CODE, FRAME)
    length = len(assemble(argument("rax", 0)))
    assert re.match(rf"at {length:#x}: mov rcx,\[rax\+100000h\]: reads 8 bytes at ", str(caught.value))


def test_access_rights() -> None:
    refused("writes 32 bytes at 0x20000, which is read-only: 'src' \\+ 0", ins(STORE, Mem("rax"), "ymm1"), NARROW, RET)
    refused("reads 8 bytes at 0x30010, which is write-only: 'dst' \\+ 16",
            ins("MOV_R64_RM64", "rcx", Mem("rdx", 16)), RET)  # fmt: skip
    refused("writes 4 bytes.*'code'", ins("LEA_R64_M", "rcx", Mem("rip", 0)), ins("MOV_RM32_IMM32", Mem("rcx"), 1), RET)
    refused("writes 1 bytes? .*'src'|writes 1 byte at", ins("MOV_RM8_R8", Mem("rax"), "cl"), RET)


def test_registers_that_were_never_set() -> None:
    """They hold addresses that lead nowhere, and NaN."""
    refused("reads 8 bytes at 0xbad0.*nowhere near any region", ins("MOV_R64_RM64", "rcx", Mem("r9")), RET)
    it = call(ins("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "zmm3", "zmm3", "zmm31"),
              ins("EVEX_VMOVUPS_ZMMM512_K1Z_ZMM", Mem("rdx"), "zmm3"), NARROW, RET)  # fmt: skip
    assert np.isnan(it.regions[2].array.view(np.float32)[:16]).all()


@pytest.mark.parametrize("register", ["rbx", "rbp", "r12", "r13", "r14", "r15"])
def test_callee_saved(register: str) -> None:
    change = ins("ADD_RM64_IMM8", register, 1)
    refused(f"ret: returns without having restored {register}", change, RET)
    call(ins("PUSH_R64", register), change, ins("POP_R64", register), RET)


def test_stack_pointer() -> None:
    """Also a RET that finds something else than its return address."""
    refused("jumps to", ins("PUSH_R64", "rax"), RET)
    skip = ins("ADD_RM64_IMM8", "rsp", -8)
    move = ins("MOV_R64_RM64", "rcx", Mem("rsp", 8))
    refused("returns with rsp -8 bytes off", skip, move, ins("MOV_RM64_R64", Mem("rsp"), "rcx"), RET)
    refused("past the end of 'stack'", ins("POP_R64", "rcx"), ins("POP_R64", "rcx"), RET)


def test_direction_flag() -> None:
    refused("direction flag", ins("STD"), RET)
    call(ins("STD"), ins("CLD"), RET)


def test_dirty_upper_halves() -> None:
    """A 128-bit VEX instruction clears them as well; registers 16 to 31 do not matter."""
    refused(r"no VZEROUPPER\) of ymm1, ymm4", ins(LOAD, "ymm4", Mem("rax")), ins(LOAD, "ymm1", Mem("rax")), RET)
    zero = "EVEX_VPXORD_ZMM_K1Z_ZMM_ZMMM512B32"
    refused("of ymm1$", ins(zero, "zmm1", "zmm1", "zmm1"), RET)
    call(ins(zero, "zmm16", "zmm16", "zmm16"), RET)
    call(ins(LOAD, "ymm1", Mem("rax")), ins("VEX_VXORPS_XMM_XMM_XMMM128", "xmm1", "xmm1", "xmm1"), RET)


def test_undefined_flags() -> None:
    jump = ins("JE_REL8_64", Label(4))
    refused("je .*: uses ZF, which is undefined here", ins("IMUL_R64_RM64", "rax", "rax"), jump, RET)
    refused("uses ZF", ins("NOPD"), jump, RET)
    refused("uses OF", ins("SHL_RM64_IMM8", "rax", 2), ins("SETO_RM8", "al"), RET)
    refused("uses CF", ins("INC_RM64", "rax"), ins("SETB_RM8", "al"), RET)
    call(ins("IMUL_R64_RM64", "rax", "rax"), ins("SETO_RM8", "al"), RET)


def test_jumps_outside() -> None:
    refused(r"jmp .*: jumps to -0x3e0000, outside the \d+ bytes of code", ins("JMP_RM64", "rax"), RET)
    refused("nop: jumps to", ins("NOPD"))
    refused("not an instruction", ins("LEA_R64_M", "rcx", Mem("rip", 0)), ins("ADD_RM64_IMM8", "rcx", 2),
            ins("JMP_RM64", "rcx"), ins("MOV_RM32_IMM32", "eax", 0x0606))  # fmt: skip


def test_unsupported_is_only_reported_when_reached() -> None:
    refused("cpuid: is not supported", ins("CPUID"), RET)
    call(ins("JMP_REL8_64", Label(4)), ins("CPUID"), RET)
    toward_zero = ins("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "zmm1", "zmm1", "zmm1", rounding=4)
    refused("embedded rounding", toward_zero, NARROW, RET)


def test_alignment() -> None:
    refused("needs an address aligned to 32 bytes", ins("VEX_VMOVAPS_YMM_YMMM256", "ymm1", Mem("rax", 16)), NARROW, RET)
    refused("aligned to 64", ins("EVEX_VMOVNTPS_M512_ZMM", Mem("rdx", 32), "zmm1"), NARROW, RET)
    call(ins("VEX_VMOVAPS_YMM_YMMM256", "ymm1", Mem("rax", 32)), NARROW, RET)


def test_endless_loop() -> None:
    with pytest.raises(EmulationFault, match="has not returned after 1000 instructions"):
        machine().call(assemble(ins("JMP_REL8_64", Label(0))), CODE, FRAME)


@pytest.mark.parametrize(("mask", "bytes_read"), [(0b0011, 8), (0b1010, 8), (0, 0)])
def test_masked_lanes_are_not_accessed(mask: int, bytes_read: int) -> None:
    """Loads and stores past the end of a region, of which the mask leaves what is inside."""
    set_mask = [ins("MOV_R32_IMM32", "ecx", mask), ins("VEX_KMOVW_KR_R32", "k1", "ecx")]
    load = ins("EVEX_VMOVUPS_ZMM_K1Z_ZMMM512", "zmm1", Mem("rax", 240), mask="k1", zeroing=True)
    add = ins("EVEX_VADDPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "zmm2", "zmm1", Mem("rax", 240), mask="k1")
    store = ins("EVEX_VMOVUPS_ZMMM512_K1Z_ZMM", Mem("rdx", 112), "zmm1", mask="k1")
    it = call(*set_mask, load, add, store, NARROW, RET)
    assert it.footprints is not None
    assert it.footprints["src"].read.sum() == bytes_read
    assert it.footprints["dst"].written.sum() == bytes_read
    active = np.flatnonzero([mask >> i & 1 for i in range(4)])
    want = np.zeros(4, np.uint32)
    want[active] = it.regions[1].array[240:].view(np.uint32)[active]
    assert it.regions[2].array[112:].view(np.uint32).tolist() == want.tolist()
    everything = [ins("MOV_R32_IMM32", "ecx", mask | 16), set_mask[1]]
    refused("past the end of 'src'", *everything, load, NARROW, RET)
    refused("past the end of 'src'", *everything, add, NARROW, RET)
    refused("past the end of 'dst'", *everything, store, NARROW, RET)


def test_masked_broadcast_is_not_accessed() -> None:
    broadcasts = [ins("EVEX_VBROADCASTSS_ZMM_K1Z_XMMM32", "zmm1", Mem("rax", 4096), mask="k1", zeroing=True),
                  ins("EVEX_VMULPS_ZMM_K1Z_ZMM_ZMMM512B32_ER", "zmm1", "zmm1", Mem("rax", 4096, broadcast=True),
                      mask="k1")]  # fmt: skip
    for broadcast in broadcasts:
        off = [ins("VEX_KXORW_KR_KR_KR", "k1", "k1", "k1"), broadcast, NARROW, RET]
        call(*off)
        refused("past the end of 'src'", ins("VEX_KXNORW_KR_KR_KR", "k1", "k1", "k1"), *off[1:])


def test_vector_masks_of_avx2() -> None:
    """VMASKMOVPS past the end of a region."""
    sign = [ins("VEX_VPCMPEQD_YMM_YMM_YMMM256", "ymm0", "ymm0", "ymm0"),
            ins("VEX_VMOVQ_XMM_XMMM64", "xmm0", "xmm0")]  # fmt: skip
    moves = [ins("VEX_VMASKMOVPS_YMM_YMM_M256", "ymm1", "ymm0", Mem("rax", 248)),
             ins("VEX_VMASKMOVPS_M256_YMM_YMM", Mem("rdx", 120), "ymm0", "ymm1")]  # fmt: skip
    it = call(*sign, *moves, NARROW, RET)
    assert it.regions[2].array[120:].tolist() == list(range(248, 256))
    refused("past the end of 'src'", sign[0], moves[0], NARROW, RET)
    refused("past the end of 'dst'", sign[0], ins(LOAD, "ymm1", Mem("rax")), moves[1], NARROW, RET)


def test_prefetch_is_no_access() -> None:
    it = call(ins("PREFETCHT0_M8", Mem("rax", 1 << 30)), RET)
    assert it.footprints is not None
    assert not it.footprints["src"].read.any()
