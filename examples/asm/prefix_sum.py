"""Running sums: each element becomes the sum of all up to it.  Three shifted additions a vector, not eight in turn.

python -m examples.asm.prefix_sum
"""

from typing import Any

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE = "void prefix(const int32_t *x, int32_t *sums, size_t n)"


@asm.function(PROTOTYPE, reads={"x": "4*n"}, writes={"sums": "4*n"})
def prefix(f: FunctionBuilder, x: Register, sums: Register, n: Register) -> None:
    """sums[i] = x[0] + ... + x[i], modulo 2^32."""
    v = f.vector("f32")
    t, moved, before, last = (v.registers.take(name) for name in ("x", "moved", "sum of all before", "number of last"))
    f.VPXOR(before, before, before)
    f.VPBROADCASTD(last, f.const(np.int32(7), size=4))
    with f.steps(n, 8, "vectors"):
        v.load(t, mem(x))
        in_vector(f, t, moved)
        f.VPERMD(moved, last, t)
        f.VPADDD(t, t, before)  # only this addition and the next wait for the vector before
        f.VPADDD(before, before, moved)
        v.store(mem(sums), t)
        f.ADD(x, 32)
        f.ADD(sums, 32)
    with v.first(n) as lanes:
        lanes.load(t, mem(x))
        in_vector(f, t, moved)
        f.VPADDD(t, t, before)
        lanes.store(mem(sums), t)
    f.ret()


def in_vector(f: FunctionBuilder, t: Register, moved: Register) -> None:
    """t of 8 lanes becomes its running sums."""
    for lanes in (1, 2):
        f.VPSLLDQ(moved, t, 4 * lanes)
        f.VPADDD(t, t, moved)
    f.VPERM2I128(moved, t, t, 0x08)  # the low half, above zeros
    f.VPSHUFD(moved, moved, 0xFF)
    f.VPADDD(t, t, moved)


def reference(x: Any, sums: Any, n: int) -> None:
    sums[:] = np.cumsum(x, dtype=np.int32)


def main() -> None:
    print(prefix.prove(n=range(70)))
    print(prefix.compare(reference, cases=300))
    in_c = compiled(PROTOTYPE, "int32_t s = 0; for (size_t i = 0; i < n; i++) sums[i] = s += x[i];")
    x, sums = np.random.default_rng(0).integers(-99, 99, (2, 4096), np.int32)
    rows: Rows = {"this": prefix.bench(x, sums, x.size)}
    if in_c:
        rows["gcc -O3"] = in_c.bench(x, sums, x.size)
    rows["numpy.cumsum"] = microseconds(lambda: np.cumsum(x, dtype=np.int32, out=sums))
    show(f"running sums of {x.size} integers", rows, x.size)


if __name__ == "__main__":
    command(main, __doc__)
