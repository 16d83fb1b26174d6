"""A dot product with 1 to 8 accumulators: why one is not enough.

An FMA takes 4 cycles, and a core starts two in each: only 8 sums that do not wait for each other keep it busy.

python -m examples.asm.dot
"""

import numpy as np

from asmdnn import asm
from asmdnn.asm import CFunction, FunctionBuilder, Register, mem
from examples.asm.compiled import REORDERED, compiled
from examples.asm.table import Rows, aligned, microseconds, show
from examples.command import command


def dot_of(accumulators: int) -> CFunction:
    """The product with so many sums."""

    @asm.function(
        "float dot(const float *x, const float *y, size_t n)",
        isa=("avx2", "avx512_core"),
        reads={"x": "4*n", "y": "4*n"},
    )
    def dot(f: FunctionBuilder, x: Register, y: Register, n: Register) -> None:
        v = f.vector("f32")
        acc, t = v.registers.take("acc", accumulators), v.registers.take("x")
        for a in acc:
            v.zero(a)
        with f.steps(n, accumulators * v.lanes, "blocks"):
            for j, a in enumerate(acc):
                v.load(t, mem(x, j * v.bytes))
                v.fma(a, t, mem(y, j * v.bytes))
            f.ADD(x, accumulators * v.bytes)
            f.ADD(y, accumulators * v.bytes)
        with f.steps(n, v.lanes, "vectors"):
            v.load(t, mem(x))
            v.fma(acc[0], t, mem(y))
            f.ADD(x, v.bytes)
            f.ADD(y, v.bytes)
        with v.first(n) as lanes, v.registers.taken("y") as u:
            lanes.load(t, mem(x))
            lanes.load(u, mem(y))
            v.fma(acc[0], t, u)
        f.ret(v.sum(acc))

    return dot


def main() -> None:
    x, y = aligned(np.random.default_rng(0).standard_normal((2, 2048), dtype=np.float32))
    rows: Rows = {}
    for accumulators in (8, 4, 2, 1):
        dot = dot_of(accumulators)
        dot.prove(n=range(0, 300, 7))
        dot.compare(np.dot, cases=100, tolerance=asm.ulp(16))
        rows[f"{accumulators} accumulators of 8 (AVX2)"] = dot.at("avx2").bench(x, y, x.size)
    if dot.isa == "avx512_core":
        rows["8 accumulators of 16 (AVX-512)"] = dot_of(8).bench(x, y, x.size)
    in_c = compiled(dot.prototype, "float s = 0; for (size_t i = 0; i < n; i++) s += x[i] * y[i]; return s;",
                    flags=REORDERED)  # fmt: skip
    if in_c:
        rows["gcc -O3"] = in_c.bench(x, y, x.size)
    rows["numpy.dot"] = microseconds(lambda: np.dot(x, y))
    show(f"dot product of {x.size} elements", rows, x.size)


if __name__ == "__main__":
    command(main, __doc__)
