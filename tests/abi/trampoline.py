"""Calls a kernel with known registers and notes what it leaves, written with iced-x86: independent of what it tests."""

from dataclasses import dataclass

import numpy as np

from tests.emulator.assembling import Mem, assemble, ins
from tests.support.native import Kernel

CALLEE_SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
KEPT = np.arange(1, 7, dtype=np.int64) * 0x0123_4567_89AB_CDEF  # what the callee-saved registers hold at the call
MXCSR = 0xBF80  # all exceptions masked, rounding down, denormals flushed: nothing that a kernel would set by itself
MXCSR_CONTROL = 0xFFC0  # the low bits are sticky flags, which anybody may set
DIRECTION_FLAG = 1 << 10

# words of the block that the trampoline works on
KERNEL, FRAME, SET, FOUND, RSP_BEFORE, RSP_AFTER, MXCSR_SET, MXCSR_FOUND, FLAGS = 0, 1, 2, 8, 14, 15, 16, 17, 18
VECTORS, WORDS = 20, 20 + 16 * 8
STORES = {32: "VEX_VMOVUPS_YMMM256_YMM", 64: "EVEX_VMOVUPS_ZMMM512_K1Z_ZMM"}


@dataclass(frozen=True, eq=False)
class State:
    """What a kernel left."""

    callee_saved: dict[str, bool]  # whether each register still holds what it held
    rsp_moved_bytes: int
    mxcsr: int
    direction_flag: bool
    dirty: list[int]  # vector registers of 0 to 15 that are not zero above bit 127

    def offences(self) -> list[str]:
        """What breaks the System V ABI, and upper halves left dirty, which slow down SSE code."""
        found = [f"{name} changed" for name, kept in self.callee_saved.items() if not kept]
        found += [f"rsp moved by {self.rsp_moved_bytes}"] * bool(self.rsp_moved_bytes)
        found += [f"MXCSR is {self.mxcsr:#x}"] * (self.mxcsr & MXCSR_CONTROL != MXCSR & MXCSR_CONTROL)
        return found + ["direction flag set"] * self.direction_flag + [f"vector {i} dirty" for i in self.dirty]


def word(index: int, base: str = "rax") -> Mem:
    return Mem(base, 8 * index)


def code_at(block: int, vector_bytes: int) -> bytes:
    """void trampoline(void), for the block at that address: what a kernel does to registers cannot mislead it."""
    here = ins("MOV_R64_IMM64", "rax", block)
    store, step = STORES[vector_bytes], vector_bytes // 8
    kind = "ymm" if vector_bytes == 32 else "zmm"
    return assemble(
        *(ins("PUSH_R64", name) for name in CALLEE_SAVED),
        ins("SUB_RM64_IMM8", "rsp", 24),  # the caller's MXCSR, and rsp a multiple of 16
        ins("STMXCSR_M32", Mem("rsp")),
        here,
        ins("LDMXCSR_M32", word(MXCSR_SET)),
        *(ins("MOV_R64_RM64", name, word(SET + i)) for i, name in enumerate(CALLEE_SAVED)),
        ins("MOV_RM64_R64", word(RSP_BEFORE), "rsp"),
        ins("MOV_R64_RM64", "rdi", word(FRAME)),
        ins("VEX_VZEROUPPER"),
        ins("CALL_RM64", word(KERNEL)),
        here,
        *(ins("MOV_RM64_R64", word(FOUND + i), name) for i, name in enumerate(CALLEE_SAVED)),
        ins("MOV_RM64_R64", word(RSP_AFTER), "rsp"),
        ins("MOV_R64_RM64", "rsp", word(RSP_BEFORE)),
        ins("PUSHFQ"),
        ins("POP_R64", "rcx"),
        ins("CLD"),
        ins("MOV_RM64_R64", word(FLAGS), "rcx"),
        ins("STMXCSR_M32", word(MXCSR_FOUND)),
        *(ins(store, word(VECTORS + i * step), f"{kind}{i}") for i in range(16)),
        ins("LDMXCSR_M32", Mem("rsp")),
        ins("VEX_VZEROUPPER"),
        ins("ADD_RM64_IMM8", "rsp", 24),
        *(ins("POP_R64", name) for name in reversed(CALLEE_SAVED)),
        ins("RETNQ"),
    )


def call_with_known_registers(kernel: Kernel, frame: int, vector_bytes: int = 32) -> State:
    """Call `kernel` on the frame at that address.  `vector_bytes`: of the widest registers that this CPU has."""
    block = np.zeros(WORDS, np.int64)
    block[KERNEL], block[FRAME], block[MXCSR_SET] = kernel.address, frame, MXCSR
    block[SET:FOUND] = KEPT
    Kernel(code_at(block.ctypes.data, vector_bytes))(0)
    vectors = block[VECTORS:].view(np.uint8)[: 16 * vector_bytes].reshape(16, vector_bytes)
    kept = (block[FOUND:RSP_BEFORE] == KEPT).tolist()
    return State(
        dict(zip(CALLEE_SAVED, kept, strict=True)),
        int(block[RSP_AFTER] - block[RSP_BEFORE]),
        int(block[MXCSR_FOUND]),
        bool(block[FLAGS] & DIRECTION_FLAG),
        np.flatnonzero(vectors[:, 16:].any(axis=1)).tolist(),
    )
