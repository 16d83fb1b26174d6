"""Fourier transforms of 16 complex numbers: four by four, so that the order of the results comes by itself.

x[4a + b] is row a, column b.  Transforms of columns, factors of a 16th turn, the transpose, transforms of columns:
y[c + 4d] is row d, column c.  (Cooley and Tukey 1965)

python -m examples.asm.fft16
"""

from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, mem
from examples.asm.compiled import REORDERED, compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE: Final = "void fft16(const float *x, float *y, size_t n)"
TURN: Final = np.exp(-2j * np.pi / 16 * np.outer(np.arange(4), np.arange(4)))  # W^(row * column)
Complex = list[tuple[Register, Register]]  # of each row the real and the imaginary parts


@asm.function(PROTOTYPE, reads={"x": "128*n"}, writes={"y": "128*n"})
def fft16(f: FunctionBuilder, x: Register, y: Register, n: Register) -> None:
    """y[i] = FFT of x[i] for n rows of 16 complex numbers, real and imaginary parts in turn; two rows at a time."""
    rows, spare = list(zip(f.vectors().take("re", 4), f.vectors().take("im", 4), strict=True)), f.vectors().take("t", 6)
    for step, title in ((2, "two rows"), (1, "the last row")):
        with f.steps(n, step, title):
            load(f, x, rows, spare[0], both=step == 2)
            work: Complex = [(re, im) if step == 2 else (re.xmm, im.xmm) for re, im in rows]
            temporary = [t if step == 2 else t.xmm for t in spare]
            transform(f, work, temporary)
            turn(f, work, temporary)
            for part in (0, 1):
                transpose(f, [row[part] for row in work], temporary)
            transform(f, work, temporary)
            store(f, y, work, temporary, both=step == 2)
            f.ADD(x, 128 * step)
            f.ADD(y, 128 * step)
    f.ret()


def load(f: FunctionBuilder, x: Register, rows: Complex, spare: Register, both: bool) -> None:
    """Four complex numbers a row; of the second transform in the upper halves."""
    for a, (re, im) in enumerate(rows):
        for half, held in ((0, im), (1, spare)):
            f.VMOVUPS(held.xmm, mem(x, 32 * a + 16 * half, size=16))
            if both:
                f.VINSERTF128(held, held, mem(x, 128 + 32 * a + 16 * half, size=16), 1)
        re, im, other = (re, im, spare) if both else (re.xmm, im.xmm, spare.xmm)
        f.VSHUFPS(re, im, other, 0x88)
        f.VSHUFPS(im, im, other, 0xDD)


def store(f: FunctionBuilder, y: Register, rows: Complex, temporary: list[Register], both: bool) -> None:
    for d, (re, im) in enumerate(rows):
        for half, unpack in ((0, f.VUNPCKLPS), (1, f.VUNPCKHPS)):
            held = temporary[half]
            unpack(held, re, im)
            f.VMOVUPS(mem(y, 32 * d + 16 * half, size=16), held.xmm)
            if both:
                f.VEXTRACTF128(mem(y, 128 + 32 * d + 16 * half, size=16), held, 1)


def transform(f: FunctionBuilder, rows: Complex, t: list[Register]) -> None:
    """Each column of four rows becomes its transform: sums and differences, and i times one of these."""
    for (a, c), sums in zip(((0, 2), (1, 3)), (t[:2], t[2:4]), strict=True):
        for part in (0, 1):
            f.VADDPS(sums[part], rows[a][part], rows[c][part])
            f.VSUBPS(rows[c][part], rows[a][part], rows[c][part])  # the difference of a and c
    (even, odd) = rows[2], rows[3]
    for part in (0, 1):
        f.VADDPS(rows[0][part], t[part], t[2 + part])
        f.VSUBPS(t[4 + part], t[part], t[2 + part])
    # y1 = even - i * odd and y3 = even + i * odd, where i * (re, im) = (-im, re)
    f.VADDPS(rows[1][0], even[0], odd[1])
    f.VSUBPS(rows[1][1], even[1], odd[0])
    f.VSUBPS(t[0], even[0], odd[1])
    f.VADDPS(t[1], even[1], odd[0])
    for part in (0, 1):
        f.VMOVAPS(rows[2][part], t[4 + part])
        f.VMOVAPS(rows[3][part], t[part])


def turn(f: FunctionBuilder, rows: Complex, t: list[Register]) -> None:
    """Row c times W^(c * column); that of row 0 is 1."""
    size = 32 if rows[0][0].kind == "ymm" else 16
    for (re, im), factors in zip(rows[1:], TURN[1:], strict=True):
        f.VMOVUPS(t[0], f.const(np.tile(factors.real, 2).astype(np.float32), size=size))
        f.VMOVUPS(t[1], f.const(np.tile(factors.imag, 2).astype(np.float32), size=size))
        f.VMULPS(t[2], im, t[1])
        f.VMULPS(t[3], re, t[1])
        f.VFMSUB213PS(re, t[0], t[2])
        f.VFMADD213PS(im, t[0], t[3])


def transpose(f: FunctionBuilder, rows: list[Register], t: list[Register]) -> None:
    """Four by four, in each 128 bits."""
    for i in (0, 1):
        f.VUNPCKLPS(t[2 * i], rows[i], rows[i + 2])
        f.VUNPCKHPS(t[2 * i + 1], rows[i], rows[i + 2])
    for i in (0, 1):
        f.VUNPCKLPS(rows[2 * i], t[i], t[i + 2])
        f.VUNPCKHPS(rows[2 * i + 1], t[i], t[i + 2])


def reference(x: Any, y: Any, n: int) -> None:
    """In double precision."""
    values = x.astype(np.float64).view(np.complex128).reshape(n, 16)
    y[:] = np.fft.fft(values, axis=1).ravel().view(np.float64)


IN_C: Final = """for (; n; n--, x += 32, y += 32)
    for (int k = 0; k < 16; k++) {
        float re = 0, im = 0;
        for (int j = 0; j < 16; j++) {
            float c = turn[j * k % 16][0], s = turn[j * k % 16][1];
            re += x[2 * j] * c - x[2 * j + 1] * s;
            im += x[2 * j] * s + x[2 * j + 1] * c;
        }
        y[2 * k] = re;
        y[2 * k + 1] = im;
    }"""


def main() -> None:
    print(fft16.prove(n=range(6)))
    # 6 roundings of numbers of at most 16 * 2: the sum of magnitudes
    print(fft16.compare(reference, cases=200, n=range(9), tolerance=asm.within(6 * 2**-24 * 64)))
    rng, count = np.random.default_rng(0), 64
    x = rng.standard_normal((count, 32), dtype=np.float32)
    y, numbers = np.empty_like(x), x.view(np.complex64)
    rows: Rows = {"this": fft16.bench(x.ravel(), y.ravel(), count)}
    table = ", ".join(f"{{{w.real:.9f}f, {w.imag:.9f}f}}" for w in np.exp(-2j * np.pi / 16 * np.arange(16)))
    in_c = compiled(PROTOTYPE, IN_C, f"static const float turn[16][2] = {{{table}}};", REORDERED)
    if in_c:
        rows["the sums as written, gcc -O3"] = in_c.bench(x, y, count)
    try:
        from scipy import fft

        rows["scipy.fft (pocketfft)"] = microseconds(lambda: fft.fft(numbers, axis=1))
    except ImportError:
        pass
    rows["numpy.fft"] = microseconds(lambda: np.fft.fft(numbers, axis=1))
    show(f"{count} transforms of 16 complex numbers", rows, count)


if __name__ == "__main__":
    command(main, __doc__)
