"""memcpy, and strlen with a bound: small sizes by two moves that overlap, large ones by vectors.

python -m examples.asm.memory
"""

from typing import Any

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled, exported
from examples.asm.table import Rows, show
from examples.command import command

COPY = "void copy(uint8_t *dst, const uint8_t *src, size_t n)"
LENGTH = "size_t length(const uint8_t *text, size_t most)"


@asm.function(COPY, reads={"src": "n"}, writes={"dst": "n"})
def copy(f: FunctionBuilder, dst: Register, src: Register, n: Register) -> None:
    """dst[0:n] = src[0:n]; they do not overlap."""
    vectors, last, end = f.vectors().take("vectors", 4), f.vectors().take("last 32 bytes"), f.gp.take("their place")
    small = f.label("less than 32 bytes")
    f.CMP(n, 32)
    f.JB(small)
    f.VMOVDQU(last, mem(src, -32, index=n))  # covers what the loops leave
    f.LEA(end, mem(dst, -32, index=n))
    for step in (128, 32):
        with f.steps(n, step, f"{step} bytes"):
            for i, x in enumerate(vectors[: step // 32]):
                f.VMOVDQU(x, mem(src, 32 * i))
            for i, x in enumerate(vectors[: step // 32]):
                f.VMOVDQU(mem(dst, 32 * i), x)
            f.ADD(src, step)
            f.ADD(dst, step)
    f.VMOVDQU(mem(end), last)
    f.ret()
    f.bind(small)
    first, second = vectors[0].xmm, vectors[1].xmm
    _both_ends(f, 16, (dst, src, n), f.VMOVDQU, (first, second))
    for size, kind in ((8, "r64"), (4, "r32"), (2, "r16"), (1, "r8")):
        with f.gp.taken("first") as x, f.gp.taken("last") as y:
            _both_ends(f, size, (dst, src, n), f.MOV, (asm.register(kind, x.id), asm.register(kind, y.id)))
    f.ret()


def _both_ends(f: FunctionBuilder, size: int, where: tuple[Register, ...], move: Any, held: Any) -> None:
    """size to 2 * size bytes: the first and the last `size`, which overlap."""
    dst, src, n = where
    f.CMP(n, size)
    with f.when("AE"):
        first, last = held
        move(first, mem(src, size=size))
        move(last, mem(src, -size, index=n, size=size))
        move(mem(dst, size=size), first)
        move(mem(dst, -size, index=n, size=size), last)
        f.ret()


@asm.function(LENGTH, reads={"text": "most"})
def length(f: FunctionBuilder, text: Register, most: Register) -> None:
    """How many bytes come before the first 0 of text[0:most], or `most`; no byte after these is read."""
    zero, x, y = (f.vectors().take(name) for name in ("0", "bytes", "more bytes"))
    start, found = f.gp.take("start"), f.gp.take("which are 0")
    near, here, end = f.label("a 0 is near"), f.label("a 0 is here"), f.label("end")
    f.VPXOR(zero, zero, zero)
    f.MOV(start, text)
    with f.steps(most, 256, "256 bytes"):  # the least of some bytes is 0 if one is
        for held, first in ((x, 0), (y, 128)):
            f.VMOVDQU(held, mem(text, first, size=32))
            for at in (32, 64, 96):
                f.VPMINUB(held, held, mem(text, first + at, size=32))
        f.VPMINUB(x, x, y)
        f.VPCMPEQB(x, x, zero)
        f.VPMOVMSKB(low32(found), x)
        f.TEST(low32(found), low32(found))
        f.JNZ(near)
        f.ADD(text, 256)
    f.bind(near)
    with f.steps(most, 32, "32 bytes"):
        f.VPCMPEQB(x, zero, mem(text, size=32))
        f.VPMOVMSKB(low32(found), x)
        f.TEST(low32(found), low32(found))
        f.JNZ(here)
        f.ADD(text, 32)
    with f.steps(most, 1, "bytes"):
        f.CMP(mem(text, size=1), 0)
        f.JE(end)
        f.ADD(text, 1)
    f.bind(end)
    f.SUB(text, start)
    f.ret(text)
    f.bind(here)
    f.TZCNT(low32(found), low32(found))
    f.ADD(text, found)
    f.SUB(text, start)
    f.ret(text)


def reference(text: Any, most: int) -> int:
    return int(np.append(text, 0).argmin()) if most else 0


def sparse(rng: np.random.Generator, dtype: Any, size: int) -> Any:
    """Bytes of which few are 0."""
    return rng.integers(1, 127, size) * (rng.random(size) > 1 / 200)


def copied(dst: Any, src: Any, n: int) -> None:
    dst[:] = src


def main() -> None:
    sizes = [*range(300), 4095, 4096, 4097]
    print(copy.prove(n=sizes))
    print(copy.compare(copied, cases=500, n=sizes))
    print(length.prove(most=sizes))
    print(length.compare(reference, cases=500, most=sizes, draw=sparse))
    in_c = compiled(LENGTH, "size_t n = 0; while (n < most && text[n]) n++; return n;")
    libc = exported(LENGTH.replace("length", "strnlen")), exported(COPY.replace("copy", "memcpy"))
    src, dst = np.random.default_rng(0).integers(1, 127, (2, 4096)).astype(np.uint8)
    for n in (24, 4096):
        rows: Rows = {"this": copy.bench(dst, src, n), "memcpy of libc": libc[1].bench(dst, src, n)}
        show(f"memcpy of {n} bytes", rows, n)
    rows = {"this": length.bench(src, 4096), "strnlen of libc": libc[0].bench(src, 4096)}
    if in_c:
        rows["gcc -O3"] = in_c.bench(src, 4096)
    show("strnlen of 4096 bytes", rows, 4096)


if __name__ == "__main__":
    command(main, __doc__)
