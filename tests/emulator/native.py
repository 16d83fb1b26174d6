"""Runs the same bytes on this CPU and in the emulator, on the same addresses, and compares what they left in memory."""

from collections.abc import Sequence

import cffi
import numpy as np
import pytest
from iced_x86 import Decoder, Instruction

from asmdnn.emulator.machine import Emulator, needed_features
from asmdnn.emulator.memory import Array, MemoryRegion
from asmdnn.jit.executable import ExecutableMemory
from tests.emulator.assembling import Mem, argument, assemble, ins
from tests.emulator.forms import INTEGERS, MEMORY_BASE, MEMORY_BYTES

VECTOR_BYTES = 32
_INPUT, _OUTPUT = "rax", "rdx"

_ffi = cffi.FFI()


def missing_features(code: bytes) -> frozenset[str]:
    """The features, among those that `code` needs, that /proc/cpuinfo does not list."""
    with open("/proc/cpuinfo") as lines:
        flags = next((line for line in lines if line.startswith("flags")), "").split()
    return needed_features(Decoder(64, code)) - set(flags)


def aligned(size: int) -> Array:
    """`size` bytes that start at a multiple of 64."""
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


class Twin:
    """A program on named byte buffers; frame[i] is the address of buffer i."""

    def __init__(self, code: bytes, sizes: dict[str, int]) -> None:
        self.code, self.executable = code, ExecutableMemory([code])
        self.buffers = {name: aligned(size) for name, size in sizes.items()}
        self.frame = np.array([b.ctypes.data for b in self.buffers.values()], np.int64)
        regions = [MemoryRegion(name, b.ctypes.data, b, True, True) for name, b in self.buffers.items()]
        self.machine = Emulator([MemoryRegion("frame", self.frame.ctypes.data, self.frame.view(np.uint8)), *regions])

    def run(self, contents: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """The buffers after a native and after an emulated run, from `contents`; buffers not named start as zero."""
        results = []
        for run in (self._native, self._emulated):
            for name, buffer in self.buffers.items():
                buffer[:] = contents.get(name, np.uint8(0))
            run()
            results.append({name: buffer.copy() for name, buffer in self.buffers.items()})
        return results[0], results[1]

    def _native(self) -> None:
        kernel = _ffi.cast("void (*)(void *)", self.executable.addresses[0])
        kernel(_ffi.cast("void *", self.frame.ctypes.data))

    def _emulated(self) -> None:
        self.machine.call(self.code, self.executable.addresses[0], self.frame.ctypes.data)


def vector_twin(instructions: Sequence[Instruction]) -> Twin:
    """A program that loads ymm0-15 and r8-r11, runs `instructions` with memory at rcx, and stores the registers."""
    vectors = [(f"ymm{i}", VECTOR_BYTES * i) for i in range(16)]
    integers = [(name, 16 * VECTOR_BYTES + 8 * i) for i, name in enumerate(INTEGERS)]
    code = assemble(
        *(argument(register, i) for i, register in enumerate((_INPUT, _OUTPUT, MEMORY_BASE))),
        *(ins("VEX_VMOVUPS_YMM_YMMM256", name, Mem(_INPUT, offset)) for name, offset in vectors),
        *(ins("MOV_R64_RM64", name, Mem(_INPUT, offset)) for name, offset in integers),
        *instructions,
        *(ins("MOV_RM64_R64", Mem(_OUTPUT, offset), name) for name, offset in integers),
        *(ins("VEX_VMOVUPS_YMMM256_YMM", Mem(_OUTPUT, offset), name) for name, offset in vectors),
        ins("VEX_VZEROUPPER"),
        ins("RETNQ"),
    )
    size = 16 * VECTOR_BYTES + 8 * len(INTEGERS)
    return Twin(code, {"input": size, "output": size, "memory": MEMORY_BYTES})


SPECIAL = np.array(
    [0, 1 << 31, 1, 0x8000_0001, 0x007F_FFFF, 0x0080_0000, 0x0080_0001, 0x7F7F_FFFF, 0xFF7F_FFFF, 0x7F80_0000,
     0xFF80_0000, 0x7FC0_0000, 0xFFC1_2345, 0x7F80_0001, 0xFFBF_FFFF, 0x3F80_0000, 0xBF80_0000, 0x3F00_0000,
     0x3FC0_0000, 0x4020_0000, 0xBF00_0000, 0x4F00_0000, 0xCF00_0000, 0x4EFF_FFFF, 0x2E80_0000, 0x1F80_0001],
    np.uint32,
)  # fmt: skip


def mixed_floats(rng: np.random.Generator, size: int) -> Array:
    """`size` bytes of float32 of every kind: special ones, any bits, and numbers near one."""
    count = size // 4
    bits = rng.integers(0, 1 << 32, count, np.uint32)
    near_one = rng.standard_normal(count).astype(np.float32).view(np.uint32)
    kind = rng.integers(0, 3, count)
    return np.choose(kind, [rng.choice(SPECIAL, count), bits, near_one]).astype(np.uint32).view(np.uint8)


def differences(native: Array, emulated: Array, *, nan_payloads: bool) -> list[str]:
    """The 32-bit words that differ; without `nan_payloads`, one NaN, of float or double, is as good as another."""
    a, b = native.view(np.uint32), emulated.view(np.uint32)
    differs = a != b
    if not nan_payloads:
        differs &= ~(np.isnan(a.view(np.float32)) & np.isnan(b.view(np.float32)))
        doubles = np.isnan(native.view(np.float64)) & np.isnan(emulated.view(np.float64))
        differs &= ~np.repeat(doubles, 2)
    return [f"word {i}: native {a[i]:#010x}, emulated {b[i]:#010x}" for i in np.flatnonzero(differs)]


def check_twin(twin: Twin, rng: np.random.Generator, *, runs: int, nan_payloads: bool) -> None:
    """Skips what this CPU lacks; on floats of all kinds both leave the same, bit for bit or but for payloads of NaN."""
    if lacking := missing_features(twin.code):
        pytest.skip(f"this CPU has no {', '.join(sorted(lacking))}")
    for _ in range(runs):
        native, emulated = twin.run({name: mixed_floats(rng, twin.buffers[name].size) for name in ("input", "memory")})
        for name in ("output", "memory"):
            assert differences(native[name], emulated[name], nan_payloads=nan_payloads) == []
