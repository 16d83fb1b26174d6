"""Sorts rows of 16 floats by Batcher's bitonic network: ten steps of minimum and maximum, and no branch.

python -m examples.asm.sort16
"""

from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE: Final = "void sort16(float *x, size_t rows)"
REACH: Final = {"x": "64*rows"}
# Sorted runs grow by merging two: each lane meets its mirror image, then the lane half as far, and so on.  A step is
# the number by which a lane's differs (XOR) from its partner's; who has the highest bit of it keeps the larger.
NETWORK: Final = (1, 3, 1, 7, 2, 1, 15, 4, 2, 1)


def partners(step: int, lanes: int) -> Any:
    return (np.arange(lanes) ^ step).astype(np.int32)


def keeps_larger(step: int, lanes: int) -> int:
    """The lanes that keep the larger, as bits."""
    highest = 1 << step.bit_length() - 1
    return sum(1 << lane for lane in range(lanes) if lane & highest)


@asm.function(PROTOTYPE, isa="avx512_core", reads=REACH, writes=REACH)
def in_one(f: FunctionBuilder, x: Register, rows: Register) -> None:
    """A row is one register, and a step three instructions.  Rows do not wait for each other."""
    row, merged, other = (f.vectors().take(name) for name in ("row", "merged row", "partners"))
    bits, steps = f.gp.take("bits"), sorted(set(NETWORK))
    orders = dict(zip(steps, f.vectors().take("order of partners", len(steps)), strict=True))
    masks = {keeps_larger(step, 16): f.masks.take("keeps the larger") for step in (1, 2, 4, 8)}
    for step, order in orders.items():
        f.VMOVDQU32(order, f.const(partners(step, 16), size=64))
    for mask, held in masks.items():
        f.MOV(asm.low32(bits), mask)
        f.KMOVW(held, asm.low32(bits))
    with f.steps(rows, 1, "rows"):
        f.VMOVUPS(row, mem(x, size=64))
        for step in NETWORK:
            f.VPERMPS(other, orders[step], row)
            f.VMINPS(merged, row, other)
            f.VMAXPS(merged.masked(masks[keeps_larger(step, 16)]), row, other)
            row, merged = merged, row
        f.VMOVUPS(mem(x, size=64), row)
        f.ADD(x, 64)
    f.ret()


@asm.function(PROTOTYPE, reads=REACH, writes=REACH)
def in_two(f: FunctionBuilder, x: Register, rows: Register) -> None:
    """A row is two registers, which meet in one step."""
    low, high, other, larger = (f.vectors().take(name) for name in ("low", "high", "partners", "larger"))
    steps = sorted({step for step in NETWORK if step < 8})
    orders = dict(zip(steps, f.vectors().take("order of partners", len(steps)), strict=True))
    for step, order in orders.items():
        f.VMOVDQU(order, f.const(partners(step, 8), size=32))
    with f.steps(rows, 1, "rows"):
        f.VMOVUPS(low, mem(x, size=32))
        f.VMOVUPS(high, mem(x, 32, size=32))
        for step in NETWORK:
            if step == 15:  # the mirror image is in the other half
                f.VPERMPS(other, orders[7], high)
                f.VMAXPS(larger, low, other)
                f.VMINPS(low, low, other)
                f.VPERMPS(high, orders[7], larger)
                continue
            for half in (low, high):
                f.VPERMPS(other, orders[step], half)
                f.VMAXPS(larger, half, other)
                f.VMINPS(half, half, other)
                f.VBLENDPS(half, half, larger, keeps_larger(step, 8))
        f.VMOVUPS(mem(x, size=32), low)
        f.VMOVUPS(mem(x, 32, size=32), high)
        f.ADD(x, 64)
    f.ret()


def reference(x: Any, rows: int) -> None:
    x[:] = np.sort(x.reshape(-1, 16), axis=1).ravel()


IN_C: Final = """for (size_t r = 0; r < rows; r++, x += 16)
    for (int i = 1; i < 16; i++) {
        float v = x[i]; int j = i;
        for (; j && x[j - 1] > v; j--) x[j] = x[j - 1];
        x[j] = v;
    }"""


def main() -> None:
    rng = np.random.default_rng(0)
    x, count = rng.standard_normal(16 * 256, dtype=np.float32), 256
    work = x.copy()
    rows: Rows = {}

    def unsorted(call: Any) -> None:
        work[:] = x
        call(work, count)

    for name, function in (("this in one register", in_one), ("this in two registers", in_two)):
        function.prove(rows=range(5))
        if function.runs_here:
            function.compare(reference, cases=200, rows=range(20))
            rows[name] = microseconds(lambda call=function: unsorted(call))
    in_c = compiled(PROTOTYPE, IN_C)
    if in_c:
        rows["insertion sort, gcc -O3"] = microseconds(lambda: unsorted(in_c))
    rows["numpy.sort(axis=1)"] = microseconds(lambda: np.sort(x.reshape(-1, 16), axis=1))
    show(f"{count} rows of 16 floats, unsorted before", rows, count)


if __name__ == "__main__":
    command(main, __doc__)
