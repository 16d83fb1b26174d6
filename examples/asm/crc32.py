"""The CRC of zlib and PNG by carry-less multiplication: 64 bytes are folded onto the next 64 by eight products.

Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).

python -m examples.asm.crc32
"""

import zlib
from itertools import pairwise
from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE: Final = "uint32_t crc32(uint32_t before, const uint8_t *data, size_t n)"
POLYNOMIAL: Final = 0x1_04C1_1DB7  # x^32 + x^26 + ... + 1


def power_of_x(exponent: int) -> int:
    """x^exponent modulo the polynomial, as the instruction takes it: the lowest power in the highest of 33 bits."""
    rest = 1
    for _ in range(exponent):
        rest <<= 1
        rest ^= POLYNOMIAL * (rest >> 32)
    return int(f"{rest:032b}"[::-1], 2) << 1


def table_of_bytes() -> Any:
    """What a byte, shifted out, does to the rest."""
    entries: Any = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        entries = entries >> 1 ^ (entries & 1) * np.uint32(0xEDB8_8320)
    return entries


def moved_by(bits: int) -> bytes:
    """The factors that move the two halves of 128 bits by so many bits."""
    return np.array([power_of_x(bits + 32), power_of_x(bits - 32)], np.uint64).tobytes()


@asm.function(PROTOTYPE, isa="avx2+pclmulqdq", reads={"data": "n"})
def by_16(f: FunctionBuilder, before: Register, data: Register, n: Register) -> None:
    """As zlib.crc32(data, before): 64 bytes at a time, then 16, then bytes by a table."""
    crc, left = before, f.label("bytes")
    take = f.vectors().take
    parts, far, near, high = [reg.xmm for reg in take("128 bits", 4)], take("512"), take("128"), take("upper half").xmm
    f.NOT(low32(crc))
    f.CMP(n, 64)
    f.JB(left)
    f.VMOVDQU(far.xmm, f.const(moved_by(512), size=16))
    f.VMOVDQU(near.xmm, f.const(moved_by(128), size=16))
    for i, part in enumerate(parts):
        f.VMOVDQU(part, mem(data, 16 * i, size=16))
    f.VMOVD(high, low32(crc))
    f.VPXOR(parts[0], parts[0], high)
    f.ADD(data, 64)
    f.SUB(n, 64)
    with f.steps(n, 64, "64 bytes"):
        for i, part in enumerate(parts):
            fold(f, part, high, far.xmm, mem(data, 16 * i, size=16))
        f.ADD(data, 64)
    for earlier, part in pairwise(parts):
        fold(f, earlier, high, near.xmm, part)
        f.VMOVDQA(part, earlier)
    with f.steps(n, 16, "16 bytes"):
        fold(f, parts[3], high, near.xmm, mem(data, size=16))
        f.ADD(data, 16)
    _take_bytes(f, crc, data, n, left, parts[3])


def fold(f: FunctionBuilder, part: Register, high: Register, factors: Register, onto: Any) -> None:
    """part, moved by what the factors say, plus `onto`."""
    f.VPCLMULQDQ(high, part, factors, 0x11)
    f.VPCLMULQDQ(part, part, factors, 0x00)
    f.VPXOR(high, high, onto)
    f.VPXOR(part, part, high)


def _take_bytes(
    f: FunctionBuilder, crc: Register, data: Register, n: Register, left: asm.Label, part: Register
) -> None:
    """The 16 bytes that all folding has left, then the rest, byte by byte; and out."""
    table, held, count, spare = f.gp.take("table"), f.local(16), f.gp.take("bytes of 16"), f.gp.take("byte")
    f.LEA(table, f.const(table_of_bytes()))
    f.VMOVDQU(held.sized(16), part)
    f.XOR(low32(crc), low32(crc))
    for at in range(16):
        one_byte(f, crc, spare, table, held.shifted(at).sized(1))
    f.gp.free(count)
    done = f.label("what is left")
    f.JMP(done)
    f.bind(left)
    f.LEA(table, f.const(table_of_bytes()))
    f.bind(done)
    with f.steps(n, 1, "bytes"):
        one_byte(f, crc, spare, table, mem(data, size=1))
        f.ADD(data, 1)
    f.NOT(low32(crc))
    f.ret(crc)


def one_byte(f: FunctionBuilder, crc: Register, spare: Register, table: Register, source: Any) -> None:
    f.MOVZX(low32(spare), source)
    f.XOR(low32(spare), low32(crc))
    f.AND(low32(spare), 255)
    f.SHR(low32(crc), 8)
    f.XOR(low32(crc), mem(table, index=spare, scale=4, size=4))


@asm.function(PROTOTYPE, isa="avx512_core+pclmulqdq+vpclmulqdq", reads={"data": "n"})
def by_64(f: FunctionBuilder, before: Register, data: Register, n: Register) -> None:
    """256 bytes at a time in four registers of four parts; what is left as above."""
    crc, left = before, f.label("bytes")
    take = f.vectors().take
    parts, far, near, high = take("512 bits", 4), take("2048"), take("512"), take("upper half")
    f.NOT(low32(crc))
    f.CMP(n, 256)
    f.JB(left)
    f.VBROADCASTI32X4(far, f.const(moved_by(2048), size=16))
    f.VBROADCASTI32X4(near, f.const(moved_by(512), size=16))
    for i, part in enumerate(parts):
        f.VMOVDQU32(part, mem(data, 64 * i, size=64))
    f.VMOVD(high.xmm, low32(crc))
    f.VPXORD(parts[0], parts[0], high)
    f.ADD(data, 256)
    f.SUB(n, 256)
    with f.steps(n, 256, "256 bytes"):
        for i, part in enumerate(parts):
            fold_wide(f, part, high, far, mem(data, 64 * i, size=64))
        f.ADD(data, 256)
    for earlier, part in pairwise(parts):
        fold_wide(f, earlier, high, near, part)
        f.VMOVDQA32(part, earlier)
    with f.steps(n, 64, "64 bytes"):
        fold_wide(f, parts[3], high, near, mem(data, size=64))
        f.ADD(data, 64)
    of_16 = [reg.xmm for reg in parts]
    for i in range(3):
        f.VEXTRACTI32X4(of_16[i], parts[3], i)
    f.VEXTRACTI32X4(of_16[3], parts[3], 3)
    f.VMOVDQU(near.xmm, f.const(moved_by(128), size=16))
    for earlier, part in pairwise(of_16):
        fold(f, earlier, high.xmm, near.xmm, part)
        f.VMOVDQA(part, earlier)
    with f.steps(n, 16, "16 bytes"):
        fold(f, of_16[3], high.xmm, near.xmm, mem(data, size=16))
        f.ADD(data, 16)
    _take_bytes(f, crc, data, n, left, of_16[3])


def fold_wide(f: FunctionBuilder, part: Register, high: Register, factors: Register, onto: Any) -> None:
    """As fold, of four parts at once; one instruction adds three."""
    f.VPCLMULQDQ(high, part, factors, 0x11)
    f.VPCLMULQDQ(part, part, factors, 0x00)
    f.VPTERNLOGD(part, high, onto, 0x96)


def reference(before: int, data: Any, n: int) -> int:
    return zlib.crc32(data.tobytes(), before)


def any_bytes(rng: np.random.Generator, dtype: Any, size: int) -> Any:
    return rng.integers(0, 256, size)


IN_C: Final = """static uint32_t table[256];
__attribute__((constructor)) static void fill(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++) v = v >> 1 ^ (v & 1) * 0xedb88320u;
        table[i] = v;
    }
}"""
IN_C_BODY: Final = """before = ~before;
for (size_t i = 0; i < n; i++) before = table[(before ^ data[i]) & 255] ^ before >> 8;
return ~before;"""


def main() -> None:
    data: Any = np.random.default_rng(0).integers(0, 256, 1 << 16, np.uint8)
    sizes = [*range(0, 100, 3), *range(255, 700, 61)]
    rows: Rows = {}
    for name, function in (("this, 4 parts an instruction", by_64), ("this, VPCLMULQDQ of 128 bits", by_16)):
        print(function.prove(before=0, n=sizes))
        if function.runs_here:
            function.compare(reference, cases=500, n=[*sizes, 5000], before=[0, 1, 0xFFFF_FFFF], draw=any_bytes)
            rows[name] = function.bench(0, data, data.size)
    in_c = compiled(PROTOTYPE, IN_C_BODY, IN_C)
    if in_c:
        rows["a table, gcc -O3"] = in_c.bench(0, data, data.size)
    try:
        from isal import isal_zlib

        rows["ISA-L (isal), from Python"] = microseconds(lambda: isal_zlib.crc32(data))
    except ImportError:
        pass
    rows["zlib.crc32"] = microseconds(lambda: zlib.crc32(memoryview(data)))
    show(f"CRC of {data.size} bytes", rows, data.size)


if __name__ == "__main__":
    command(main, __doc__)
