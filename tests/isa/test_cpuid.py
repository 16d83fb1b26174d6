"""The literal bytes that ask the CPU are those of these two kernels."""

from asmdnn.isa.assembler import Assembler, low32, mem, register
from asmdnn.isa.cpuid import ARCH_PRCTL_CODE, CPUID_CODE, XGETBV_CODE, cpuid, may_use_tiles, xcr0


def test_cpuid_code() -> None:
    asm = Assembler("cpuid")
    eax, ecx, edx, ebx = (asm.gp.claim(register("r64", number), "CPUID") for number in range(4))
    asm.MOV(low32(eax), mem(asm.frame))
    asm.MOV(low32(ecx), mem(asm.frame, 8))
    asm.CPUID()
    for word, reg in enumerate((eax, ebx, ecx, edx), start=2):
        asm.MOV(mem(asm.frame, 8 * word), reg)
    asm.ret()
    assert asm.finish().data == CPUID_CODE


def test_xgetbv_code() -> None:
    asm = Assembler("xgetbv")
    eax, ecx, edx = (asm.gp.claim(register("r64", number), "XGETBV") for number in range(3))
    asm.MOV(low32(ecx), mem(asm.frame))
    asm.XGETBV()
    asm.MOV(mem(asm.frame, 8), eax)
    asm.MOV(mem(asm.frame, 16), edx)
    asm.ret()
    assert asm.finish().data == XGETBV_CODE


def test_arch_prctl_code() -> None:
    """The number of the call, its arguments, and the answer; a call keeps all registers but rax, rcx and r11."""
    asm = Assembler("arch_prctl")
    frame, number, second, first = (register("r64", i) for i in (8, 0, 6, 7))
    asm.MOV(frame, asm.frame)
    asm.MOV(first, mem(frame))
    asm.MOV(second, mem(frame, 8))
    asm.MOV(low32(number), 158)
    asm.SYSCALL()
    asm.MOV(mem(frame, 16), number)
    asm.ret()
    assert asm.finish().data == ARCH_PRCTL_CODE


def test_linux_permits_tiles_where_it_saves_them() -> None:
    assert may_use_tiles() <= (xcr0() >> 17 & 3 == 3)


def test_the_vendor_is_a_name() -> None:
    _, ebx, ecx, edx = cpuid(0)
    name = b"".join(part.to_bytes(4, "little") for part in (ebx, edx, ecx))
    assert name.isascii() and len(name.strip(b"\0 ")) >= 8


def test_a_leaf_beyond_the_last_is_zero() -> None:
    assert cpuid(0x7FFFFFFF) == cpuid(0xFFFFFFFF) == (0, 0, 0, 0)


def test_the_system_saves_at_least_the_sse_state() -> None:
    assert xcr0() == 0 or xcr0() & 3 == 3
