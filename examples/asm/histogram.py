"""How often each byte occurs: four tables in turn, since a counter that was just stored is slow to load again.

python -m examples.asm.histogram
"""

from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, low32, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

TABLES: Final = 4
PROTOTYPE: Final = "void histogram(const uint8_t *data, size_t n, uint32_t *counts)"
REACH: Final = {"data": "n", "counts": f"{1024 * TABLES}"}


@asm.function(PROTOTYPE, reads=REACH, writes={"counts": REACH["counts"]})
def histogram(f: FunctionBuilder, data: Register, n: Register, counts: Register) -> None:
    """counts[0:256] are the numbers of each byte; the rest of counts is room for three more tables."""
    byte = f.gp.take("bytes", 4)
    zero, place = f.vectors().take("0"), f.gp.take("place")
    f.VPXOR(zero, zero, zero)
    for offset in range(0, 1024 * TABLES, 32):
        f.VMOVDQU(mem(counts, offset, size=32), zero)
    with f.steps(n, 8, "8 bytes"):
        for i in range(8):
            f.MOVZX(low32(byte[i % 4]), mem(data, i, size=1))
            f.ADD(mem(counts, 1024 * (i % TABLES), index=byte[i % 4], scale=4, size=4), 1)
        f.ADD(data, 8)
    with f.steps(n, 1, "bytes"):
        f.MOVZX(low32(byte[0]), mem(data, size=1))
        f.ADD(mem(counts, index=byte[0], scale=4, size=4), 1)
        f.ADD(data, 1)
    f.MOV(low32(place), 1024)
    with f.steps(place, 32, "8 counters"):
        f.VMOVDQU(zero, mem(counts, size=32))
        for table in range(1, TABLES):
            f.VPADDD(zero, zero, mem(counts, 1024 * table, size=32))
        f.VMOVDQU(mem(counts, size=32), zero)
        f.ADD(counts, 32)
    f.ret()


def reference(data: Any, n: int) -> Any:
    return np.bincount(data, minlength=256)


def main() -> None:
    print(histogram.prove(n=range(20)))
    rng, counts = np.random.default_rng(0), np.zeros(256 * TABLES, np.uint32)
    for n in (*range(40), 1000, 5001):
        data = rng.integers(0, 256, n, np.uint8)
        histogram(data, n, counts)
        assert (counts[:256] == reference(data, n)).all(), n
    in_c = compiled(PROTOTYPE, "memset(counts, 0, 1024); for (size_t i = 0; i < n; i++) counts[data[i]]++;")
    for title, data in (("random", rng.integers(0, 256, 1 << 14, np.uint8)), ("equal", np.zeros(1 << 14, np.uint8))):
        rows: Rows = {"this": histogram.bench(data, data.size, counts)}
        if in_c:
            rows["gcc -O3"] = in_c.bench(data, data.size, counts)
        rows["numpy.bincount"] = microseconds(lambda data=data: np.bincount(data, minlength=256))
        show(f"histogram of {data.size} {title} bytes", rows, data.size)


if __name__ == "__main__":
    command(main, __doc__)
