"""Transposes a matrix of floats in blocks of 8 rows and 8 columns, which live in registers.

python -m examples.asm.transpose
"""

from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import FunctionBuilder, Register, mem
from examples.asm.compiled import compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

PROTOTYPE: Final = "void transpose(const float *x, float *y, size_t rows, size_t columns)"
REACH: Final = "256*rows*columns"


@asm.function(PROTOTYPE, reads={"x": REACH}, writes={"y": REACH})
def transpose(f: FunctionBuilder, x: Register, y: Register, rows: Register, columns: Register) -> None:
    """y[j][i] = x[i][j]; rows and columns are counted in blocks of 8."""
    x_row, y_row, left, source = (f.gp.take(name) for name in ("bytes of a row of x", "of y", "blocks left", "block"))
    x_3, y_3, target = f.gp.take("3 rows of x"), f.gp.take("3 rows of y"), f.gp.take("block of y")
    for three, one, blocks in ((x_3, x_row, columns), (y_3, y_row, rows)):
        f.MOV(one, blocks)
        f.SHL(one, 5)
        f.LEA(three, mem(one, index=one, scale=2))
    a, b = f.vectors().take("rows", 8), f.vectors().take("pairs", 8)
    with f.steps(rows, 1, "blocks of rows"):
        f.MOV(left, columns)
        f.MOV(source, x)
        f.MOV(target, y)
        with f.steps(left, 1, "blocks of columns"):
            _load(f, a, source, x_row, x_3)
            block(f, a, b)
            for half in (0, 4):
                for i in range(4):
                    f.VMOVUPS(_row(target, y_row, y_3, i, 32), a[half + i])
                f.LEA(target, mem(target, index=y_row, scale=4))
            f.ADD(source, 32)
        f.LEA(x, mem(x, index=x_row, scale=8))
        f.ADD(y, 32)
    f.ret()


def _row(base: Register, one: Register, three: Register, i: int, size: int, offset: int = 0) -> asm.Pointer:
    """Row i of four."""
    if i == 0:
        return mem(base, offset, size=size)
    return mem(base, offset, index=three if i == 3 else one, scale=2 if i == 2 else 1, size=size)


def _load(f: FunctionBuilder, a: list[Register], source: Register, one: Register, three: Register) -> None:
    """a[i] has the left half of row i and that of row i + 4; a[i + 4] the right halves.  Loads that insert are free."""
    with f.gp.taken("rows 4 to 7") as lower:
        f.LEA(lower, mem(source, index=one, scale=4))
        for i in range(4):
            for half in (0, 1):
                f.VMOVUPS(a[i + 4 * half].xmm, _row(source, one, three, i, 16, 16 * half))
                f.VINSERTF128(a[i + 4 * half], a[i + 4 * half], _row(lower, one, three, i, 16, 16 * half), 1)


def block(f: FunctionBuilder, a: list[Register], b: list[Register]) -> None:
    """Each half of `a` is four columns, two times: four by four within 128 bits."""
    for half in (0, 4):
        for i in (0, 1):
            f.VUNPCKLPS(b[half + 2 * i], a[half + i], a[half + i + 2])
            f.VUNPCKHPS(b[half + 2 * i + 1], a[half + i], a[half + i + 2])
        for i in (0, 1):
            f.VUNPCKLPS(a[half + 2 * i], b[half + i], b[half + i + 2])
            f.VUNPCKHPS(a[half + 2 * i + 1], b[half + i], b[half + i + 2])


def reference(x: Any, y: Any, rows: int, columns: int) -> None:
    y[:] = x.reshape(8 * rows, 8 * columns).T.ravel()


IN_C: Final = """size_t n = 8 * columns, m = 8 * rows;
for (size_t i = 0; i < m; i += 8)
    for (size_t j = 0; j < n; j += 8)
        for (size_t k = 0; k < 8; k++)
            for (size_t l = 0; l < 8; l++)
                y[(j + k) * m + i + l] = x[(i + l) * n + j + k];"""


def main() -> None:
    print(transpose.prove(rows=range(4), columns=range(5)))
    print(transpose.compare(reference, cases=100, rows=range(6), columns=range(6)))
    rows, columns = 120, 136
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    y = np.empty((columns, rows), np.float32)
    in_c = compiled(PROTOTYPE, IN_C)
    table: Rows = {"this": transpose.bench(x, y, rows // 8, columns // 8)}
    if in_c:
        table["the same blocks, gcc -O3"] = in_c.bench(x, y, rows // 8, columns // 8)
    table["numpy: y[:] = x.T"] = microseconds(lambda: np.copyto(y, x.T))
    show(f"transpose of {rows} x {columns} floats", table, x.size)


if __name__ == "__main__":
    command(main, __doc__)
