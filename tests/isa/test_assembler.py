import sys
import threading
from fractions import Fraction
from struct import pack, unpack

import numpy as np
import pytest
from iced_x86 import Decoder

from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Assembler, Code, low32, mem, register, rsp
from asmdnn.jit.executable import ExecutableMemory
from asmdnn.jit.native import ffi
from tests.isa.decoding import intel_text
from tests.support.together import at_once


def run(code: Code | bytes, *arguments: int) -> list[int]:
    """Executes a kernel and returns its frame."""
    memory = ExecutableMemory([code if isinstance(code, bytes) else code.data])
    frame = ffi.new("int64_t[]", list(arguments))
    ffi.cast("void (*)(int64_t *)", memory.addresses[0])(frame)
    return list(frame)


def texts(code: Code) -> list[str]:
    assert code.listing is not None
    return [line.text for line in code.listing]


def test_a_loop_runs_as_often_as_its_counter_says() -> None:
    asm = Assembler("multiply")
    count, total = asm.gp.take("count"), asm.gp.take("total")
    asm.MOV(count, mem(asm.frame))
    asm.XOR(low32(total), low32(total))
    with asm.loop(count, "add"):
        asm.ADD(total, mem(asm.frame, 8))
    asm.MOV(mem(asm.frame, 16), total)
    asm.MOV(mem(asm.frame), count)
    asm.ret()
    assert run(asm.finish(), 7, 6, 0) == [0, 6, 42]


def test_a_constant_is_read() -> None:
    asm = Assembler("constant")
    reg = asm.gp.take("value")
    asm.MOV(reg, asm.const(pack("<q", -5), 8))
    asm.MOV(mem(asm.frame), reg)
    asm.ret()
    assert run(asm.finish(), 0) == [-5]


def kernel_of(taken: int, *, calls: bool, wide: bool) -> list[str]:
    asm = Assembler("prologue", listing=True)
    registers = asm.gp.take("r", taken)
    if wide:
        asm.VXORPS(*[register("ymm", 0)] * 3)
    if calls:
        asm.call(registers[0])
    asm.ret()
    return texts(asm.finish())


@pytest.mark.parametrize(
    ("taken", "calls", "wide", "expected"),
    [
        (8, False, False, ["ret"]),
        (8, False, True, ["vxorps ymm0, ymm0, ymm0", "vzeroupper", "ret"]),
        (10, False, False, ["push rbx", "push rbp", "pop rbp", "pop rbx", "ret"]),
        (1, True, False, ["sub rsp, 8", "call rax", "add rsp, 8", "ret"]),
        (9, True, False, ["push rbx", "call rax", "pop rbx", "ret"]),
        (10, True, True, [
            "push rbx", "push rbp", "sub rsp, 8", "vxorps ymm0, ymm0, ymm0", "call rax",
            "vzeroupper", "add rsp, 8", "pop rbp", "pop rbx", "ret",
        ]),
    ],
)  # fmt: skip
def test_prologue_and_return(taken: int, calls: bool, wide: bool, expected: list[str]) -> None:
    assert kernel_of(taken, calls=calls, wide=wide) == expected


def test_a_register_freed_again_is_saved_and_an_early_return_restores_all() -> None:
    asm = Assembler("early", listing=True)
    done = asm.new_label("not yet")
    asm.TEST(asm.frame, asm.frame)
    asm.JNZ(done)
    asm.ret()
    asm.bind(done)
    taken = asm.gp.take("many", 9)
    asm.gp.free(*taken)
    asm.VZEROALL()
    asm.VPXOR(*[register("ymm", 3)] * 3)
    asm.ret()
    leave = ["vzeroupper", "pop rbx", "ret"]
    early = ["push rbx", "test rdi, rdi", "jnz 0xb <not yet>", *leave]
    assert texts(asm.finish()) == [*early, "vzeroall", "vpxor ymm3, ymm3, ymm3", *leave]


@pytest.mark.isa("avx2")
def test_saved_registers_survive() -> None:
    """A caller puts marks into the callee-saved registers, calls a kernel that overwrites all, and compares."""
    inner = Assembler("clobber")
    for number, reg in enumerate(inner.gp.take("all", 14)):
        inner.MOV(reg, number)
    inner.VPCMPEQD(*[register("ymm", 9)] * 3)
    inner.ret()
    clobber = ExecutableMemory([inner.finish().data])

    outer = Assembler("caller")
    saved = [outer.gp.claim(register("r64", number), "mark") for number in (3, 5, 12, 13, 14, 15)]
    target = outer.gp.take("target")
    outer.PUSH(outer.frame)
    outer.PUSH(outer.frame)  # keeps rsp a multiple of 16
    for number, reg in enumerate(saved):
        outer.MOV(reg, 1000 + number)
    outer.MOV(target, mem(outer.frame, 48))
    outer.call(target)
    outer.POP(outer.frame)
    outer.POP(outer.frame)
    for number, reg in enumerate(saved):
        outer.MOV(mem(outer.frame, 8 * number), reg)
    outer.ret()
    assert run(outer.finish(), *[0] * 6, clobber.addresses[0])[:6] == [1000, 1001, 1002, 1003, 1004, 1005]


@pytest.mark.parametrize("taken", range(1, 15))
def test_the_stack_is_aligned_for_calls(taken: int) -> None:
    inner = Assembler("stack pointer")
    inner.MOV(mem(inner.frame), rsp)
    inner.ret()
    callee = ExecutableMemory([inner.finish().data])
    outer = Assembler("caller")
    target = outer.gp.take("registers", taken)[0]
    outer.MOV(target, mem(outer.frame, 8))
    outer.call(target)
    outer.ret()
    assert run(outer.finish(), 0, callee.addresses[0])[0] % 16 == 8  # the return address was pushed


def listed_kernel() -> Code:
    asm = Assembler("listed", listing=True)
    asm.role("arguments")
    count, pointer = asm.gp.take("count"), asm.gp.take("pointer")
    zmm, k = asm.vectors(64, 32).take("x", 3), asm.masks.take("tail")
    asm.gp.take("many", 8)
    end = asm.new_label("end")
    asm.MOV(count, mem(asm.frame))
    asm.TEST(count, count)
    asm.JZ(end)
    asm.role("body")
    asm.align(32)
    with asm.loop(count, "row"):
        asm.VMOVUPS(zmm[0].zeroed(k), mem(pointer, 64, index=count, scale=8))
        asm.VFMADD231PS(zmm[1], zmm[0], mem(pointer, 4).broadcast_to(16))
        asm.VADDPS(zmm[2].masked(k), zmm[1], asm.const(bytes(64)))
        asm.VPERMILPS(zmm[2], asm.const(bytes(64)), 27)
        asm.MOV(mem(pointer, -8, size=2), 5)
        asm.VMOVUPS(mem(pointer).masked(k), zmm[2])
        asm.LOCK_XADD(mem(pointer), count)
        asm.VPDPBUSD_VEX(*[register("ymm", 3)] * 3)
    asm.bind(end)
    asm.ret()
    return asm.finish()


def test_the_listing_equals_a_disassembly() -> None:
    code = listed_kernel()
    assert code.listing is not None
    here = 0
    for line in code.listing:
        assert line.offset == here
        assert code.data[here : here + len(line.data)] == line.data
        instruction = Decoder(64, line.data, ip=here).decode()
        assert instruction.len == len(line.data)
        assert same_text(line.text, intel_text(instruction)), (line.text, intel_text(instruction))
        here += len(line.data)


def same_text(ours: str, decoded: str) -> bool:
    """Whether two texts say the same, but for jump targets, the size of memory and what NOPs pretend to read."""
    mnemonic = decoded.split()[0]
    if mnemonic in ("nop", "xchg"):
        return ours == "nop"
    if mnemonic in ("je", "jne"):
        target = int(decoded.split()[1])
        return ours.startswith({"je": "jz", "jne": "jnz"}[mnemonic] + f" {target:#x} <")
    if "[rip" in ours:
        return ours.split("[")[0] == decoded.split("[")[0]
    for size in "byte", "word", "dword", "qword", "zword":
        ours = ours.replace(f" {size} ", " ")
    return ours == decoded


def test_the_listing_says_what_for_and_from_where() -> None:
    code = listed_kernel()
    assert code.listing is not None
    roles = {line.text.split()[0]: line.role for line in code.listing}
    assert (roles["push"], roles["test"], roles["vaddps"], roles["ret"]) == ("save", "arguments", "body", "return")
    sources = {line.text.split()[0]: line.source for line in code.listing}
    first = listed_kernel.__code__.co_firstlineno
    assert sources["test"] == f"test_assembler.py:{first + 8}"
    assert sources["sub"] == f"test_assembler.py:{first + 12}"  # the loop's own instructions: the line of the loop
    assert sources["ret"] == f"test_assembler.py:{first + 22}"


def test_a_listing_changes_no_byte_and_finishing_twice_neither() -> None:
    def generate(listing: bool) -> bytes:
        asm = Assembler("twice", listing=listing)
        with asm.loop(asm.gp.take("count", 10)[9], "loop"):
            asm.VADDPS(*[register("ymm", 0)] * 2, asm.const(bytes(32)))
        asm.ret()
        assert asm.finish() == asm.finish()
        return asm.finish().data

    assert generate(True) == generate(False)
    assert Assembler("none").finish().listing is None


def long_kernel(shift: int) -> bytes:
    """A kernel of some thousand instructions, different for every `shift`."""
    asm = Assembler("long")
    acc, (a, b) = asm.vectors(32, 16).take("acc", 4, 3), asm.vectors(32, 16).take("ab", 2)
    left, right = asm.gp.take("left"), asm.gp.take("right")
    for k in range(300):
        asm.VMOVUPS(a, mem(left, 32 * k + shift))
        for i in range(4):
            asm.VBROADCASTSS(b, mem(right, 4 * (i + 4 * k), index=left, scale=4))
            for j in range(3):
                asm.VFMADD231PS(acc[i][j], a, b)
    asm.ret()
    return asm.finish().data


def test_threads_generate_at_once() -> None:
    alone = [long_kernel(shift) for shift in range(4)]
    together: dict[int, list[bytes]] = {}
    barrier = threading.Barrier(4)

    def work(thread: int) -> None:
        barrier.wait()
        together[thread] = [long_kernel((thread + i) % 4) for i in range(4)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # many switches inside every kernel
    try:
        at_once(work)
    finally:
        sys.setswitchinterval(interval)
    assert together == {thread: [alone[(thread + i) % 4] for i in range(4)] for thread in range(4)}


@pytest.mark.isa("avx2")
def test_floats_of_the_pool_are_the_ones_given() -> None:
    asm = Assembler("float")
    x = asm.vectors(16, 16).take("x")
    asm.VMOVSS(x, asm.const(pack("<f", 1.5), 4))
    asm.VADDSS(x, x, asm.const(pack("<f", 2.25), 4))
    asm.VMOVSS(mem(asm.frame), x)
    asm.ret()
    assert unpack("<f", pack("<q", run(asm.finish(), 0)[0])[:4]) == (3.75,)


def test_what_is_equal_to_an_operand_is_not_one() -> None:
    """What was emitted before is found by its operands, to which others are equal."""
    asm = Assembler("again")
    count = asm.gp.take("count")
    for given in (1, np.int64(1), True, 1):
        asm.ADD(count, given)
    for wrong in (1.0, np.float32(1), Fraction(1), [1], "1"):
        with pytest.raises(InvalidArguments, match="not a register, mem"):
            asm.ADD(count, wrong)
    asm.ret()
    assert asm.finish().data.hex() == 4 * "4883c001" + "c3"
