"""The Mandelbrot set, a vector of pixels at a time: a loop that ends when no pixel is left inside.

python -m examples.asm.mandelbrot        writes build/examples/mandelbrot.pgm
"""

from pathlib import Path
from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PICTURE: Final = Path(__file__).resolve().parents[2] / "build" / "examples" / "mandelbrot.pgm"


@asm.function(
    "void row(const float *re, float im, int32_t *rounds, size_t vectors, uint64_t most)",
    reads={"re": "32*vectors"},
    writes={"rounds": "32*vectors"},
)
def row(f: FunctionBuilder, re: Register, im: Register, rounds: Register, vectors: Register, most: Register) -> None:
    """rounds[i]: how often z = z * z + c stays within |z| < 2, at most `most`, for c = re[i] + i * im; 8 at a time."""
    v = f.vector("f32")
    names = ("c.im", "4", "c.re", "z.re", "z.im", "z.re^2", "z.im^2", "|z|^2", "inside", "rounds")
    c_im, four, c_re, z_re, z_im, re2, im2, size, inside, count = (v.registers.take(name) for name in names)
    left, bits = f.gp.take("rounds left"), f.gp.take("lanes inside")
    f.VBROADCASTSS(c_im, im)
    f.VBROADCASTSS(four, f.const(np.float32(4).tobytes(), size=4))
    with f.steps(vectors, 1, "vectors"):
        v.load(c_re, mem(re))
        v.move(z_re, c_re)
        v.move(z_im, c_im)
        f.VPXOR(count, count, count)
        f.MOV(left, most)
        with f.loop("rounds") as (_, done):
            v.mul(re2, z_re, z_re)
            v.mul(im2, z_im, z_im)
            v.add(size, re2, im2)
            f.VCMPPS(inside, size, four, 1)  # less than
            f.VMOVMSKPS(low32(bits), inside)
            f.TEST(low32(bits), low32(bits))
            f.JZ(done)
            f.SUB(left, 1)
            f.JB(done)
            f.VPSUBD(count, count, inside)
            f.VMULPS(z_im, z_im, z_re)
            f.VADDPS(z_im, z_im, z_im)
            v.add(z_im, z_im, c_im)
            f.VSUBPS(re2, re2, im2)
            v.add(z_re, re2, c_re)
        f.VMOVDQU(mem(rounds, size=32), count)
        f.ADD(re, 32)
        f.ADD(rounds, 32)
    f.ret()


def reference(re: Any, im: float, rounds: Any, vectors: int, most: int) -> None:
    """In numpy, all pixels every round."""
    c_re, c_im = re.astype(np.float32), np.float32(im)
    z_re, z_im, count = c_re.copy(), np.full_like(c_re, c_im), np.zeros(re.shape, np.int32)
    with np.errstate(all="ignore"):
        for _ in range(most):
            re2, im2 = z_re * z_re, z_im * z_im
            inside = re2 + im2 < np.float32(4)
            if not inside.any():
                break
            count += inside
            product = z_im * z_re
            z_im, z_re = product + product + c_im, re2 - im2 + c_re
    rounds[:] = count


IN_C: Final = """for (size_t i = 0; i < 8 * vectors; i++) {
    float x = re[i], y = im;
    int32_t n = 0;
    for (; n < (int32_t)most && x * x + y * y < 4; n++) {
        float t = x * x - y * y + re[i];
        y = 2 * x * y + im;
        x = t;
    }
    rounds[i] = n;
}"""


def main() -> None:
    print(row.prove(vectors=range(5), most=50))
    print(
        row.compare(
            reference,
            cases=100,
            vectors=range(9),
            most=[50],
            draw=lambda rng, dtype, size: rng.uniform(-2, 1, size) if dtype.kind == "f" else np.zeros(size),
        )
    )
    width, height, most = 960, 640, 200
    re, picture = np.linspace(-2.2, 1, width, dtype=np.float32), np.zeros((height, width), np.int32)
    heights = np.linspace(-1.1, 1.1, height)
    one = np.zeros(width, np.int32)

    def draw(call: Any, lines: Any) -> None:
        for line, im in lines:
            call(re, float(im), picture[line], width // 8, most)

    draw(row, enumerate(heights))
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    gray = (255 * (1 - picture / most) ** 2).astype(np.uint8)
    PICTURE.write_bytes(b"P5 %d %d 255\n" % (width, height) + gray.tobytes())
    in_c = compiled(row.prototype, IN_C)
    rows: Rows = {"this": row.bench(re, 0.1, one, width // 8, most)}
    if in_c:
        rows["gcc -O3"] = in_c.bench(re, 0.1, one, width // 8, most)
    rows["numpy"] = microseconds(lambda: reference(re, 0.1, one, width // 8, most), rounds=2)
    show(f"a line of {width} pixels, at most {most} rounds ({PICTURE.name} is written)", rows, width)


if __name__ == "__main__":
    command(main, __doc__)
