"""y += a * x: the whole shape of a function, with a loop, a tail whose length is known at run time, and two levels.

python -m examples.asm.saxpy
"""

from typing import Any

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, aligned, microseconds, show
from examples.command import command


@asm.function(
    "void saxpy(float a, const float *x, float *y, size_t n)",
    isa=("avx2", "avx512_core"),
    reads={"x": "4*n", "y": "4*n"},
    writes={"y": "4*n"},
)
def saxpy(f: FunctionBuilder, a: Register, x: Register, y: Register, n: Register) -> None:
    """y[i] += a * x[i] for 0 <= i < n, each rounded once."""
    v = f.vector("f32")
    factor, old, new = (v.registers.take(name) for name in ("a in all lanes", "x", "y"))
    f.VBROADCASTSS(factor, a)
    with f.steps(n, v.lanes, "vectors"):
        v.load(new, mem(y))
        v.fma(new, factor, mem(x))
        v.store(mem(y), new)
        f.ADD(x, v.bytes)
        f.ADD(y, v.bytes)
    with v.first(n) as lanes:
        lanes.load(old, mem(x))
        lanes.load(new, mem(y))
        v.fma(new, factor, old)
        lanes.store(mem(y), new)
    f.ret()


def reference(a: float, x: Any, y: Any, n: int) -> None:
    """In float64, rounded once, as the instruction does."""
    y[:] = (np.float64(np.float32(a)) * x + y).astype(np.float32)


def main() -> None:
    print(saxpy.prove(n=range(100)))
    print(saxpy.compare(reference, cases=300, tolerance=asm.ulp(1)))
    x, y = aligned(np.random.default_rng(0).standard_normal((2, 4096), dtype=np.float32))
    in_c = compiled(saxpy.prototype, "for (size_t i = 0; i < n; i++) y[i] += a * x[i];")
    rows: Rows = {f"this at {saxpy.isa}": saxpy.bench(0.5, x, y, x.size)}
    if in_c:
        rows["gcc -O3"] = in_c.bench(0.5, x, y, x.size)
    rows["this, called from Python"] = microseconds(lambda: saxpy(0.5, x, y, x.size))
    rows["numpy: y += a * x"] = microseconds(lambda: np.add(y, np.float32(0.5) * x, out=y))
    show(f"saxpy of {x.size} elements", rows, x.size)


if __name__ == "__main__":
    command(main, __doc__)
