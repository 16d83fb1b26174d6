"""How many bits of a buffer are set: POPCNT, a table of 16 in a register, and AVX-512's own instruction.

python -m examples.asm.bits
"""

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE, READS = "uint64_t bits(const uint64_t *words, size_t n)", {"words": "8*n"}


@asm.function(PROTOTYPE, isa="avx2+popcnt", reads=READS)
def by_popcnt(f: FunctionBuilder, words: Register, n: Register) -> None:
    """A word at a time, in four sums: POPCNT takes 3 cycles, and one starts in each."""
    sums, one = f.gp.take("sums", 4), f.gp.take("bits of a word")
    for total in sums:
        f.XOR(low32(total), low32(total))
    with f.steps(n, 4, "fours"):
        for i, total in enumerate(sums):
            f.POPCNT(one, mem(words, 8 * i))
            f.ADD(total, one)
        f.ADD(words, 32)
    with f.steps(n, 1, "words"):
        f.POPCNT(one, mem(words))
        f.ADD(sums[0], one)
        f.ADD(words, 8)
    for total in sums[1:]:
        f.ADD(sums[0], total)
    f.ret(sums[0])


@asm.function(PROTOTYPE, isa="avx2+popcnt", reads=READS)
def by_table(f: FunctionBuilder, words: Register, n: Register) -> None:
    """32 bytes at a time: VPSHUFB looks up the bits of 32 half bytes at once.  (Mula, Kurz, Lemire 2016)"""
    names = ("table", "low halves", "0", "total", "low", "high")
    table, mask, zero, total, low, high = (f.vectors().take(name) for name in names)
    counts = bytes(value.bit_count() for value in range(16))
    f.VMOVDQU(table, f.const(counts * 2, size=32))
    f.VMOVDQU(mask, f.const(b"\x0f" * 32, size=32))
    f.VPXOR(zero, zero, zero)
    f.VPXOR(total, total, total)
    with f.steps(n, 4, "vectors"):
        f.VMOVDQU(high, mem(words, size=32))
        f.VPAND(low, high, mask)
        f.VPSRLW(high, high, 4)
        f.VPAND(high, high, mask)
        f.VPSHUFB(low, table, low)
        f.VPSHUFB(high, table, high)
        f.VPADDB(low, low, high)
        f.VPSADBW(low, low, zero)
        f.VPADDQ(total, total, low)
        f.ADD(words, 32)
    f.VEXTRACTI128(low.xmm, total, 1)
    f.VPADDQ(total.xmm, total.xmm, low.xmm)
    f.VPSRLDQ(low.xmm, total.xmm, 8)
    f.VPADDQ(total.xmm, total.xmm, low.xmm)
    found, one = f.gp.take("total"), f.gp.take("bits of a word")
    f.VMOVQ(found, total.xmm)
    with f.steps(n, 1, "words"):
        f.POPCNT(one, mem(words))
        f.ADD(found, one)
        f.ADD(words, 8)
    f.ret(found)


@asm.function(PROTOTYPE, isa="avx512_core+avx512_vpopcntdq", reads=READS)
def by_vector(f: FunctionBuilder, words: Register, n: Register) -> None:
    """64 bytes at a time, and a tail under a mask of BZHI's ones."""
    total, one = (f.vectors().take(name) for name in ("total", "bits"))
    f.VPXORD(total, total, total)
    with f.steps(n, 8, "vectors"):
        f.VPOPCNTQ(one, mem(words, size=64))
        f.VPADDQ(total, total, one)
        f.ADD(words, 64)
    rest, ones = f.masks.take("rest"), f.gp.take("ones")
    f.MOV(low32(ones), -1)
    f.BZHI(low32(ones), low32(ones), low32(n))
    f.KMOVW(rest, low32(ones))
    f.VMOVDQU64(one.zeroed(rest), mem(words, size=64))
    f.VPOPCNTQ(one, one)
    f.VPADDQ(total, total, one)
    half = f.vectors().take("half")
    f.VEXTRACTI64X4(half.ymm, total, 1)
    f.VPADDQ(total.ymm, total.ymm, half.ymm)
    f.VEXTRACTI128(half.xmm, total.ymm, 1)
    f.VPADDQ(total.xmm, total.xmm, half.xmm)
    f.VPSRLDQ(half.xmm, total.xmm, 8)
    f.VPADDQ(total.xmm, total.xmm, half.xmm)
    found = f.gp.take("total")
    f.VMOVQ(found, total.xmm)
    f.ret(found)


def main() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 63, 2048, np.uint64)
    rows: Rows = {}
    for name, function in (("VPOPCNTQ", by_vector), ("a table", by_table), ("POPCNT", by_popcnt)):
        function.prove(n=range(70))
        if function.runs_here:
            function.compare(lambda x, n: sum(int(v).bit_count() for v in x), cases=50)
            rows[name] = function.bench(words, words.size)
    loop = "for (size_t i = 0; i < n; i++) s += __builtin_popcountll(words[i]);"
    in_c = compiled(PROTOTYPE, f"uint64_t s = 0; {loop} return s;")
    if in_c:
        rows["gcc -O3"] = in_c.bench(words, words.size)
    whole = int.from_bytes(words.tobytes(), "little")
    rows["int.bit_count"] = microseconds(whole.bit_count)
    if hasattr(np, "bitwise_count"):  # since numpy 2
        rows["numpy.bitwise_count"] = microseconds(lambda: np.bitwise_count(words).sum())
    show(f"bits of {words.nbytes} bytes", rows, words.nbytes)


if __name__ == "__main__":
    command(main, __doc__)
